package peer

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/harness/peer/web"
)

// asked is one request as an endpoint saw it.
type asked struct {
	verb   string // of HTTP
	method string // of JSON-RPC; "" for none
	id     string
	header http.Header
	body   string
}

// site is a scripted endpoint. Each method of JSON-RPC, and each verb but POST, has a way of its own to be answered.
type site struct {
	t *testing.T
	*httptest.Server

	mu   sync.Mutex
	ways map[string]http.HandlerFunc
	all  []asked
}

type askedKey struct{}

func newSite(t *testing.T) *site {
	s := &site{t: t, ways: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	a := asked{verb: r.Method, header: r.Header.Clone(), body: string(body)}
	if m, err := domain.ParseMessage(body); err == nil {
		a.method, a.id = m.MethodName(), string(m.ID)
	}
	s.mu.Lock()
	s.all = append(s.all, a)
	way := s.ways[a.method]
	if a.method == "" {
		way = s.ways[a.verb]
	}
	s.mu.Unlock()
	if way == nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(a.id))
	way(w, r)
}

// on says how a method, or a verb, is answered from now on.
func (s *site) on(what string, way http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ways[what] = way
}

// seen returns the requests of a method, or verb, so far.
func (s *site) seen(what string) []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.all), func(a asked) bool { return a.method != what && (a.method != "" || a.verb != what) })
}

// idOf is the id of the request that is being answered.
func idOf(r *http.Request) string {
	b, _ := io.ReadAll(r.Body) // from memory
	return string(b)
}

// sends answers with a status, a type and a body in which $ID is the id of the request.
func sends(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "$ID", idOf(r))) // the client may have gone
	}
}

func jsonAnswer(members string) http.HandlerFunc {
	return sends(200, "application/json", `{"jsonrpc":"2.0","id":$ID,`+members+`}`)
}

// streams answers with a stream, in which $ID is the id of the request. A piece that is "wait" waits for the client to go.
func streams(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := idOf(r)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		for _, p := range pieces {
			if p == "wait" {
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, strings.ReplaceAll(p, "$ID", id)) // the client may have gone
			w.(http.Flusher).Flush()
		}
	}
}

func event(line string) string { return "data: " + line + "\n\n" }

const (
	webDiscovered = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}`
	webComplete   = `"result":{"resultType":"complete","content":[{"type":"text","text":"good"}]}`
	webOneTool    = `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
	webInitialize = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
)

// webBench is a manager with one peer, "p", at a site.
type webBench struct {
	*Manager
	*ledger
	t    *testing.T
	site *site
	next int64
}

func webStarted(t *testing.T, s *site, change func(*Web)) *webBench {
	t.Helper()
	endpoint, err := url.Parse(s.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	w := &Web{Options: web.Options{Endpoint: endpoint, Connections: 8, Connect: 5 * time.Second, MaxHeader: 64 << 10, MaxBody: 1 << 20, MaxStream: 8 << 20}}
	if change != nil {
		change(w)
	}
	b := &webBench{ledger: newLedger(), t: t, site: s}
	cfg := testConfig(t, b.ledger, map[string]Spec{"p": {Name: "p", Web: w}})
	cfg.FrameLimit, cfg.Grace = 1<<20, time.Second
	b.Manager, err = NewManager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	b.launch(1)
	return b
}

func (b *webBench) launch(incarnation int64) {
	b.t.Helper()
	b.Do(domain.Launch{At: webAt(incarnation)}, nil)
	spawned, _ := await[domain.PeerSpawned](b.t, b.ledger, int(incarnation))
	if spawned[incarnation-1] != (domain.PeerSpawned{At: webAt(incarnation)}) {
		b.t.Fatalf("%+v", spawned)
	}
}

// ask sends a request with what the method needs, and returns its id.
func (b *webBench) ask(s domain.Send, body *domain.Body) int64 {
	b.next++
	s.RequestID = b.next
	if s.Peer == "" {
		s.At = at1
	}
	if s.Deadline == 0 {
		s.Deadline = 30_000
	}
	if s.Capabilities == nil {
		s.Capabilities = jsontext.Value("{}")
	}
	b.Do(s, body)
	return b.next
}

func (b *webBench) probe() int64 {
	return b.ask(domain.Send{Method: domain.MethodDiscover, Era: domain.EraUnknown, Version: "2026-07-28"}, nil)
}

func (b *webBench) initialize() int64 {
	return b.ask(domain.Send{Method: domain.MethodInitialize, Era: domain.EraUnknown, Version: "2025-11-25"}, nil)
}

// modern brings the peer up.
func (b *webBench) modern() {
	b.t.Helper()
	b.site.on(domain.MethodDiscover, jsonAnswer(webDiscovered))
	b.probe()
	await[domain.ProbeAnswered](b.t, b.ledger, 1)
	b.Do(domain.SelectEra{At: at1, Era: domain.EraModern, Version: "2026-07-28"}, nil)
}

// legacy brings the peer up in the legacy era, with a session where one is named.
func (b *webBench) legacy(session string) {
	b.t.Helper()
	b.site.on(domain.MethodInitialize, func(w http.ResponseWriter, r *http.Request) {
		if session != "" {
			w.Header().Set("Mcp-Session-Id", session)
		}
		jsonAnswer(webInitialize)(w, r)
	})
	b.site.on("notifications/initialized", sends(202, "", ""))
	b.initialize()
	await[domain.ProbeAnswered](b.t, b.ledger, 1)
	b.Do(domain.SelectEra{At: at1, Era: domain.EraLegacy, Version: "2025-11-25"}, nil)
}

func (b *webBench) call(id string, era domain.Era, arguments string, change ...func(*domain.Send, *domain.Body)) int64 {
	version := "2026-07-28"
	if era == domain.EraLegacy {
		version = "2025-11-25"
	}
	s := domain.Send{Method: domain.MethodCall, Era: era, Version: version, Call: "local/" + id, Tool: "x"}
	body := &domain.Body{Arguments: jsontext.Value(arguments)}
	for _, f := range change {
		f(&s, body)
	}
	return b.ask(s, body)
}

func (b *webBench) answered(n int) domain.CallAnswered {
	b.t.Helper()
	all, _ := await[domain.CallAnswered](b.t, b.ledger, n)
	return all[n-1]
}

func (b *webBench) failed(n int) domain.ExchangeFailed {
	b.t.Helper()
	all, _ := await[domain.ExchangeFailed](b.t, b.ledger, n)
	return all[n-1]
}

func errorAnswer(code int) string { return fmt.Sprintf(`"error":{"code":%d,"message":"no"}`, code) }

func webAt(incarnation int64) domain.At { return domain.At{Peer: "p", Incarnation: incarnation} }
