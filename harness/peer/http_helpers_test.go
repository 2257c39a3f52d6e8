package peer

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
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
	t testing.TB
	*httptest.Server

	mu    sync.Mutex
	ways  map[string]http.HandlerFunc
	all   []asked
	left  map[string]int // requests that the client went away from, by method or verb
	conns map[net.Conn]bool
	made  int // connections
	door  net.Listener
}

func newSite(t testing.TB) *site {
	s := &site{t: t, ways: map[string]http.HandlerFunc{}, left: map[string]int{}, conns: map[net.Conn]bool{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ConnState = s.connected
	s.Start()
	s.door = s.Listener
	t.Cleanup(s.Close)
	return s
}

// newFleetingSite has every connection closed after its answer, so that the next request needs another.
func newFleetingSite(t testing.TB) *site {
	s := newSite(t)
	s.Config.SetKeepAlivesEnabled(false)
	return s
}

func (s *site) connected(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.conns[c] = true
		s.made++
	case http.StateClosed, http.StateHijacked:
		delete(s.conns, c)
	}
}

func (s *site) connections() (open, made int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.made
}

// deserted returns how many requests of a method, or verb, the client went away from.
func (s *site) deserted(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left[what]
}

// unreachable has no connection accepted any more. Those that are there stay.
func (s *site) unreachable() { s.door.Close() }

// reachable undoes unreachable.
func (s *site) reachable() {
	l, err := net.Listen("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.door = l
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Config.Serve(l) })
	s.t.Cleanup(func() {
		_ = s.Config.Close()
		serving.Wait()
	})
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
	what := a.method
	switch {
	case what == "" && a.verb == "POST":
		what = "answer"
	case what == "":
		what = a.verb
	}
	s.mu.Lock()
	s.all = append(s.all, a)
	way := s.ways[what]
	s.mu.Unlock()
	if way == nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	gone := r.Context()
	r.Body = io.NopCloser(strings.NewReader(a.id))
	way(w, r)
	if gone.Err() != nil {
		s.mu.Lock()
		s.left[what]++
		s.mu.Unlock()
	}
}

// on says how a method, or a verb, is answered from now on.
func (s *site) on(what string, way http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ways[what] = way
}

// seen returns the requests of a method, or verb, so far; "answer" is for what is posted without a method.
func (s *site) seen(what string) []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.all), func(a asked) bool {
		if what == "answer" {
			return a.method != "" || a.verb != "POST"
		}
		return a.method != what && (a.method != "" || a.verb != what)
	})
}

func (s *site) sees(t *testing.T, what string, n int) []asked {
	t.Helper()
	poll(t, fmt.Sprintf("%d %s", n, what), func() bool { return len(s.seen(what)) >= n })
	return s.seen(what)
}

// until waits for c, or for the client to go.
func until(r *http.Request, c <-chan struct{}) {
	select {
	case <-c:
	case <-r.Context().Done():
	}
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

// streams answers with a stream, in which $ID is the id of the request. A piece that is "wait" waits for the client to go,
// one that is "soon" ends the stream a moment later.
func streams(pieces ...string) http.HandlerFunc { return streamsUnder(200, pieces...) }

func streamsUnder(status int, pieces ...string) http.HandlerFunc {
	return streamsAs(status, "text/event-stream", pieces...)
}

func streamsAs(status int, kind string, pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := idOf(r)
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		w.(http.Flusher).Flush()
		for _, p := range pieces {
			switch p {
			case "wait":
				<-r.Context().Done()
				return
			case "soon":
				<-time.After(finishWithin / 10)
				return
			}
			_, _ = io.WriteString(w, strings.ReplaceAll(p, "$ID", id)) // the client may have gone
			w.(http.Flusher).Flush()
		}
	}
}

// squeeze writes up to a gigabyte of zeroes as gzip, until the client goes.
func squeeze(w io.Writer, r *http.Request) {
	z := gzip.NewWriter(w)
	zeroes := make([]byte, 1<<20)
	for range 1 << 10 {
		if _, err := z.Write(zeroes); err != nil || r.Context().Err() != nil {
			return
		}
	}
	_ = z.Close() // the client may have gone
}

func event(line string) string { return "data: " + line + "\n\n" }

const (
	webDiscovered = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}`
	webComplete   = `"result":{"resultType":"complete","content":[{"type":"text","text":"good"}]}`
	webOneTool    = `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
	webInitialize = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
)

// webBench is a manager with one peer, "p", at a site. When the test ends, each of its requests must have had its outcome once, and no
// connection may be left.
type webBench struct {
	*Manager
	*ledger
	t    *testing.T
	site *site
	next int64

	withdrawn map[int64]bool
}

func webStarted(t *testing.T, s *site, change func(*Web)) *webBench {
	t.Helper()
	return webWith(t, s, func(_ *Config, spec *Spec) {
		if change != nil {
			change(spec.Web)
		}
	})
}

func webOptions(t testing.TB, s *site) web.Options {
	endpoint, err := url.Parse(s.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	return web.Options{Endpoint: endpoint, Connections: 8, Connect: 5 * time.Second, MaxHeader: 64 << 10, MaxBody: 1 << 20, MaxStream: 8 << 20}
}

func webWith(t *testing.T, s *site, change func(*Config, *Spec)) *webBench {
	t.Helper()
	b := &webBench{ledger: newLedger(), t: t, site: s, withdrawn: map[int64]bool{}}
	spec := Spec{Name: "p", Web: &Web{Options: webOptions(t, s)}}
	cfg := testConfig(t, b.ledger, map[string]Spec{})
	cfg.FrameLimit, cfg.Grace = 1<<20, time.Second
	change(&cfg, &spec)
	cfg.Specs["p"] = spec
	var err error
	b.Manager, err = NewManager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.finished)
	b.launch(1)
	return b
}

// finished closes the manager and holds it to what is promised for every request.
func (b *webBench) finished() {
	if err := b.Close(); err != nil {
		b.t.Errorf("close: %v", err)
	}
	for id := int64(1); id <= b.next; id++ {
		got := b.outcomes(id)
		if len(got) != 1 && (!b.withdrawn[id] || len(got) > 0) {
			b.t.Errorf("request %d has the outcomes %+v", id, got)
		}
	}
	poll(b.t, "the end of every connection", func() bool { open, _ := b.site.connections(); return open == 0 })
}

// outcomes returns what was reported as the outcome of a request.
func (b *webBench) outcomes(id int64) []domain.Data {
	var found []domain.Data
	for _, d := range b.data() {
		of := int64(0)
		switch d := d.(type) {
		case domain.CallAnswered:
			of = d.RequestID
		case domain.CatalogListed:
			of = d.RequestID
		case domain.HealthAnswered:
			of = d.RequestID
		case domain.ProbeAnswered:
			of = d.RequestID
		case domain.ProbeFailed:
			of = d.RequestID
		case domain.ExchangeFailed:
			of = d.RequestID
		case domain.DeadlinePassed:
			of = d.RequestID
		case domain.SubscriptionEnded:
			of = d.RequestID
		}
		if of == id {
			found = append(found, d)
		}
	}
	return found
}

// outcome waits for that of a request.
func (b *webBench) outcome(id int64) domain.Data {
	b.t.Helper()
	poll(b.t, fmt.Sprintf("an outcome of request %d; there are %s", id, b.story()), func() bool { return len(b.outcomes(id)) > 0 })
	return b.outcomes(id)[0]
}

func (b *webBench) withdraw(id int64) {
	b.withdrawn[id] = true
	b.Do(domain.Withdraw{At: at1, RequestID: id, Reason: "enough"}, nil)
}

// noises returns the noise so far: how many messages of each kind.
func (b *webBench) noises() map[string]int64 {
	b.Flush()
	found := map[string]int64{}
	for _, n := range of[domain.NoiseCounted](b.ledger) {
		for _, k := range n.Kinds {
			found[k.What] += k.Count
		}
	}
	return found
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

// list, subscribe, and health ask for what their names say, in the modern era.
func (b *webBench) list() int64 {
	return b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraModern, Version: "2026-07-28"}, nil)
}

func (b *webBench) subscribe() int64 {
	return b.ask(domain.Send{Method: domain.MethodListen, Era: domain.EraModern, Version: "2026-07-28", Types: []string{domain.TypeToolsChanged}}, nil)
}

func (b *webBench) health() int64 {
	return b.ask(domain.Send{Method: domain.MethodDiscover, Era: domain.EraModern, Version: "2026-07-28"}, nil)
}

func (b *webBench) simple() int64 { return b.call("c", domain.EraModern, "{}") }

func (b *webBench) simpleLegacy() int64 { return b.call("c", domain.EraLegacy, "{}") }

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

func (b *webBench) failure(id int64) domain.ExchangeFailed {
	b.t.Helper()
	f, ok := b.outcome(id).(domain.ExchangeFailed)
	if !ok {
		b.t.Fatalf("request %d had the outcome %+v", id, b.outcome(id))
	}
	return f
}

func errorAnswer(code int) string { return fmt.Sprintf(`"error":{"code":%d,"message":"no"}`, code) }

func webAt(incarnation int64) domain.At { return domain.At{Peer: "p", Incarnation: incarnation} }
