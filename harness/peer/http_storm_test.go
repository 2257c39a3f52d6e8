package peer

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

// Whatever comes together, each request has one outcome, or none where it was withdrawn; webBench looks.
func TestEachRequestOverHTTPHasOneOutcome(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			s := newSite(t)
			era := domain.EraModern
			b := webWith(t, s, func(c *Config, p *Spec) {
				p.Web.Options.Connections = 1 + rng.IntN(6)
				c.Grace = 100 * time.Millisecond
			})
			s.on("DELETE", sends(200, "", ""))
			s.on("GET", streams(event(changeNotice("0")), "id: 1\nretry: 1\ndata:\n\n", "wait"))
			if seed%2 == 1 {
				b.legacy("s-1")
				era = domain.EraLegacy
			} else {
				b.modern()
			}
			for _, method := range []string{domain.MethodCall, domain.MethodList, domain.MethodListen, domain.MethodPing, domain.MethodDiscover} {
				s.on(method, anyWay(rng.Uint64()))
			}
			at, down := at1, false
			for range 400 {
				switch n := rng.IntN(100); {
				case n < 80:
					b.ask(anyRequest(rng, at, era), &domain.Body{Arguments: []byte("{}")})
				case n < 94:
					b.withdrawAt(at, 1+rng.Int64N(b.next))
				case n < 96 && !down:
					s.unreachable()
					s.CloseClientConnections()
					down = true
				case n < 97 && down:
					s.reachable()
					down = false
				case n == 97:
					b.Do(domain.Stop{At: at, Kill: rng.IntN(2) == 0}, nil)
				case n > 97:
					at.Incarnation++
					b.Do(domain.Launch{At: at}, nil)
					b.Do(domain.SelectEra{At: at, Era: era, Version: "2025-11-25"}, nil)
				}
			}
		})
	}
}

func anyRequest(rng *rand.Rand, at domain.At, era domain.Era) domain.Send {
	methods := []string{domain.MethodCall, domain.MethodCall, domain.MethodList, domain.MethodListen, domain.MethodDiscover}
	if era == domain.EraLegacy {
		methods = []string{domain.MethodCall, domain.MethodCall, domain.MethodList, domain.MethodPing}
	}
	s := domain.Send{At: at, Method: methods[rng.IntN(len(methods))], Era: era, Version: "2026-07-28", Deadline: 1 + rng.Int64N(200)}
	if s.Method == domain.MethodCall {
		s.Call, s.Tool = "local/c", "x"
	}
	if s.Method == domain.MethodListen {
		s.Types = []string{domain.TypeToolsChanged}
	}
	return s
}

// withdrawAt withdraws a request that may have had its outcome, or be another incarnation's.
func (b *webBench) withdrawAt(at domain.At, id int64) {
	b.withdrawn[id] = true
	b.Do(domain.Withdraw{At: at, RequestID: id, Reason: "enough"}, nil)
}

// anyWay answers each request in one of many ways.
func anyWay(seed uint64) http.HandlerFunc {
	ways := []http.HandlerFunc{jsonAnswer(webComplete), jsonAnswer(webComplete), streams(event(rpc(webComplete))), streams(event(rpc(webComplete)), "wait"), streams("wait"),
		streams("id: 1\nretry: 1\ndata:\n\n"), sends(401, "", ""), sends(404, "application/json", rpc(errorAnswer(1))), sends(500, "text/plain", "x"), hangs,
		cut(200, "application/json", "{"), streams(event(acknowledgement("$ID")), event(changeNotice("$ID")), event(cancelNotice("$ID"))),
		streams(event(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), event(rpc(webComplete)))}
	return func(w http.ResponseWriter, r *http.Request) {
		id := idOf(r)
		r.Body = io.NopCloser(strings.NewReader(id))
		ways[(seed+uint64(len(id))*7+uint64(id[len(id)-1])*13)%uint64(len(ways))](w, r)
	}
}

// The rules hold over HTTP/2 as they do over HTTP/1.
func TestOutcomesOverHTTP2(t *testing.T) {
	s := &site{t: t, ways: map[string]http.HandlerFunc{}, left: map[string]int{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	b := webStarted(t, s, func(w *Web) { w.Options.RootCAs = pemOf(s.Certificate()) })
	b.modern()
	s.on(domain.MethodCall, streams("wait"))
	withdrawn := b.simple()
	late := b.call("c", domain.EraModern, "{}", func(s *domain.Send, _ *domain.Body) { s.Deadline = 100 })
	s.sees(t, domain.MethodCall, 2)
	b.withdraw(withdrawn)
	if _, ok := b.outcome(late).(domain.DeadlinePassed); !ok {
		t.Errorf("%+v", b.outcome(late))
	}
	poll(t, "both streams to be closed", func() bool { return s.deserted(domain.MethodCall) == 2 })
	s.on(domain.MethodCall, streams(event(rpc(webComplete))))
	for range 100 {
		b.simple()
	}
	b.answered(100)
	s.on(domain.MethodCall, hangs)
	if f := b.failure(b.simple()); f.Code != domain.CodeTransportLost || f.Written != writtenMaybe {
		t.Errorf("%+v", f)
	}
}

// BenchmarkCallsOverHTTP has the same calls made directly and through a manager, at the same endpoint; "ratio" is the one to the other.
func BenchmarkCallsOverHTTP(b *testing.B) {
	for name, way := range map[string]http.HandlerFunc{"json": jsonAnswer(webComplete), "stream": streams(event(rpc(webComplete)))} {
		s := newSite(b)
		s.on(domain.MethodCall, way)
		var direct float64
		b.Run(name+"/direct", func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
			defer client.CloseIdleConnections()
			for b.Loop() {
				postDirectly(b, client, s.URL)
			}
			direct = float64(b.Elapsed()) / float64(b.N)
		})
		b.Run(name+"/manager", func(b *testing.B) {
			answered := make(chan struct{}, 1)
			cfg := testConfig(b, newLedger(), map[string]Spec{"p": {Name: "p", Web: &Web{Options: webOptions(b, s)}}})
			cfg.Report = func(d domain.Data, _, _ []byte) {
				switch d.(type) {
				case domain.CallAnswered, domain.PeerSpawned:
					answered <- struct{}{}
				}
			}
			m, err := NewManager(cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			m.Do(domain.Launch{At: at1}, nil)
			<-answered
			body := &domain.Body{Arguments: []byte(`{"a":1}`)}
			id := int64(0)
			for b.Loop() {
				id++
				m.Do(domain.Send{At: at1, RequestID: id, Method: domain.MethodCall, Era: domain.EraModern, Version: "2026-07-28", Call: "local/c", Tool: "x",
					Capabilities: []byte("{}"), Deadline: 30_000}, body)
				<-answered
			}
			if direct > 0 {
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/direct, "ratio")
			}
		})
	}
}

func postDirectly(b *testing.B, client *http.Client, url string) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"waybill","version":"1.2.3"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequest(http.MethodPost, url+"/mcp", strings.NewReader(call))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	a, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	got, err := io.ReadAll(a.Body)
	if err != nil || !bytes.Contains(got, []byte("good")) {
		b.Fatalf("%q: %v", got, err)
	}
	_ = a.Body.Close() // read to its end
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
