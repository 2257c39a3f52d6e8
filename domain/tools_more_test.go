package domain

import (
	"fmt"
	"strings"
	"testing"

	"waybill/domain/catalog"
)

// twoHolding is a peer of two contexts whose changed tools are held.
func twoHolding(t testing.TB, scope string) *keeper {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), unsubscribed, holding, inContexts("alice", "bob")))
	k.rises("p", discoverQuiet)
	for _, c := range []string{"alice", "bob"} {
		k.answered("p", c, told(cached(0, scope), tell("x", "A"), tell("y", "same")))
	}
	return k
}

// relistsFor reads the list of one context again, as the answer to a notice would.
func (k *keeper) relistsFor(context, hints string, definitions ...string) []Event {
	k.t.Helper()
	k.pass(5_000)
	k.reads(context)
	return k.answered("p", context, told(hints, definitions...))
}

// TestAnApprovalIsOfOneContext: another context's tool of the same name, and of
// the same definition, is held until it is approved there.
func TestAnApprovalIsOfOneContext(t *testing.T) {
	k := twoHolding(t, ScopePrivate)
	private := cached(0, ScopePrivate)
	k.relistsFor("alice", private, tell("x", "B"), tell("y", "same"))
	k.isHeld("alice", true)
	k.isHeld("bob", false)
	k.relistsFor("bob", private, tell("x", "B"), tell("y", "same"))
	refusedAs(t, k.approves("", "x", form("B")), CodeUnknownTool)
	out := k.approves("alice", "x", form("B"))
	if d := must[ToolApproved](t, out); d.Context != "alice" {
		t.Errorf("%+v", d)
	}
	k.isHeld("alice", false)
	k.isHeld("bob", true)
	refusedAs(t, k.approves("bob", "x", form("A")), CodeToolDiffers)
	sameKinds(t, k.approves("bob", "x", form("B")), "tool.approved")
	k.isHeld("bob", false)
	k.refolds()
}

// TestAQuarantineIsNotPassedByAnotherContext: a public list that was read for
// another context, which never knew the tool, brings a context no definition that
// it has not approved.
func TestAQuarantineIsNotPassedByAnotherContext(t *testing.T) {
	public := cached(0, ScopePublic)
	t.Run("the other never knew the tool", func(t *testing.T) {
		k := newKeeper(t)
		k.start(ruled(testConfig(PrefixOnCollision, "p"), unsubscribed, holding, inContexts("alice", "bob")))
		k.rises("p", discoverQuiet)
		k.answered("p", "alice", told(public, tell("x", "A"), tell("y", "same")))
		k.answered("p", "bob", told(public, tell("x", "B"), tell("y", "same")))
		if e := k.entry("alice", "x"); e.Held == nil && e.Digest != form("A") {
			t.Errorf("alice is given %s", e.Definition)
		}
	})
	t.Run("the other approved it", func(t *testing.T) {
		k := twoHolding(t, ScopePublic)
		k.relistsFor("alice", public, tell("x", "B"), tell("y", "same"))
		k.relistsFor("bob", public, tell("x", "B"), tell("y", "same"))
		k.approves("bob", "x", form("B"))
		k.isHeld("bob", false)
		k.isHeld("alice", true)
	})
}

// TestAnApprovalOfWhatIsNotThere: names outlast the peer that had them until the
// names are merged again, and an order about them is refused.
func TestAnApprovalOfWhatIsNotThere(t *testing.T) {
	k := holdingTool(t)
	k.relists(tell("x", "B"), tell("y", "same"))
	k.load(ruled(testConfig(PrefixOnCollision, "q"), holding))
	if d := must[CommandRefused](t, k.approves("", "x", form("B"))); d.Code == "" {
		t.Errorf("%+v", d)
	}
	k.see(ServiceStopped{Reason: "signal"})
	sameKinds(t, k.approves("", "x", form("B")))
}

// TestARouteToAHeldToolIsClosed for every way in which a call goes out.
func TestARouteToAHeldToolIsClosed(t *testing.T) {
	k := holdingTool(t, asking, resends(3))
	r := must[CallRouted](t, k.submit("", "x", can(everything)))
	k.answersCall(r, Facts{Kind: FactResult, ResultType: "input_required", Asks: []string{"roots"}})
	lost := must[CallRouted](t, k.submit("", "x"))
	k.see(ExchangeFailed{At: lost.At, RequestID: lost.RequestID, Call: lost.CallKey(), Written: "maybe", Code: CodeTransportLost})
	k.relists(tell("x", "B"), tell("y", "same"))
	sent := k.count(MethodCall)
	on := k.see(CallReceived{CallID: r.CallID, Tool: "x", Arguments: Payload{Size: 2}, Input: &Payload{Size: 1}, Capabilities: []byte(everything)})
	if d := must[CallRefused](t, on); d.Code != CodeToolQuarantined {
		t.Errorf("a submission that goes on: %+v", d)
	}
	again := k.see(OperatorCommanded{By: "oncall", Verb: VerbResend, Call: lost.CallKey(), Arguments: &Payload{Size: 2}})
	if d := must[CommandRefused](t, again); d.Code != CodeToolQuarantined {
		t.Errorf("an order to send it again: %+v", d)
	}
	if n := k.count(MethodCall); n != sent {
		t.Errorf("%d calls were sent", n-sent)
	}
}

// TestHiddenCharactersAreFlaggedOnce: a new or changed tool is warned of, the same
// one is not again.
func TestHiddenCharactersAreFlaggedOnce(t *testing.T) {
	k := holdingTool(t, func(p *PeerConfig) { p.Lists.Hold = false })
	hidden := tell("h", `seen\u200bunseen`)
	out := k.relists(tell("x", "A"), tell("y", "same"), hidden)
	d := must[ToolFlagged](t, out)
	if d.Local != "h" || len(d.Marks) != 1 || d.Marks[0].What != "zero_width" || d.Marks[0].Count != 1 {
		t.Errorf("%+v", d)
	}
	if n := len(all[ToolFlagged](k.relists(tell("x", "A"), tell("y", "same"), hidden))); n != 0 {
		t.Errorf("%d times again", n)
	}
	if n := len(all[ToolFlagged](k.relists(tell("x", "A"), tell("y", "same"), hidden+" "))); n != 0 {
		t.Errorf("%d times for white space after it", n)
	}
	k.refolds()
}

// TestTheMemoryOfNamesIsBounded: of a peer that has listed a hundred thousand
// names, tools of new ones are left out and those it had go on, held ones too.
func TestTheMemoryOfNamesIsBounded(t *testing.T) {
	k := holdingTool(t)
	many := func(round, n int) []string {
		list := make([]string, 0, n+2)
		for i := range n {
			list = append(list, fmt.Sprintf(`{"name":"r%d-%d","inputSchema":{"type":"object"}}`, round, i))
		}
		return append(list, tell("x", "A"), tell("y", "same"))
	}
	const each = catalog.MaxTools - 2
	for round := range 4 {
		k.relists(many(round, each)...)
	}
	if n := len(k.s.Peer("p").line("").known); n != 4*each+2 {
		t.Fatalf("%d names are known", n)
	}
	list := append(many(4, 20), strings.Replace(tell("r0-0", "other"), "same", "x", 1))
	d := must[CatalogAccepted](t, k.relists(list...))
	if n := len(k.s.Peer("p").line("").known); n != mostKnown {
		t.Errorf("%d names are known, at most %d may be", n, mostKnown)
	}
	if d.Tools != 6+3 || !strings.Contains(strings.Join(d.Warnings, " "), "too many names") {
		t.Errorf("%d tools of 23 stay; warned of %q", d.Tools, d.Warnings)
	}
	if code := k.refusal("", "r0-0"); code != CodeToolQuarantined {
		t.Errorf("a known tool that changed: %q", code)
	}
	if d := must[CatalogAccepted](t, k.relists(many(5, 3)...)); d.Tools != 2 {
		t.Errorf("%d tools when none may be new", d.Tools)
	}
	k.isHeld("", false)
}

// TestTheMemoryOfHeldToolsIsBounded: what is kept of definitions that are not
// listed any more is bounded in bytes, whatever a peer lists.
func TestTheMemoryOfHeldToolsIsBounded(t *testing.T) {
	k := holdingTool(t)
	long := strings.Repeat("d", 200<<10)
	for round := range 4 {
		for _, form := range []string{"A", "B"} { // 80 MiB in all
			var list []string
			for i := range 100 {
				list = append(list, tell(fmt.Sprintf("r%d-%d", round, i), form+long))
			}
			k.relists(list...)
		}
	}
	kept := func() (bytes int) {
		for _, known := range k.s.Peer("p").line("").known { // order-free: a sum
			bytes += len(known.before)
		}
		return bytes
	}
	if n := kept(); n > catalog.MaxList || n < catalog.MaxList/2 {
		t.Errorf("%d MiB are kept of tools that are not listed any more", n>>20)
	}
	var list []string
	for i := range 100 {
		list = append(list, tell(fmt.Sprintf("r0-%d", i), "A"+long))
	}
	was := kept()
	k.relists(list...) // back to what was approved: there is room again
	if n := kept(); n > was-100*len(long) || n != k.s.Peer("p").line("").before {
		t.Errorf("%d bytes are kept, and counted as %d", n, k.s.Peer("p").line("").before)
	}
}
