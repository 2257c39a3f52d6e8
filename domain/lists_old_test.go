package domain

import (
	"math/rand"
	"strings"
	"testing"
)

// newKinds are those that rules for lists bring.
var newKinds = []string{"list.deferred", "cache.decided", "subscription.requested", "subscription.opened", "subscription.closed",
	"tool.changed", "tool.flagged", "name.flagged", "tool.approved"}

// asBefore checks that an event says nothing that it could not say before there
// were rules for lists.
func asBefore(t *testing.T, e Event) {
	t.Helper()
	for _, k := range newKinds {
		if e.Data.Kind() == k {
			t.Fatalf("event %d is %s", e.Seq, facts(t, e.Data))
		}
	}
	clean := true
	switch d := e.Data.(type) {
	case ListRequested:
		clean = d.Why == "" && d.Context == ""
	case CatalogAccepted:
		clean = d.Context == ""
	case CatalogRefused:
		clean = d.Context == ""
	case ToolRejected:
		clean = d.Context == "" && d.Reason == "" && d.Code != CodeToolTooLarge && d.Code != CodeToolExternal
	case EraDetermined:
		clean = !d.ListChanged
	case CallRouted:
		clean = d.Context == "" && d.Cache == ""
	case CallResent:
		clean = d.Context == ""
	case NamespaceMerged:
		clean = d.Context == DefaultContext
	}
	if !clean {
		t.Fatalf("event %d is %s", e.Seq, facts(t, e.Data))
	}
	for _, effect := range Effects(e) {
		switch x := effect.(type) {
		case Due:
			t.Fatalf("event %d orders %+v", e.Seq, x)
		case Send:
			if x.Context != "" || x.Types != nil || x.Method == MethodListen {
				t.Fatalf("event %d orders %+v", e.Seq, x)
			}
		}
	}
}

// TestWithoutRulesNothingIsAsked (PeerConfig.Lists nil, Config.Partial false): logs
// from before there were rules are decided as they were. The walks are those of
// TestRandomWalks.
func TestWithoutRulesNothingIsAsked(t *testing.T) {
	listed := 0
	for seed := range walks(int64(120)) {
		w := drive(t, walk(rand.New(rand.NewSource(10_000+seed)))).w
		for _, e := range w.log {
			asBefore(t, e)
		}
		listed += len(all[CatalogAccepted](w.log))
		for _, p := range w.s.Report("log").Peers {
			if p.Lists != nil {
				t.Fatalf("reported with %+v", p.Lists)
			}
		}
		if list := listTools(w.s); len(list.Stale)+len(list.Missing) > 0 {
			t.Fatalf("stale %q, missing %q", list.Stale, list.Missing)
		}
	}
	if listed < walks(500) {
		t.Errorf("%d lists: the walks do not go where they should", listed)
	}
}

// TestWithoutRulesAPeerIsNotListenedTo: whatever it advertises, and says.
func TestWithoutRulesAPeerIsNotListenedTo(t *testing.T) {
	k := newKeeper(t)
	k.start(testConfig(PrefixOnCollision, "p"))
	k.rises("p", discoverNotices)
	k.answered("p", "", told(cached(0, ScopePublic), tell("x", "A"), tell("X", "A"), tell("h", `\u200b`), `{"name":"deep","inputSchema":{"type":"object","required":null}}`))
	k.see(ListChanged{At: k.at("p"), Count: 1})
	k.see(ListChanged{At: k.at("p"), Subscription: k.last("p", "", MethodList).RequestID, Count: 1})
	k.see(ListDue{At: k.at("p")})
	k.see(SubscriptionDue{At: k.at("p")})
	k.refusal("", "nobody")
	r := must[CallRouted](t, k.submit("", "x"))
	k.answersCall(r, Facts{Kind: FactError, ErrorCode: -32602})
	k.exited("p")
	k.rises("p", discoverNotices)
	k.answered("p", "", told(cached(0, ScopePublic), tell("x", "B")))
	k.pass(86_400_000)
	if got := k.refusal("", "x"); got != "" {
		t.Errorf("a list that was read once is refused as %q", got)
	}
	for _, e := range k.log {
		asBefore(t, e)
	}
	if n := k.count(MethodList); n != 2 {
		t.Errorf("it was read %d times", n)
	}
	k.refolds()
}

// TestWhatIsWrittenWithoutRulesIsWhatItWas: the JSON of events from before has none
// of the members that were added.
func TestWhatIsWrittenWithoutRulesIsWhatItWas(t *testing.T) {
	k := newKeeper(t)
	k.start(testConfig(PrefixOnCollision, "p"))
	k.rises("p", discoverNotices)
	k.answered("p", "", listPage(cached(0, ScopePublic), "x", "bad name"))
	r := must[CallRouted](t, k.submit("", "x"))
	k.answersCall(r, complete)
	for _, e := range k.log {
		said := facts(t, e.Data)
		for _, member := range []string{`"why"`, `"list_changed"`, `"cache":`, `"form"`} {
			if strings.Contains(said, member) {
				t.Errorf("event %d says %s: %s", e.Seq, member, said)
			}
		}
		if e.Data.Kind() != "namespace.merged" && strings.Contains(said, `"context"`) {
			t.Errorf("event %d says a context: %s", e.Seq, said)
		}
	}
	b, err := EncodeConfig(testConfig(PrefixOnCollision, "p"))
	if err != nil || strings.Contains(string(b), "lists") || strings.Contains(string(b), "contexts") || strings.Contains(string(b), "partial") || strings.Contains(string(b), "moved") {
		t.Errorf("the configuration is %s (%v)", b, err)
	}
}
