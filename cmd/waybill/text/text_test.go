package text

import (
	"strings"
	"testing"

	"waybill/domain"
)

func TestTheReportSpeaksOfListsThatAreNotWhatTheyShouldBe(t *testing.T) {
	for name, c := range map[string]struct {
		list domain.ListReport
		want string
	}{
		"all is well":        {domain.ListReport{Context: "default", Seq: 7, Subscription: "active"}, ""},
		"nothing advertised": {domain.ListReport{Context: "default", Seq: 7, Subscription: "none"}, ""},
		"being opened":       {domain.ListReport{Context: "default", Seq: 7, Subscription: "asked", Reading: true}, ""},
		"failing":            {domain.ListReport{Context: "default", Seq: 7, Failures: 2}, "p: list: readings that failed in a row: 2\n"},
		"ended":              {domain.ListReport{Context: "default", Subscription: "ended"}, "p: list: the subscription to its changes has ended and will be opened again\n"},
		"both, for a context": {domain.ListReport{Context: "ann", Subscription: "ended", Failures: 1},
			"p: list of context ann: readings that failed in a row: 1; the subscription to its changes has ended and will be opened again\n"},
	} {
		var out strings.Builder
		Report(&out, domain.Report{Peers: []domain.PeerReport{{Name: "p", State: "ready", Era: domain.EraModern, Lists: []domain.ListReport{c.list}}}})
		tools := "-"
		if c.list.Context != "default" {
			tools = c.list.Context + ": 0"
		}
		want := "PEER  STATE  ERA     VERSION  CACHE SCOPE  TOOLS\np     ready  modern  -        -            " + tools + "\n" + c.want + "no namespace has been merged yet\n"
		if out.String() != want {
			t.Errorf("%s:\n%swant\n%s", name, out.String(), want)
		}
	}
}

func TestTheReportNamesTheContextOfACollision(t *testing.T) {
	owners := []domain.Owner{{Peer: "a", Local: "x"}, {Peer: "b", Local: "x"}}
	var out strings.Builder
	Report(&out, domain.Report{
		Namespaces: []domain.NamespaceReport{{Context: "ann", Policy: "other", Generation: 9}, {Context: "default", Policy: "prefix-always", Tools: 3, Generation: 2}},
		Collisions: []domain.CollisionReport{{Name: "x", Candidates: owners, Winner: &owners[0], Seq: 5}, {Context: "ann", Name: "y", Candidates: owners, Seq: 6}}})
	for _, want := range []string{"collision: x is claimed by a, b; a keeps it (event 5)\n", "collision: y in context ann is claimed by a, b; nobody is routable under it (event 6)\n",
		"collision policy prefix-always: 3 tools merged, generation 2; context ann: 0 tools, generation 9\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestToolsAreALineEach(t *testing.T) {
	var out strings.Builder
	Tools(&out, domain.ToolList{Generation: 4, Stale: []string{"a", "b"}, Missing: []string{"c", "d"}, Tools: []domain.ToolEntry{
		{Canonical: "b/x", Peer: "b", Local: "x", Model: "b_x_0123456789", Since: "2026-07-28T12:00:00.25Z", SinceGen: 2, Collided: []domain.Owner{{Peer: "a", Local: "x"}, {Peer: "c", Local: "x"}}},
		{Canonical: "x", Peer: "a", Local: "x", Model: "x", Since: "2026-07-28T12:00:00Z", SinceGen: 1, Held: &domain.HeldReport{Seq: 41}},
		{Canonical: "y", Peer: "a", Local: "y", Since: "2026-07-28T12:00:00Z", SinceGen: 1},
	}})
	want := `TOOL  PEER  LOCAL NAME  SINCE                                MODEL NAME                CLAIMED BY  QUARANTINE
b/x   b     x           2026-07-28T12:00:00Z (generation 2)  b_x_0123456789            a: x, c: x  -
x     a     x           2026-07-28T12:00:00Z (generation 1)  -                         -           changed (event 41)
y     a     y           2026-07-28T12:00:00Z (generation 1)  none: two tools share it  -           -
stale: the lists of a, b may have changed
partial: no list of c yet
partial: no list of d yet
3 tools, generation 4
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestWhatChangedInATool(t *testing.T) {
	held := &domain.HeldReport{Approved: "aa", Now: "bb", Seq: 41, Diff: []string{`description: "a" -> "b"`}}
	for name, c := range map[string]struct {
		held *domain.HeldReport
		want string
	}{
		"held":        {held, "x of peer p has changed since it was approved or first seen (event 41):\n  description: \"a\" -> \"b\"\nwas aa\nnow bb\n"},
		"not at hand": {&domain.HeldReport{Approved: "aa", Now: "bb", Seq: 41, Definition: []byte(`{"name":"é"}`)}, "x of peer p has changed since it was approved or first seen (event 41):\n  it is now {\"name\":\"\\u00e9\"}\nwas aa\nnow bb\n"},
		"not held":    {nil, "x of peer p is not in quarantine; what ever changed in it is in waybill events --type tool.changed\n"},
	} {
		var out strings.Builder
		Held(&out, domain.ToolEntry{Canonical: "x", Peer: "p", Held: c.held})
		if out.String() != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, out.String(), c.want)
		}
	}
}
