package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"waybill/domain/catalog"
)

const hints = `,"resultType":"complete","ttlMs":1000,"cacheScope":"public"`

func next(cursor string) string { return hints + `,"nextCursor":` + cursor }

// listing is one peer whose era is known and whose list was asked for.
func listing(t testing.TB, era Era) *world {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "archive")
	c.Peers[0].AllowLegacy = true
	w.start(c)
	w.spawned("archive")
	if era == EraModern {
		sameKinds(t, w.probed("archive", discoverResult), "era.determined", "list.requested")
	} else {
		w.probed("archive", notFound)
		sameKinds(t, w.probed("archive", legacyResult), "era.determined", "list.requested")
	}
	return w
}

func TestListIsReadPageByPage(t *testing.T) {
	w := listing(t, EraModern)
	d := must[ListRequested](t, w.listed("archive", listPage(next(`""`), "alpha")))
	if d.Cursor == nil || *d.Cursor != "" || d.Page != 2 {
		t.Fatalf("after an empty cursor: %+v; it is a cursor and is sent as one", d)
	}
	d = must[ListRequested](t, w.listed("archive", listPage(next(`"c\u00e9"`), "beta")))
	if *d.Cursor != "cé" || d.Page != 3 || w.last("archive").Cursor == nil {
		t.Fatalf("after page 2: %+v", d)
	}
	out := w.listed("archive", listPage(hints, "gamma"))
	sameKinds(t, out, "catalog.accepted", "namespace.merged")
	c := must[CatalogAccepted](t, out)
	if c.Tools != 3 || len(c.Pages) != 3 || c.CacheScope != ScopePublic || c.TTL != 1000 || w.names() != "alpha=archive:alpha beta=archive:beta gamma=archive:gamma" {
		t.Errorf("accepted %+v as %s", c, w.names())
	}
}

// TestListThatIsRefused runs every way in which a page can be no good.
func TestListThatIsRefused(t *testing.T) {
	long := `"` + strings.Repeat("c", catalog.MaxCursor+1) + `"`
	for _, c := range []struct {
		name, source string
		pages        []string
		want         Code
	}{
		{"the same cursor twice", "server/utilities/pagination", []string{listPage(next(`"8"`), "a"), listPage(next(`"8"`), "b")}, CodeListCursor},
		{"a cursor that comes back later", "server/utilities/pagination", []string{listPage(next(`"1"`)), listPage(next(`"2"`)), listPage(next(`"1"`))}, CodeListCursor},
		{"the empty cursor twice", "server/utilities/pagination", []string{listPage(next(`""`), "a"), listPage(next(`""`), "b")}, CodeListCursor},
		{"a cursor that is no string", "server/utilities/pagination", []string{listPage(next(`8`), "a")}, CodeListCursor},
		{"a cursor that is an object", "server/utilities/pagination", []string{listPage(next(`{}`), "a")}, CodeListCursor},
		{"a cursor that is too long", "server/utilities/pagination", []string{listPage(next(long), "a")}, CodeListCursor},
		{"no resultType", "seed 2.1.0 hard reject 7", []string{listPage(`,"ttlMs":1,"cacheScope":"public"`, "a")}, CodeListInvalid},
		{"another resultType", "basic, ResultType", []string{listPage(`,"resultType":"input_required"`, "a")}, CodeListInvalid},
		{"no tools", "server/tools, Listing Tools", []string{`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete"}}`}, CodeListInvalid},
		{"tools that are an object", "server/tools, Listing Tools", []string{`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":{}}}`}, CodeListInvalid},
		{"tools null", "server/tools, Listing Tools", []string{`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":null}}`}, CodeListInvalid},
		{"a result that is a list", "basic, Result Responses", []string{`{"jsonrpc":"2.0","id":$ID,"result":[]}`}, CodeListInvalid},
		{"both result and error", "basic, Responses", []string{`{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1}}`}, CodeListInvalid},
		{"neither", "basic, Responses", []string{`{"jsonrpc":"2.0","id":$ID}`}, CodeListInvalid},
		{"another jsonrpc", "basic, Responses", []string{`{"jsonrpc":"1.0","id":$ID,"result":{"tools":[],"resultType":"complete"}}`}, CodeListInvalid},
		{"an error", "basic, Error Responses", []string{notFound}, CodeListError},
		{"a modern error", "basic, Error Codes", []string{`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":""}}`}, CodeListError},
		{"an error on the second page", "basic, Error Responses", []string{listPage(next(`"1"`), "a"), notFound}, CodeListError},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := listing(t, EraModern)
			for _, p := range c.pages[:len(c.pages)-1] {
				sameKinds(t, w.listed("archive", p), "list.requested")
			}
			out := w.listed("archive", c.pages[len(c.pages)-1])
			sameKinds(t, out, "catalog.refused", "namespace.merged")
			if d := must[CatalogRefused](t, out); d.Code != c.want || d.Reason == "" {
				t.Errorf("%s: refused as %+v, want %s", c.source, d, c.want)
			}
			if r := w.s.Report("log").Peers[0]; r.State != "degraded" || r.Era != EraModern || len(r.Tools) != 0 {
				t.Errorf("%s: reported as %+v, want degraded and modern", c.source, r)
			}
			if n := w.count(MethodInitialize); n != 0 {
				t.Errorf("%d initialize after the era was known", n)
			}
		})
	}
}

func TestListLimits(t *testing.T) {
	w := listing(t, EraModern)
	var out []Event
	for i := 0; i < catalog.MaxPages; i++ {
		out = w.listed("archive", listPage(next(fmt.Sprintf(`"c%d"`, i)), fmt.Sprint("t", i)))
	}
	if d := must[CatalogRefused](t, out); d.Code != CodeListLimit || !strings.Contains(d.Reason, "100 pages") || w.count("tools/list") != catalog.MaxPages {
		t.Errorf("after %d pages: %+v", catalog.MaxPages, d)
	}
	names := make([]string, catalog.MaxTools+1)
	for i := range names {
		names[i] = fmt.Sprint("t", i)
	}
	w = listing(t, EraModern)
	if d := must[CatalogRefused](t, w.listed("archive", listPage(hints, names...))); d.Code != CodeListLimit || !strings.Contains(d.Reason, "25000 tools") {
		t.Errorf("after %d tools: %+v", len(names), d)
	}
	w = listing(t, EraModern)
	if d := must[CatalogAccepted](t, w.listed("archive", listPage(hints, names[1:]...))); d.Tools != catalog.MaxTools {
		t.Errorf("accepted %d tools, want %d", d.Tools, catalog.MaxTools)
	}
	w = listing(t, EraModern)
	for i := 1; i < catalog.MaxPages; i++ {
		w.listed("archive", listPage(next(fmt.Sprintf(`"c%d"`, i))))
	}
	if d := must[CatalogAccepted](t, w.listed("archive", listPage(hints, "last"))); len(d.Pages) != catalog.MaxPages {
		t.Errorf("accepted %d pages, want %d", len(d.Pages), catalog.MaxPages)
	}
}

// TestBadToolsAreLeftOutOneByOne (specification, server/tools, "Tool Names" and
// "Tool"): one bad tool never costs the list.
func TestBadToolsAreLeftOutOneByOne(t *testing.T) {
	const schema = `,"inputSchema":{"type":"object"}}`
	bad := []struct {
		def  string
		code Code
	}{
		{`{"name":""` + schema, CodeToolUnnamed},
		{`{"title":"x"` + schema, CodeToolUnnamed},
		{`{"name":7` + schema, CodeToolUnnamed},
		{`{"name":null` + schema, CodeToolUnnamed},
		{`null`, CodeToolUnnamed},
		{`"ok"`, CodeToolUnnamed},
		{`{"name":"a b"` + schema, CodeToolNameInvalid},
		{`{"name":"a,b"` + schema, CodeToolNameInvalid},
		{`{"name":"a\tb"` + schema, CodeToolNameInvalid},
		{`{"name":"a\nb"` + schema, CodeToolNameInvalid},
		{`{"name":"` + strings.Repeat("n", 129) + `"` + schema, CodeToolNameInvalid},
		{`{"name":"🔧"` + schema, CodeToolNameInvalid},
		{`{"name":"se\u0430rch"` + schema, CodeToolNameInvalid},
		{`{"name":"search\u200b"` + schema, CodeToolNameInvalid},
		{`{"name":"\uff53earch"` + schema, CodeToolNameInvalid},
		{`{"name":"\u202ehcraes"` + schema, CodeToolNameInvalid},
		{`{"name":"s1"}`, CodeToolSchemaInvalid},
		{`{"name":"s2","inputSchema":null}`, CodeToolSchemaInvalid},
		{`{"name":"s3","inputSchema":true}`, CodeToolSchemaInvalid},
		{`{"name":"s4","inputSchema":[]}`, CodeToolSchemaInvalid},
		{`{"name":"search","inputSchema":{"type":"object","required":["x"]}}`, CodeToolDuplicate},
	}
	defs := []string{toolDef("search"), toolDef("dotted.tool"), toolDef("dir/tool"), toolDef(strings.Repeat("n", 128))}
	for _, b := range bad {
		defs = append(defs, b.def)
	}
	w := listing(t, EraModern)
	out := w.listed("archive", `{"jsonrpc":"2.0","id":$ID,"result":{"tools":[`+strings.Join(defs, ",")+`]`+hints+`}}`)
	rejected := all[ToolRejected](out)
	if len(rejected) != len(bad) {
		t.Fatalf("%d tools rejected, want %d", len(rejected), len(bad))
	}
	for i, d := range rejected {
		if d.Code != bad[i].code || d.Position != 4+i || len(d.Name) > 128*10 || strings.ContainsFunc(d.Name, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%s: rejected as %+v, want %s", bad[i].def, d, bad[i].code)
		}
	}
	if d := must[CatalogAccepted](t, out); d.Tools != 4 {
		t.Errorf("accepted %d tools, want 4", d.Tools)
	}
}

// TestDuplicatesAcrossPages (server/utilities/caching, "Interaction with
// Pagination"): the first by page and position stands.
func TestDuplicatesAcrossPages(t *testing.T) {
	w := listing(t, EraModern)
	w.listed("archive", listPage(next(`"2"`), "a", "b"))
	second := strings.Replace(listPage(hints, "b", "c"), `"type":"object"`, `"type":"object","title":"other"`, 1)
	out := w.listed("archive", second)
	if d := must[ToolRejected](t, out); d.Code != CodeToolDuplicate || d.Name != "b" || d.Position != 2 {
		t.Errorf("rejected %+v", d)
	}
	tools := listTools(w.s).Tools
	if len(tools) != 3 || strings.Contains(string(tools[1].Definition), "other") || string(tools[1].Definition) != toolDef("b") {
		t.Errorf("b is %s", tools[1].Definition)
	}
}

// TestCacheHintsOfPages (server/utilities/caching, "Interaction with
// Pagination"): as fresh as the earliest-expiring page, private on any doubt.
func TestCacheHintsOfPages(t *testing.T) {
	for _, c := range []struct {
		name     string
		pages    []string
		ttl      int64
		scope    string
		warnings int
	}{
		{"all public", []string{`"ttlMs":5,"cacheScope":"public"`, `"ttlMs":9,"cacheScope":"public"`}, 5, ScopePublic, 0},
		{"the second expires first", []string{`"ttlMs":9,"cacheScope":"public"`, `"ttlMs":5,"cacheScope":"public"`}, 5, ScopePublic, 0},
		{"all private", []string{`"ttlMs":9,"cacheScope":"private"`, `"ttlMs":9,"cacheScope":"private"`}, 9, ScopePrivate, 0},
		{"pages disagree", []string{`"ttlMs":9,"cacheScope":"public"`, `"ttlMs":9,"cacheScope":"private"`}, 9, ScopePrivate, 1},
		{"pages disagree the other way", []string{`"ttlMs":9,"cacheScope":"private"`, `"ttlMs":9,"cacheScope":"public"`}, 9, ScopePrivate, 1},
		{"no ttlMs anywhere: one warning", []string{`"cacheScope":"public"`, `"cacheScope":"public"`, `"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"no ttlMs on one page", []string{`"ttlMs":9,"cacheScope":"public"`, `"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"ttlMs null", []string{`"ttlMs":null,"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"ttlMs negative", []string{`"ttlMs":-5,"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"ttlMs beyond all time", []string{`"ttlMs":1e300,"cacheScope":"public"`}, 0, ScopePublic, 1},
		{"ttlMs with a fraction", []string{`"ttlMs":5.9,"cacheScope":"public"`}, 5, ScopePublic, 0},
		{"unknown scope", []string{`"ttlMs":5,"cacheScope":"team"`}, 5, ScopePrivate, 1},
		{"neither", []string{`"x":1`}, 0, ScopePrivate, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := listing(t, EraModern)
			var out []Event
			for i, p := range c.pages {
				more := `,"resultType":"complete",` + p
				if i < len(c.pages)-1 {
					more += fmt.Sprintf(`,"nextCursor":"%d"`, i)
				}
				out = w.listed("archive", listPage(more, fmt.Sprint("t", i)))
			}
			d := must[CatalogAccepted](t, out)
			if d.TTL != c.ttl || d.CacheScope != c.scope || len(d.Warnings) != c.warnings {
				t.Errorf("accepted with %d, %s, %q", d.TTL, d.CacheScope, d.Warnings)
			}
			if r := w.s.Report("log").Peers[0]; *r.CacheScope != c.scope || !slices.Equal(r.Warnings, append([]string{}, d.Warnings...)) {
				t.Errorf("reported with %s, %q", *r.CacheScope, r.Warnings)
			}
		})
	}
}

// TestLegacyListNeedsNoModernFields (seed 2.1.0 rule 5): an absent resultType is
// complete, and no cache field is expected.
func TestLegacyListNeedsNoModernFields(t *testing.T) {
	w := listing(t, EraLegacy)
	d := must[CatalogAccepted](t, w.listed("archive", listPage("", "old")))
	if d.Tools != 1 || d.CacheScope != ScopePrivate || d.TTL != 0 || len(d.Warnings) != 0 {
		t.Errorf("accepted %+v", d)
	}
	w = listing(t, EraLegacy)
	must[CatalogAccepted](t, w.listed("archive", listPage(hints, "old")))
	w = listing(t, EraLegacy)
	if d := must[CatalogRefused](t, w.listed("archive", listPage(`,"resultType":"partial"`, "old"))); d.Code != CodeListInvalid {
		t.Errorf("refused %+v", d)
	}
}

// TestListUnderAnotherIdIsDropped, and the wait goes on.
func TestListUnderAnotherIdIsDropped(t *testing.T) {
	w := listing(t, EraModern)
	x, frame := w.last("archive"), w.frame("archive", toolList("x"))
	for _, d := range []CatalogListed{
		{At: x.At, RequestID: x.RequestID + 1},
		{At: x.At, RequestID: x.RequestID - 1},
		{At: At{"archive", x.Incarnation + 1}, RequestID: x.RequestID},
		{At: At{"nobody", 1}, RequestID: x.RequestID},
	} {
		d.Frame = RefTo([]byte(frame))
		sameKinds(t, w.see(d, frame), "answer.dropped")
	}
	sameKinds(t, w.listed("archive", toolList("x")), "catalog.accepted", "namespace.merged")
}

func TestListThatDoesNotCome(t *testing.T) {
	w := listing(t, EraModern)
	out := w.silent("archive")
	if d := must[CatalogRefused](t, out); d.Code != CodeListTimeout {
		t.Errorf("silence: %+v", d)
	}
	sameKinds(t, w.listed("archive", toolList("late")), "answer.dropped")
	for _, code := range []Code{CodeTransportLost, CodeRequestTooLarge} {
		w = listing(t, EraModern)
		x := w.last("archive")
		want := CodeListLost
		if code != CodeTransportLost {
			want = code
		}
		if d := must[CatalogRefused](t, w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: "no", Code: code})); d.Code != want {
			t.Errorf("%s: %+v", code, d)
		}
	}
	w = listing(t, EraModern) // the exit alone, with no word about the request
	gone := PeerExited{At: w.at("archive"), Status: 1, Cause: "exited"}
	sameKinds(t, w.see(gone), "catalog.refused", "peer.restarted", "namespace.merged")
	sameKinds(t, w.see(gone))
}

// TestRefusedListKeepsTheLastGoodOne and marks it.
func TestRefusedListKeepsTheLastGoodOne(t *testing.T) {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "archive")
	w.start(c)
	w.ready("archive", "x")
	w.start(c)
	w.spawned("archive")
	w.probed("archive", discoverResult)
	must[CatalogRefused](t, w.listed("archive", notFound))
	r := w.s.Report("log").Peers[0]
	if r.State != "ready" || *r.Code != CodeListError || len(r.Warnings) != 1 || len(r.Tools) != 1 {
		t.Errorf("reported as %+v", r)
	}
	if got := w.refusal("x", 0); got != "" {
		t.Errorf("its tool is refused: %s", got)
	}
}

// TestToolThatWentAwayHasNoRoute: a fresh list counts before the names are
// merged again.
func TestToolThatWentAwayHasNoRoute(t *testing.T) {
	w := newWorld(t)
	c := testConfig(PrefixOnCollision, "a", "b")
	w.start(c)
	w.ready("a", "x", "y")
	w.ready("b", "z")
	w.start(c)
	w.ready("a", "y")
	if got := w.refusal("x", 0); got != CodeUnknownTool {
		t.Errorf("refused as %q, want unknown_tool", got)
	}
	if got := w.refusal("y", 0); got != "" {
		t.Errorf("a tool that is still listed is refused: %s", got)
	}
}

// TestNoToolsCapabilityMeansNoList: tools/list is sent only if capabilities.tools
// is an object.
func TestNoToolsCapabilityMeansNoList(t *testing.T) {
	for _, capabilities := range []string{`{}`, `{"tools":true}`, `{"tools":null}`, `{"Tools":{}}`, `{"tools":[]}`} {
		w := newWorld(t)
		w.start(testConfig(PrefixOnCollision, "archive"))
		w.spawned("archive")
		out := w.probed("archive", strings.Replace(discoverResult, `{"tools":{}}`, capabilities, 1))
		sameKinds(t, out, "era.determined", "catalog.accepted", "namespace.merged")
		if r := w.s.Report("log").Peers[0]; r.State != "ready" || w.count("tools/list") != 0 {
			t.Errorf("%s: reported as %+v", capabilities, r)
		}
	}
}

func TestNamesThatMayNotBe(t *testing.T) {
	for s, want := range map[string]bool{"a": true, "a-b_c9": true, "9": true, strings.Repeat("a", 63): true, "": false,
		strings.Repeat("a", 64): false, "-a": false, "_a": false, "A": false, "a.b": false, "a/b": false, "é": false} {
		if ValidName(s) != want {
			t.Errorf("ValidName(%q) is %t", s, !want)
		}
	}
}
