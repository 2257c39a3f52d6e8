package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// tokenRole is the token command of the tests: it prints what is in a file, and notes that it ran.
const tokenRole = "print-token"

func printToken(args []string) int {
	path := strings.TrimPrefix(args[0], "in:")
	b, err := os.ReadFile(path)
	if err != nil {
		return 1
	}
	f, err := os.OpenFile(path+".ran", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	fmt.Fprintln(f, "ran")
	fmt.Println(string(b))
	return 0
}

// guarded is an endpoint that knows who asks by the token, and lists another tool for each.
type guarded struct {
	endpoint
	mu     sync.Mutex
	tokens map[string]string // to who it is
}

func newGuarded(tokens map[string]string) *guarded {
	g := &guarded{tokens: tokens}
	g.ways = []way{g.ask}
	return g
}

func (g *guarded) who(r *http.Request) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
}

// only makes one token the only good one.
func (g *guarded) only(token, who string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens = map[string]string{token: who}
}

func (g *guarded) ask(w http.ResponseWriter, r *http.Request, p posted) bool {
	who := g.who(r)
	switch {
	case who == "":
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "not with %s", r.Header.Get("Authorization"))
	case p.method == "server/discover":
		said(w, p, 200, fmt.Sprintf(`"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","instructions":%q}`,
			r.Header.Get("Authorization")))
	case p.method == "tools/list":
		said(w, p, 200, fmt.Sprintf(`"result":{"resultType":"complete","ttlMs":3600000,"cacheScope":"private","tools":[{"name":"only-%s","description":%q,"inputSchema":{"type":"object"}},`+
			`{"name":"both","inputSchema":{"type":"object"}},{"name":"barred","inputSchema":{"type":"object"}}]}`, who, r.Header.Get("Authorization")))
	case p.method == "tools/call":
		said(w, p, 200, fmt.Sprintf(`"result":{"resultType":"complete","content":[{"type":"text","text":"for %s"}]}`, who))
	default:
		return false
	}
	return true
}

// A host calls in its own authorization context and uses what it may; a token that is renewed counts for what comes later, and is written nowhere
// (design, Streamable HTTP and Calls: 401).
func TestAHostCallsInItsContextWithItsTokenAlone(t *testing.T) {
	t.Parallel()
	const ann, bob, renewed = "ann-token-7c1f5a90", "bob-token-51e0d3b2", "ann-renewed-9f2a7716"
	g := newGuarded(map[string]string{ann: "ann", bob: "bob"})
	site := newSites(t, map[string]*endpoint{"web": &g.endpoint})
	w := newWorld(t, "")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, printed := filepath.Join(w.dir, "ann.token"), filepath.Join(w.dir, "bob.text")
	for path, token := range map[string]string{file: ann + "\n", printed: bob} {
		if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	yaml := fmt.Sprintf(`nats: {listen: "127.0.0.1:0"}
authorizations:
  ann-web: {token_file: ann.token}
  bob-web: {token_command: {command: %q, args: [%s, "in:%s"]}}
hosts:
  local: {context: ann, peers: [web], tools: ["only-*", both]}
  other: {context: bob}
peers:
  web:
    transport: http
    endpoint: %s/web/mcp
    authorizations: {ann: ann-web, bob: bob-web}
`, self, tokenRole, printed, site.URL)
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ready()
	s := w.serve()
	eventually(t, "both lists are read", func() bool {
		lists := w.peer("web").Lists
		return len(lists) == 2 && lists[0].Tools == 3 && lists[1].Tools == 3
	})
	if got := toolNames(decode[toolsDoc](t, w.must(exitDone, "tools", "--json"))); !slices.Equal(got, []string{"both", "only-ann"}) {
		t.Errorf("the host sees %v", got)
	}
	w.ends("only-ann", "complete yes")
	w.ends("both", "complete yes")
	w.ends("barred", "refused not_allowed no")
	w.ends("only-bob", "refused unknown_tool no")
	g.only(renewed, "ann")
	w.ends("both", "protocol_error unauthorized no")
	if err := os.WriteFile(file, []byte(renewed), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ends("both", "complete yes")
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	for _, token := range []string{ann, bob, renewed} {
		if files := w.holding([]byte(token)); len(files) > 0 || strings.Contains(s.errs.String(), token) {
			t.Errorf("%s is written in %v or said:\n%s", token, files, s.errs.String())
		}
	}
	if b, err := os.ReadFile(printed + ".ran"); err != nil || strings.Count(string(b), "ran") != 1 {
		t.Errorf("the token command ran %d times (%v)", strings.Count(string(b), "ran"), err)
	}
	w.audit()
}

// ends calls a tool, and checks how that ends.
func (w *world) ends(tool, want string) {
	w.t.Helper()
	_, out, errs := w.run("call", "--json", tool, "{}")
	if got := ended(decode[reply](w.t, out)); got != want {
		w.t.Errorf("%s: %q, want %q\n%s%s", tool, got, want, out, errs)
	}
}

func toolNames(doc toolsDoc) []string {
	var names []string
	for _, e := range doc.Tools {
		names = append(names, e.Canonical)
	}
	return names
}

// An endpoint that refuses one credential is probed with that of the next context; only where all are refused it is closed, and an operator's word opens it again.
func TestAnUnauthorizedPeerIsClosedUntilAnOperatorSaysSo(t *testing.T) {
	t.Parallel()
	const good = "good-token-0c9be411"
	g := newGuarded(map[string]string{})
	site := newSites(t, map[string]*endpoint{"web": &g.endpoint})
	w := newWorld(t, "")
	if err := os.WriteFile(filepath.Join(w.dir, "a.token"), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := fmt.Sprintf("nats: {listen: \"127.0.0.1:0\"}\nauthorizations: {mine: {token_file: a.token}}\npeers:\n  web:\n    transport: http\n    endpoint: %s/web/mcp\n"+
		"    authorization: mine\n    allow_legacy: true\n", site.URL)
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ready()
	s := w.serve()
	eventually(t, "it is closed", func() bool { return peerOutcome(w.peer("web")) == "unavailable unknown unauthorized" })
	if reason := reasonOf(w.peer("web")); !strings.Contains(reason, "peers revive web") {
		t.Errorf("the reason says nothing to do: %s", reason)
	}
	g.only(good, "me")
	if n := g.count("initialize"); n != 0 || g.count("server/discover") != 1 {
		t.Errorf("initialize %d times, server/discover %d", n, g.count("server/discover"))
	}
	w.must(exitDone, "peers", "revive", "web", "--by", "ann")
	w.readyAgain("web")
	w.ends("both", "complete yes")
	s.stop(syscall.SIGTERM)
	if files := w.holding([]byte(good)); len(files) > 0 {
		t.Errorf("the token is in %v", files)
	}
	w.audit()
}
