package domain

import (
	"slices"
	"strings"
	"testing"

	"waybill/domain/names"
)

// movedOn is a keeper in which the bare name x went from b to a at run time, when
// a's list was read again. Its moved_window is in milliseconds.
func movedOn(t testing.TB, window int64) *keeper {
	k := newKeeper(t)
	c := ruled(testConfig(PrefixOnCollision, "a", "b"), unsubscribed)
	c.Moved = window
	k.start(c)
	k.rises("a", discoverQuiet)
	k.answered("a", "", listPage(cached(0, ScopePublic), "y"))
	k.rises("b", discoverQuiet)
	k.answered("b", "", listPage(cached(0, ScopePublic), "x", "z"))
	k.pass(5_000)
	k.reads("")
	out := k.answered("a", "", listPage(cached(0, ScopePublic), "x", "y"))
	sameKinds(t, out, "catalog.accepted", "collision.decided", "name.moved", "namespace.merged")
	if d := must[NameMoved](t, out); d != (NameMoved{Context: DefaultContext, Name: "x", From: Owner{Peer: "b", Local: "x"}, To: Owner{Peer: "a", Local: "x"}}) {
		t.Errorf("%+v", d)
	}
	k.answered("b", "", listPage(cached(0, ScopePublic), "x", "z"))
	return k
}

func ofGeneration(n int64) func(*CallReceived) { return func(d *CallReceived) { d.Generation = n } }

// TestNamesThatMoveWhileTheServiceRuns (design, "Namespace"): a call that names the
// generation it saw is refused if its route changed since, and for a while one that
// names none is refused too. The while is configurable.
func TestNamesThatMoveWhileTheServiceRuns(t *testing.T) {
	const minute = 60_000
	for _, c := range []struct {
		name       string
		window     int64
		tool       string
		generation int64
		later      int64 // nanoseconds after it moved
		want       Code
	}{
		{"no generation, at once", 0, "x", 0, 0, CodeNameMoved},
		{"no generation, just inside ten minutes", 0, "x", 0, 10*minute*ms - 1, CodeNameMoved},
		{"no generation, after ten minutes", 0, "x", 0, 10 * minute * ms, ""},
		{"just inside a window of a minute", minute, "x", 0, minute*ms - 1, CodeNameMoved},
		{"after a window of a minute", minute, "x", 0, minute * ms, ""},
		{"just inside a window of an hour", 60 * minute, "x", 0, 60*minute*ms - 1, CodeNameMoved},
		{"after the shortest window", 1, "x", 0, 1 * ms, ""},
		{"the generation it saw", minute, "x", 1, 0, CodeStaleRoute},
		{"the generation it saw, long after", minute, "x", 1, 600 * minute * ms, CodeStaleRoute},
		{"the new generation, at once", 0, "x", 2, 0, ""},
		{"one that does not exist", 0, "x", 3, 0, CodeUnknownGen},
		{"a name that stayed", 0, "z", 0, 0, ""},
		{"a name that stayed, the old generation", 0, "z", 1, 0, ""},
		{"the name it has now", 0, "b/x", 0, 0, ""},
		{"the name it has now, the old generation", 0, "b/x", 1, 0, CodeStaleRoute},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := movedOn(t, c.window)
			k.now += c.later
			if got := k.refusal("", c.tool, ofGeneration(c.generation)); got != c.want {
				t.Errorf("refused as %q, want %q", got, c.want)
			}
		})
	}
}

// TestTheReasonNamesNoOtherWindow than the one that is configured.
func TestTheReasonNamesNoOtherWindow(t *testing.T) {
	k := movedOn(t, 60_000)
	if d := must[CallRefused](t, k.submit("", "x")); d.Code != CodeNameMoved || strings.Contains(d.Reason, "ten minutes") {
		t.Errorf("with a window of a minute: %+v", d)
	}
}

// TestSinceWhenANameIsWhoseItIs (ToolEntry): the time and generation with which it
// came to its owner.
func TestSinceWhenANameIsWhoseItIs(t *testing.T) {
	k := movedOn(t, 0)
	for name, want := range map[string]int64{"x": 2, "b/x": 2, "y": 1, "z": 1} {
		if e := k.entry("", name); e.SinceGen != want || e.Since == "" {
			t.Errorf("%s: %+v, want generation %d", name, e, want)
		}
	}
	if e := k.entry("", "x"); !slices.Equal(e.Collided, []Owner{{Peer: "b", Local: "x"}}) {
		t.Errorf("x collided with %v", e.Collided)
	}
	if e := k.entry("", "b/x"); !slices.Equal(e.Collided, []Owner{{Peer: "a", Local: "x"}}) {
		t.Errorf("b/x collided with %v", e.Collided)
	}
	if e := k.entry("", "z"); e.Collided != nil {
		t.Errorf("z collided with %v", e.Collided)
	}
	var pages []string
	for after := ""; ; {
		list := k.s.Tools("", after, 1, k.mono()).Tools
		if len(list) == 0 {
			break
		}
		after = list[0].Canonical
		pages = append(pages, after)
	}
	if !slices.Equal(pages, []string{"b/x", "x", "y", "z"}) {
		t.Errorf("page by page: %v", pages)
	}
}

func inModelForm(d *CallReceived) { d.Form = ModelForm }

// TestACallByItsModelName (CallReceived.Form): found by lookup alone, in the same
// way everywhere, and never taken for a canonical name.
func TestACallByItsModelName(t *testing.T) {
	k := newKeeper(t)
	c := ruled(testConfig(PrefixOnCollision, "a", "b"), unsubscribed, func(p *PeerConfig) {
		p.Keep, p.Idempotency = p.Name == "b", map[string]string{"x": "key"}
	})
	k.start(c)
	k.rises("a", discoverQuiet)
	k.answered("a", "", listPage(cached(60_000, ScopePublic), "x", "dotted.tool", "plain"))
	k.rises("b", discoverQuiet)
	k.answered("b", "", listPage(cached(60_000, ScopePublic), "x"))
	for _, e := range k.s.Tools("", "", 0, k.mono()).Tools {
		if e.Model == "" || e.Model != names.ModelName(e.Canonical) || strings.ContainsAny(e.Model, "/.") || len(e.Model) > 64 {
			t.Errorf("%s is %q to models", e.Canonical, e.Model)
		}
		d := must[CallRouted](t, k.submit("", e.Model, inModelForm))
		if d.Tool != e.Canonical || d.Peer != e.Peer || d.Local != e.Local {
			t.Errorf("%q is routed as %+v", e.Model, d)
		}
		k.answersCall(d, complete)
		if e.Model != e.Canonical {
			if got := k.refusal("", e.Model); got != CodeUnknownTool {
				t.Errorf("as a canonical name %q is %q", e.Model, got)
			}
			if got := k.refusal("", e.Canonical, inModelForm); got != CodeUnknownTool {
				t.Errorf("in the form of models %q is %q", e.Canonical, got)
			}
		}
		said := CallReceived{Tool: e.Model, Form: ModelForm}
		if got := k.s.Keeps(said); got != (e.Peer == "b") {
			t.Errorf("the bytes of calls of %q are kept: %t", e.Model, got)
		}
		if got := k.s.CarriesKey(said, []byte(`{"key":"1"}`)); got != (e.Local == "x") {
			t.Errorf("calls of %q carry a key: %t", e.Model, got)
		}
	}
	for _, c := range []struct {
		tool       string
		generation int64
		want       Code
	}{{"nobody", 0, CodeUnknownTool}, {"", 0, CodeUnknownTool}, {names.ModelName("b/x"), 9, CodeUnknownGen}} {
		if got := k.refusal("", c.tool, inModelForm, ofGeneration(c.generation)); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestNamesThatLookAlikeAreFlaggedOnce: each new name once, with those that it could
// be taken for; what is there stays unsaid until it goes and comes back.
func TestNamesThatLookAlikeAreFlaggedOnce(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "a", "b"), unsubscribed))
	flags := func(peer string, tools ...string) string {
		k.pass(5_000)
		k.reads("")
		var out []string
		for _, d := range all[NameFlagged](k.answered(peer, "", listPage(cached(0, ScopePublic), tools...))) {
			if d.Context != DefaultContext {
				t.Errorf("%+v", d)
			}
			out = append(out, d.Name+"~"+strings.Join(d.Alike, ","))
		}
		return strings.Join(out, " ")
	}
	for _, peer := range []string{"a", "b"} {
		k.rises(peer, discoverQuiet)
	}
	for _, c := range []struct {
		peer, tools, want string
	}{
		{"a", "search other", ""},
		{"b", "thing", ""},
		{"b", "thing Search", "Search~search"},
		{"b", "thing Search", ""},
		{"b", "thing Search 5earch", "5earch~Search,search"},
		{"a", "search other SEARCH", "SEARCH~5earch,Search,search"},
		{"b", "thing", ""},
		{"b", "thing Search", "Search~SEARCH,search"},
		{"a", "search other SEARCH Search", ""}, // it moves, and is not new
	} {
		if got := flags(c.peer, strings.Fields(c.tools)...); got != c.want {
			t.Errorf("%s lists %s: flagged %q, want %q", c.peer, c.tools, got, c.want)
		}
	}
	k.refolds()
}

// TestFlaggedNamesAreBounded: so many names alike, and so many new ones, cost no
// more than so much.
func TestFlaggedNamesAreBounded(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), unsubscribed))
	k.rises("p", discoverQuiet)
	var tools []string
	for i := range 1 << 10 { // tttttttttt in every mixture of letters
		name := []byte("tttttttttt")
		for b := range name {
			if i>>b&1 == 1 {
				name[b] = 'T'
			}
		}
		tools = append(tools, string(name))
	}
	flagged := all[NameFlagged](k.answered("p", "", listPage(cached(0, ScopePublic), tools...)))
	if len(flagged) != mostFlagged {
		t.Errorf("%d names are flagged", len(flagged))
	}
	for _, d := range flagged {
		if len(d.Alike) != 8 || slices.Contains(d.Alike, d.Name) {
			t.Fatalf("%+v", d)
		}
	}
}
