package peer

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

func (b *webBench) legacyList(version string) int64 {
	return b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraLegacy, Version: version}, nil)
}

func (b *webBench) ping() int64 {
	return b.ask(domain.Send{Method: domain.MethodPing, Era: domain.EraLegacy, Version: "2025-11-25"}, nil)
}

// What a legacy peer gets, in which order, and with which headers (specification 2025-11-25, basic/transports).
func TestTheLegacyEraOverHTTP(t *testing.T) {
	for _, c := range []struct{ version, session, want string }{
		{"2025-03-26", "s-1", ""},
		{"2025-06-18", "s-1", "2025-06-18"},
		{"2025-11-25", "s-1", "2025-11-25"},
		{"2025-11-25", "", "2025-11-25"},
		{"2025-11-25", "no session: it has a blank", "2025-11-25"},
		{"2025-11-25", strings.Repeat("x", 2000), "2025-11-25"},
	} {
		s := newSite(t)
		b := webStarted(t, s, func(w *Web) {
			w.Credentials = map[string]Credential{domain.DefaultContext: {Name: "a", Token: "t"}}
		})
		s.on("GET", streams("wait"))
		s.on("DELETE", sends(200, "", ""))
		s.on(domain.MethodList, jsonAnswer(`"result":{"tools":[]}`))
		s.on("notifications/initialized", func(w http.ResponseWriter, _ *http.Request) {
			if len(s.seen(domain.MethodList))+len(s.seen("GET")) > 0 {
				t.Error("something came before notifications/initialized was answered")
			}
			w.WriteHeader(202)
		})
		b.legacyAs(c.version, c.session)
		b.outcome(b.legacyList(c.version))
		s.sees(t, "GET", 1)
		b.Do(domain.Stop{At: at1}, nil)
		await[domain.PeerExited](t, b.ledger, 1)

		session := c.session
		if strings.Contains(session, " ") {
			session = ""
		}
		ends := 0
		if session != "" {
			ends = 1
		}
		if n := len(s.seen("DELETE")); n != ends {
			t.Errorf("%d DELETEs in session %q", n, session)
		}
		for _, a := range s.seen(domain.MethodInitialize) {
			if a.header.Get("Mcp-Session-Id")+a.header.Get("Mcp-Protocol-Version")+a.header.Get("Mcp-Method") != "" {
				t.Errorf("initialize has %v", a.header)
			}
		}
		for _, what := range []string{"notifications/initialized", domain.MethodList, "GET", "DELETE"} {
			for _, a := range s.seen(what) {
				if a.header.Get("Mcp-Session-Id") != session || a.header.Get("Mcp-Protocol-Version") != c.want || a.header.Get("Mcp-Method") != "" ||
					a.header.Get("Authorization") != "Bearer t" {
					t.Errorf("%s %s has %v", c.version, what, a.header)
				}
			}
		}
		if got := s.seen("GET")[0].header.Get("Accept"); got != "text/event-stream" {
			t.Errorf("GET accepts %q", got)
		}
	}
}

func (b *webBench) legacyAs(version, session string) {
	b.t.Helper()
	b.site.on(domain.MethodInitialize, func(w http.ResponseWriter, r *http.Request) {
		if session != "" {
			w.Header().Set("Mcp-Session-Id", session)
		}
		jsonAnswer(strings.ReplaceAll(webInitialize, "2025-11-25", version))(w, r)
	})
	b.ask(domain.Send{Method: domain.MethodInitialize, Era: domain.EraUnknown, Version: version}, nil)
	await[domain.ProbeAnswered](b.t, b.ledger, 1)
	b.Do(domain.SelectEra{At: at1, Era: domain.EraLegacy, Version: version}, nil)
}

// A legacy peer may ask, over the stream of a call and over that of a GET; the answers are posted, past calls that have all connections.
func TestALegacyPeerIsAnsweredOverHTTP(t *testing.T) {
	asks := event(`{"jsonrpc":"2.0","id":"p","method":"ping"}`) + event(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`)
	for _, way := range []string{domain.MethodCall, "GET"} {
		s := newSite(t)
		b := webStarted(t, s, func(w *Web) { w.Options.Connections = 1 })
		s.on("answer", sends(202, "", ""))
		s.on("GET", streams(map[bool]string{true: asks, false: ": nothing\n\n"}[way == "GET"], "wait"))
		s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
			id := idOf(r)
			w.Header().Set("Content-Type", "text/event-stream")
			if way == domain.MethodCall {
				_, _ = io.WriteString(w, asks) // what does not arrive is missed below
			}
			w.(http.Flusher).Flush()
			poll(t, "the answers", func() bool { return len(s.seen("answer")) == 2 })
			_, _ = io.WriteString(w, event(`{"jsonrpc":"2.0","id":`+id+`,`+webComplete+`}`)) // likewise
		})
		b.legacy("s-1")
		b.simpleLegacy()
		b.answered(1)
		var bodies []string
		for _, a := range s.seen("answer") {
			bodies = append(bodies, strings.TrimSpace(a.body))
			if a.header.Get("Mcp-Session-Id") != "s-1" || a.header.Get("Mcp-Protocol-Version") != "2025-11-25" {
				t.Errorf("%v", a.header)
			}
		}
		slices.Sort(bodies)
		want := []string{`{"jsonrpc":"2.0","id":"p","result":{}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}`}
		if !slices.Equal(bodies, want) {
			t.Errorf("answered %q", bodies)
		}
	}
}

// What a legacy peer says over a GET is heard, but for answers: those come on the stream of what they answer.
func TestALegacyPeerGivesNoticeOverHTTP(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, nil)
	s.on("GET", func(w http.ResponseWriter, r *http.Request) {
		id := s.sees(t, domain.MethodCall, 1)[0].id
		streams(event(changeNotice("0")), event(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`), event(`{"jsonrpc":"2.0","id":`+id+`,"result":{},"result":{}}`), "wait")(w, r)
	})
	s.on(domain.MethodCall, streams("wait"))
	b.legacy("")
	id := b.simpleLegacy()
	if got, _ := await[domain.ListChanged](t, b.ledger, 1); got[0] != (domain.ListChanged{At: at1, Count: 1}) {
		t.Errorf("%+v", got)
	}
	poll(t, "both answers to be counted", func() bool { n := b.noises(); return n[noiseNotJSON] == 1 && n[noiseUnknownID] == 1 })
	if got := b.outcomes(id); len(got) > 0 {
		t.Errorf("an answer over GET settled a call: %+v", got)
	}
}

// What is withdrawn is cancelled by a message too, which nobody waits for.
func TestALegacyPeerIsToldOfACancellationOverHTTP(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) { w.Options.Connections = 1 })
	s.on(domain.MethodCall, streams("wait"))
	s.on("notifications/cancelled", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.on(domain.MethodList, jsonAnswer(`"result":{"tools":[]}`))
	b.legacy("s-1")
	began := time.Now()
	for n := range 3 {
		id := b.simpleLegacy()
		s.sees(t, domain.MethodCall, n+1)
		b.withdraw(id)
	}
	if d, ok := b.outcome(b.legacyList("2025-11-25")).(domain.CatalogListed); !ok {
		t.Errorf("%+v", d)
	}
	if took := time.Since(began); took > notifyWithin {
		t.Errorf("it took %v", took)
	}
	if a := s.sees(t, "notifications/cancelled", 1)[0]; !strings.Contains(a.body, `"requestId":2`) || a.header.Get("Mcp-Session-Id") != "s-1" {
		t.Errorf("%+v", a)
	}
	poll(t, "every stream to be closed", func() bool { return s.deserted(domain.MethodCall) == 3 })
}

// 404 and 400 in a session end the incarnation before the request fails, whatever was asked; without a session they do not.
func TestASessionThatIsGoneOverHTTP(t *testing.T) {
	const stale = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"Session not found"}}`
	for _, c := range []struct {
		name, session string
		way           http.HandlerFunc
		cause         string
		code          domain.Code
	}{
		{"404", "s-1", sends(404, "text/plain", "gone"), causeSessionGone, domain.CodeSessionGone},
		{"404 with an error", "s-1", sends(404, "application/json", stale), causeSessionGone, domain.CodeSessionGone},
		{"404 with an error in a stream", "s-1", streamsUnder(404, event(stale), "wait"), causeSessionGone, domain.CodeSessionGone},
		{"404 with a body that is cut", "s-1", cut(404, "application/json", "{"), causeSessionGone, domain.CodeSessionGone},
		{"400", "s-1", sends(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request"}}`), causeSessionRefused, domain.CodeHTTPStatus},
		{"404 for an unknown method", "s-1", sends(404, "application/json", rpc(errorAnswer(-32601))), "", ""},
		{"404 without a session", "", sends(404, "text/plain", "gone"), "", domain.CodeHTTPStatus},
		{"400 with an error", "s-1", sends(400, "application/json", rpc(errorAnswer(-32602))), "", ""},
	} {
		for _, method := range []string{domain.MethodCall, domain.MethodPing} {
			s := newSite(t)
			b := webStarted(t, s, nil)
			b.legacy(c.session)
			s.on("DELETE", sends(200, "", ""))
			s.on(method, c.way)
			ask := b.simpleLegacy
			if method == domain.MethodPing {
				ask = b.ping
			}
			d := b.outcome(ask())
			f, failed := d.(domain.ExchangeFailed)
			if c.cause == "" {
				if strings.Contains(b.story(), "peer.exited") || failed && (f.Code != c.code || method == domain.MethodPing) {
					t.Errorf("%s, %s: %+v; %s", c.name, method, d, b.story())
				}
				continue
			}
			exits := of[domain.PeerExited](b.ledger)
			if !failed || f.Code != c.code || f.Written != writtenMaybe || len(exits) != 1 || exits[0].Cause != c.cause || !strings.HasSuffix(b.story(), "peer.exited exchange.failed") {
				t.Errorf("%s, %s: %+v, %+v; %s", c.name, method, d, exits, b.story())
			}
			if err := b.Close(); err != nil || len(s.seen("DELETE")) > 0 {
				t.Errorf("%s: %v, %d DELETEs", c.name, err, len(s.seen("DELETE")))
			}
		}
	}
}

// A killed incarnation says no goodbye, also where it has begun to.
func TestAKillOverHTTPDoesNotWaitForTheEndOfASession(t *testing.T) {
	for _, begun := range []bool{false, true} {
		s := newSite(t)
		b := webWith(t, s, func(c *Config, _ *Spec) { c.Grace = time.Minute })
		b.legacy("s-1")
		s.on("DELETE", streams("wait"))
		began := time.Now()
		if begun {
			s.on("DELETE", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			b.Do(domain.Stop{At: at1}, nil)
			s.sees(t, "DELETE", 1)
		}
		b.Do(domain.Stop{At: at1, Kill: true}, nil)
		await[domain.PeerExited](t, b.ledger, 1)
		if took := time.Since(began); took > notifyWithin/2 || !begun && len(s.seen("DELETE")) > 0 {
			t.Errorf("begun %v: it took %v, %d DELETEs", begun, took, len(s.seen("DELETE")))
		}
	}
}

// A POST's stream that breaks off is gone on with by GET, where its events have ids; when it is asked for again is the peer's word.
func TestAStreamOfALegacyPeerIsGoneOnWith(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) { w.Options.Connections = 1 })
	b.legacy("s-1")
	s.sees(t, "GET", 1) // that of the peer's own, which is not to be had
	var id string
	var broke time.Time
	s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
		id = idOf(r)
		streams("id: e-1\nretry: 150\ndata:\n\n")(w, r)
		broke = time.Now()
	})
	round := 0
	s.on("GET", func(w http.ResponseWriter, r *http.Request) {
		switch round++; round {
		case 1:
			if waited := time.Since(broke); waited < 150*time.Millisecond {
				t.Errorf("asked for again after %v", waited)
			}
			streams("id: e-2\n"+event(`{"jsonrpc":"2.0","method":"notifications/message"}`))(w, r)
		case 2:
			hangs(w, r)
		case 3:
			sends(503, "", "")(w, r)
		default:
			streams("id: e-3\n"+event(`{"jsonrpc":"2.0","id":`+id+`,`+webComplete+`}`), "wait")(w, r)
		}
	})
	b.simpleLegacy()
	b.answered(1)
	var last []string
	for _, a := range s.seen("GET")[1:] {
		last = append(last, a.header.Get("Last-Event-ID"))
		if a.header.Get("Mcp-Session-Id") != "s-1" {
			t.Errorf("%v", a.header)
		}
	}
	if fmt.Sprint(last) != "[e-1 e-2 e-2 e-2]" {
		t.Errorf("asked for what follows %v", last)
	}
}

func TestAStreamThatCannotBeGoneOnWithIsLost(t *testing.T) {
	for _, c := range []struct {
		name, first string
		status      int
		gets        int // beside the peer's own
		cause       string
	}{
		{"no ids", event("{}"), 200, 0, ""},
		{"an id taken back", "id: 1\ndata:\n\nid:\ndata:\n\n", 200, 0, ""},
		{"405", "retry: 1\nid: 1\ndata:\n\n", 405, 1, ""},
		{"404", "retry: 1\nid: 1\ndata:\n\n", 404, 1, causeSessionGone},
	} {
		s := newSite(t)
		b := webStarted(t, s, nil)
		b.legacy("s-1")
		s.sees(t, "GET", 1)
		s.on(domain.MethodCall, streams(c.first))
		s.on("GET", sends(c.status, "", ""))
		if f := b.failure(b.simpleLegacy()); f.Code != domain.CodeTransportLost || f.Written != writtenMaybe || f.Reason == "" {
			t.Errorf("%s: %+v", c.name, f)
		}
		if n := len(s.seen("GET")) - 1; n != c.gets {
			t.Errorf("%s: %d GETs", c.name, n)
		}
		exits := of[domain.PeerExited](b.ledger)
		if (c.cause == "") != (len(exits) == 0) || len(exits) > 0 && exits[0].Cause != c.cause {
			t.Errorf("%s: %+v", c.name, exits)
		}
	}
}

// The stream of the peer's own is asked for again when it ends, from where it was; a refusal of that is from its beginning.
func TestTheStreamOfAGETIsGoneOnWith(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, nil)
	s.on("GET", func(w http.ResponseWriter, r *http.Request) {
		switch len(s.seen("GET")) {
		case 1:
			streams("retry: 1\nid: a\n"+event(changeNotice("0")), "id: b\n\n")(w, r)
		case 2:
			sends(400, "text/plain", "what is b")(w, r)
		case 3:
			streams("wait")(w, r)
		}
	})
	b.legacy("s-1")
	var last []string
	for _, a := range s.sees(t, "GET", 3) {
		last = append(last, a.header.Get("Last-Event-ID"))
	}
	if fmt.Sprintf("%q", last) != `["" "b" ""]` {
		t.Errorf("%q", last)
	}
	s.on("GET", sends(404, "", ""))
	s.CloseClientConnections()
	exits, _ := await[domain.PeerExited](t, b.ledger, 1)
	if exits[0].Cause != causeSessionGone {
		t.Errorf("%+v", exits[0])
	}
}
