package domain

import (
	"slices"
	"strings"
	"testing"
)

// holdingTool is one modern peer "p" whose changed tools are held, with the tool x
// in its first form, A, and y beside it.
func holdingTool(t testing.TB, change ...func(*PeerConfig)) *keeper {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), append([]func(*PeerConfig){unsubscribed, holding}, change...)...))
	k.rises("p", discoverQuiet)
	k.answered("p", "", told(cached(0, ScopePublic), tell("x", "A"), tell("y", "same")))
	return k
}

// lists reads the list of "p" again: these definitions.
func (k *keeper) relists(definitions ...string) []Event {
	k.t.Helper()
	k.pass(5_000)
	k.reads("")
	return k.answered("p", "", told(cached(0, ScopePublic), definitions...))
}

// form is the digest of the definition of x.
func form(description string) string { return digest([]byte(tell("x", description))) }

// isHeld checks whether x is in quarantine, in every way in which that shows.
func (k *keeper) isHeld(context string, want bool) {
	k.t.Helper()
	e, code := k.entry(context, "x"), k.refusal(context, "x")
	if want && (code != CodeToolQuarantined || e.Held == nil || e.Definition != nil) || !want && (code != "" || e.Held != nil || e.Definition == nil) {
		k.t.Errorf("held should be %t: a call is refused as %q; shown as %+v with %s", want, code, e.Held, e.Definition)
	}
	if code := k.refusal(context, "y"); code != "" {
		k.t.Errorf("another tool of the list is refused: %s", code)
	}
}

func (k *keeper) approves(context, tool, digest string) []Event {
	return k.see(OperatorCommanded{By: "oncall", Verb: VerbApprove, Tool: tool, Context: context, Digest: digest})
}

// refusedAs checks that an order changes nothing, and why.
func refusedAs(t testing.TB, out []Event, want Code) {
	t.Helper()
	sameKinds(t, out, "command.refused")
	if d := must[CommandRefused](t, out); d.Code != want || d.Verb != VerbApprove || d.Reason == "" {
		t.Errorf("refused as %+v, want %s", d, want)
	}
}

// TestAToolThatChangesIsRecorded (decide_tools.go; design, "Lists"): with what
// changed, and it is routed all the same where the configuration says record.
func TestAToolThatChangesIsRecorded(t *testing.T) {
	k := holdingTool(t, func(p *PeerConfig) { p.Lists.Hold = false })
	if n := len(all[ToolChanged](k.log)); n != 0 {
		t.Fatalf("%d changes in a first list", n)
	}
	out := k.relists(tell("x", "B"), tell("y", "same"), tell("z", "new"))
	sameKinds(t, out, "tool.changed", "catalog.accepted", "namespace.merged")
	d := must[ToolChanged](t, out)
	if d.Local != "x" || d.From != form("A") || d.To != form("B") || d.Held || len(d.Diff) != 1 || !strings.Contains(d.Diff[0], `"A"`) || !strings.Contains(d.Diff[0], `"B"`) {
		t.Errorf("%+v", d)
	}
	k.isHeld("", false)
	if got := k.entry("", "x"); string(got.Definition) != tell("x", "B") || got.Digest != form("B") {
		t.Errorf("%+v", got)
	}
	sameKinds(t, k.relists(tell("z", "new"), tell("y", "same"), tell("x", "B")), "catalog.accepted") // another order is no change
	refusedAs(t, k.approves("", "x", form("B")), CodeNotQuarantined)
	k.refolds()
}

// TestAToolThatChangesIsHeld: refused, shown with what changed and without its
// definition, until somebody approves it as it is now.
func TestAToolThatChangesIsHeld(t *testing.T) {
	k := holdingTool(t)
	was := k.names("")
	out := k.relists(tell("x", "B"), tell("y", "same"))
	sameKinds(t, out, "tool.changed", "catalog.accepted")
	if d := must[ToolChanged](t, out); !d.Held || d.From != form("A") || d.To != form("B") {
		t.Errorf("%+v", d)
	}
	k.isHeld("", true)
	e := k.entry("", "x")
	if e.Held.Approved != form("A") || e.Held.Now != form("B") || e.Held.Seq != out[0].Seq || len(e.Held.Diff) != 1 || !strings.Contains(e.Held.Diff[0], `"B"`) || e.Digest != form("B") {
		t.Errorf("%+v", e.Held)
	}
	if k.names("") != was {
		t.Errorf("its name is gone: %s", k.names(""))
	}
	r := must[CallRefused](t, k.submit("", "x", patient))
	if r.Code != CodeToolQuarantined || !strings.Contains(r.Reason, "approve") {
		t.Errorf("a patient call: %+v", r)
	}
	sameKinds(t, k.relists(tell("x", "B"), tell("y", "same")), "catalog.accepted") // as it was a moment ago
	k.isHeld("", true)
	out = k.approves("", "x", form("B"))
	sameKinds(t, out, "tool.approved")
	if d := must[ToolApproved](t, out); d != (ToolApproved{By: "oncall", Peer: "p", Name: "x", Local: "x", Digest: form("B")}) {
		t.Errorf("%+v", d)
	}
	k.isHeld("", false)
	k.refolds()
}

// TestWhatIsApproved: the tool as it was looked at, and nothing else.
func TestWhatIsApproved(t *testing.T) {
	k := holdingTool(t)
	refusedAs(t, k.approves("", "x", form("A")), CodeNotQuarantined)
	k.relists(tell("x", "B"), tell("y", "same"))
	for _, c := range []struct {
		context, tool, digest string
		want                  Code
	}{
		{"", "x", form("A"), CodeToolDiffers}, {"", "x", "", CodeToolDiffers}, {"", "x", form("C"), CodeToolDiffers}, {"", "x", strings.ToUpper(form("B")), CodeToolDiffers},
		{"", "y", form("B"), CodeNotQuarantined}, {"", "nobody", form("B"), CodeUnknownTool}, {"", "p/x", form("B"), CodeUnknownTool}, {"", "", form("B"), CodeUnknownTool},
		{"mallory", "x", form("B"), CodeUnknownTool},
	} {
		refusedAs(t, k.approves(c.context, c.tool, c.digest), c.want)
		k.isHeld("", true)
	}
	k.relists(tell("x", "C"), tell("y", "same")) // it changes while somebody looks at B
	refusedAs(t, k.approves("", "x", form("B")), CodeToolDiffers)
	k.isHeld("", true)
	sameKinds(t, k.approves(DefaultContext, "x", form("C")), "tool.approved")
	k.isHeld("", false)
	refusedAs(t, k.approves("", "x", form("C")), CodeNotQuarantined)
	k.refolds()
}

// TestAHeldToolThatChangesAgain is compared with what was approved; and back to
// that it is free.
func TestAHeldToolThatChangesAgain(t *testing.T) {
	k := holdingTool(t)
	k.relists(tell("x", "B"), tell("y", "same"))
	out := k.relists(tell("x", "C"), tell("y", "same"))
	d := must[ToolChanged](t, out)
	if !d.Held || d.From != form("A") || d.To != form("C") || !strings.Contains(strings.Join(d.Diff, " "), `"A"`) {
		t.Errorf("%+v", d)
	}
	if h := k.entry("", "x").Held; h == nil || h.Approved != form("A") || h.Now != form("C") || h.Seq != out[0].Seq {
		t.Errorf("%+v", h)
	}
	k.isHeld("", true)
	out = k.relists(tell("x", "A"), tell("y", "same"))
	sameKinds(t, out, "tool.changed", "catalog.accepted")
	if d := must[ToolChanged](t, out); d.Held || d.To != form("A") || !slices.Equal(d.Diff, []string{"it is again what it was when it was approved"}) {
		t.Errorf("%+v", d)
	}
	k.isHeld("", false)
	if d := must[ToolChanged](t, k.relists(tell("x", "B"), tell("y", "same"))); !d.Held || d.From != form("A") {
		t.Errorf("to B again: %+v", d)
	}
	k.isHeld("", true)
	k.refolds()
}

// TestAToolThatGoesAndComesBack: its name remembers, so that another definition
// is a change, not a new tool.
func TestAToolThatGoesAndComesBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		lists []string // descriptions of x; "" where it is not listed
		held  bool
		last  string // kinds that follow from the last list
	}{
		{"as it was", []string{"", "A"}, false, "catalog.accepted namespace.merged"},
		{"as another", []string{"", "B"}, true, "tool.changed catalog.accepted namespace.merged"},
		{"held, gone and back as it was held", []string{"B", "", "B"}, true, "catalog.accepted namespace.merged"},
		{"held, gone and back as it was approved", []string{"B", "", "A"}, false, "tool.changed catalog.accepted namespace.merged"},
		{"held, gone and back as a third", []string{"B", "", "C"}, true, "tool.changed catalog.accepted namespace.merged"},
		{"gone twice", []string{"", "", "B"}, true, "tool.changed catalog.accepted namespace.merged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := holdingTool(t)
			var out []Event
			for _, form := range c.lists {
				list := []string{tell("y", "same")}
				if form != "" {
					list = append(list, tell("x", form))
				}
				out = k.relists(list...)
			}
			sameKinds(t, out, strings.Fields(c.last)...)
			k.isHeld("", c.held)
			if d, ok := find[ToolChanged](out); ok && c.held && d.From != form("A") {
				t.Errorf("%+v", d)
			}
			if c.held {
				sameKinds(t, k.approves("", "x", k.entry("", "x").Digest), "tool.approved")
				k.isHeld("", false)
			}
			k.refolds()
		})
	}
}

// TestAQuarantineSurvives a restart of the peer, of the service, and a fold of the
// log alone; a list that fails has no part in it.
func TestAQuarantineSurvives(t *testing.T) {
	again := func(k *keeper) {
		k.rises("p", discoverQuiet)
		k.answered("p", "", told(cached(0, ScopePublic), tell("x", "B"), tell("y", "same")))
	}
	for name, then := range map[string]func(*keeper){
		"the peer": func(k *keeper) { k.exited("p"); again(k) },
		"the service": func(k *keeper) {
			k.start(ruled(testConfig(PrefixOnCollision, "p"), unsubscribed, holding))
			again(k)
		},
		"a list that fails": func(k *keeper) {
			k.pass(5_000)
			k.reads("")
			k.answered("p", "", notFound)
		},
		"a fold": func(k *keeper) {
			folded := NewState()
			for _, e := range k.log {
				folded.Apply(e)
			}
			k.s = folded
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := holdingTool(t)
			k.relists(tell("x", "B"), tell("y", "same"))
			then(k)
			k.isHeld("", true)
			if h := k.entry("", "x").Held; h == nil || h.Approved != form("A") || !strings.Contains(strings.Join(h.Diff, " "), `"A"`) {
				t.Errorf("shown as %+v", h)
			}
			sameKinds(t, k.approves("", "x", form("B")), "tool.approved")
			then(k)
			k.isHeld("", false)
			k.refolds()
		})
	}
}

// TestRecordAndQuarantineAreSwitched: a configuration that records lets a held
// tool go, and one that holds again holds what was never approved.
func TestRecordAndQuarantineAreSwitched(t *testing.T) {
	load := func(k *keeper, hold bool, x string) {
		k.start(ruled(testConfig(PrefixOnCollision, "p"), unsubscribed, func(p *PeerConfig) { p.Lists.Hold = hold }))
		k.rises("p", discoverQuiet)
		k.answered("p", "", told(cached(0, ScopePublic), tell("x", x), tell("y", "same")))
	}
	t.Run("record, and back", func(t *testing.T) {
		k := holdingTool(t)
		k.relists(tell("x", "B"), tell("y", "same"))
		load(k, false, "B")
		k.isHeld("", false)
		load(k, true, "B")
		k.isHeld("", true)
		k.refolds()
	})
	t.Run("it changes while changes are recorded", func(t *testing.T) {
		k := holdingTool(t)
		k.relists(tell("x", "B"), tell("y", "same"))
		load(k, false, "C")
		if d := must[ToolChanged](t, k.log[len(k.log)-4:]); d.Held || d.To != form("C") {
			t.Errorf("%+v", d)
		}
		load(k, true, "C")
		k.isHeld("", false)
		load(k, true, "B")
		k.isHeld("", true)
		k.refolds()
	})
	t.Run("it is approved while changes are recorded", func(t *testing.T) {
		k := holdingTool(t)
		k.relists(tell("x", "B"), tell("y", "same"))
		load(k, false, "B")
		sameKinds(t, k.approves("", "x", form("B")), "tool.approved")
		load(k, true, "B")
		k.isHeld("", false)
	})
	t.Run("it changed while nothing was watched", func(t *testing.T) {
		k := holdingTool(t)
		k.start(testConfig(PrefixOnCollision, "p"))
		k.rises("p", discoverQuiet)
		k.answered("p", "", told(cached(0, ScopePublic), tell("x", "B"), tell("y", "same")))
		k.isHeld("", false)
		load(k, true, "B")
		k.isHeld("", true)
	})
}
