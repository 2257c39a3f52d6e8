package peer

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"waybill/domain"
	"waybill/harness/peer/web"
)

const rpcHead = `{"jsonrpc":"2.0","id":$ID,`

func rpc(members string) string { return rpcHead + members + "}" }

// What becomes of a request by what comes back (design, Streamable HTTP). The requests are a call, a list and a subscription.
func TestWhatAnAnswerIsOverHTTP(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	type failure struct {
		code   domain.Code
		status int
	}
	for _, c := range []struct {
		name string
		way  http.HandlerFunc
		want failure // with the code "" for an answer
	}{
		{"an error", jsonAnswer(errorAnswer(-32601)), failure{}},
		{"an error under 400", sends(400, "application/json", rpc(errorAnswer(-32020))), failure{}},
		{"an error under 401", sends(401, "application/json", rpc(errorAnswer(-32000))), failure{}},
		{"an error under 404", sends(404, "application/json", rpc(errorAnswer(-32000))), failure{}},
		{"an error under 500", sends(500, "application/json; charset=utf-8", rpc(errorAnswer(-32603))), failure{}},
		{"an error in a stream", streams(event(rpc(errorAnswer(-32603)))), failure{}},
		{"an error in a stream under 400", streamsUnder(400, event(rpc(errorAnswer(-32603)))), failure{}},
		{"a message that cannot be read", jsonAnswer(`"result":{},"result":{}`), failure{}},
		{"an answer, and more", streams(event(rpc(errorAnswer(-32603))), event(rpc(errorAnswer(1))), ": more\n", "wait"), failure{}},
		{"401", sends(401, "text/plain", "who are you"), failure{domain.CodeUnauthorized, 401}},
		{"401 under no id", sends(401, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}`), failure{domain.CodeUnauthorized, 401}},
		{"401 with a body over the limit", sends(401, "application/json", big+"x"), failure{domain.CodeUnauthorized, 401}},
		{"403", sends(403, "", ""), failure{domain.CodeForbidden, 403}},
		{"404", sends(404, "text/html", "<html>"), failure{domain.CodeHTTPStatus, 404}},
		{"404 in a stream without the answer", streamsUnder(404, ": no\n\n"), failure{domain.CodeHTTPStatus, 404}},
		{"404 with a body that is cut", cut(404, "application/json", `{"jsonrpc":`), failure{domain.CodeHTTPStatus, 404}},
		{"500", sends(500, "application/json", `{"error":"down"}`), failure{domain.CodeHTTPStatus, 500}},
		{"503 with an endless page", streamsAs(503, "text/html", "<html>", "wait"), failure{domain.CodeHTTPStatus, 503}},
		{"202", sends(202, "", ""), failure{domain.CodeBadResult, 202}},
		{"202 with the answer", sends(202, "application/json", rpc(errorAnswer(1))), failure{domain.CodeBadResult, 202}},
		{"nothing", sends(200, "application/json", ""), failure{domain.CodeBadResult, 200}},
		{"a page", sends(200, "text/html", "<html>"), failure{domain.CodeBadResult, 200}},
		{"a page without end", streamsAs(200, "text/html", "<html>", "wait"), failure{domain.CodeBadResult, 200}},
		{"204", sends(204, "", ""), failure{domain.CodeBadResult, 204}},
		{"an answer under another id", sends(200, "application/json", `{"jsonrpc":"2.0","id":77,"result":{}}`), failure{domain.CodeBadResult, 200}},
		{"an answer to another that cannot be read", sends(200, "application/json", `{"jsonrpc":"2.0","id":77,"result":{},"result":{}}`), failure{domain.CodeBadResult, 200}},
		{"a notification", sends(200, "application/json", `{"jsonrpc":"2.0","method":"notifications/message"}`), failure{domain.CodeBadResult, 200}},
		{"a body over the limit", sends(200, "application/json", big+"x"), failure{domain.CodeFrameTooLarge, 0}},
		{"an event over the limit", streams("data: "+big+"x\n\n", "wait"), failure{domain.CodeFrameTooLarge, 0}},
		{"a stream over the limit", streams(pieces(9, event(`{"x":"`+big[:1<<20-20]+`"}`))...), failure{domain.CodeFrameTooLarge, 0}},
		{"a bomb", bomb, failure{domain.CodeFrameTooLarge, 0}},
		{"a body that is cut", cut(200, "application/json", `{"jsonrpc":`), failure{domain.CodeTransportLost, 0}},
		{"a stream that ends", streams(": nothing\n\n"), failure{domain.CodeTransportLost, 0}},
		{"a stream with ids that ends", streams("id: 1\nretry: 1\ndata:\n\n"), failure{domain.CodeTransportLost, 0}},
		{"a stream that is cut", cut(200, "text/event-stream", "data: "), failure{domain.CodeTransportLost, 0}},
		{"an answer that is cut in its stream", streams("data: " + rpc(errorAnswer(1)) + "\n"), failure{domain.CodeTransportLost, 0}},
		{"a connection that ends", hangs, failure{domain.CodeTransportLost, 0}},
		{"a redirect", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://192.0.2.1/")
			w.WriteHeader(308)
		}, failure{domain.CodeRedirect, 0}},
		{"300", sends(300, "", ""), failure{domain.CodeRedirect, 300}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			b := webStarted(t, s, nil)
			b.modern()
			for _, method := range []string{domain.MethodCall, domain.MethodList, domain.MethodListen} {
				s.on(method, c.way)
			}
			call, list, listen := b.simple(), b.list(), b.subscribe()
			if c.want.code == "" {
				_, called := b.outcome(call).(domain.CallAnswered)
				_, listed := b.outcome(list).(domain.CatalogListed)
				_, ended := b.outcome(listen).(domain.SubscriptionEnded)
				if !called || !listed || !ended {
					t.Errorf("the outcomes are %+v, %+v, %+v", b.outcome(call), b.outcome(list), b.outcome(listen))
				}
				return
			}
			for _, id := range []int64{call, list, listen} {
				f := b.failure(id)
				if f.Code != c.want.code || f.Status != c.want.status || f.Written != writtenMaybe || f.At != at1 || (f.Reason == "") != (f.Code == domain.CodeFrameTooLarge) {
					t.Errorf("request %d: %+v", id, f)
				}
			}
			if strings.Contains(b.story(), "peer.exited") || len(s.seen("GET")) > 0 {
				t.Errorf("%s, and %d GETs", b.story(), len(s.seen("GET")))
			}
		})
	}
}

func pieces(n int, piece string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = piece
	}
	return all
}

// bomb is a gigabyte, compressed a thousandfold.
func bomb(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(200)
	squeeze(w, r)
}

// cut answers with a body that is shorter than it is said to be.
func cut(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have gone
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func hangs(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// A sign of life is whatever the peer itself says, and nothing that is said in its place.
func TestSignsOfLifeOverHTTP(t *testing.T) {
	for status, alive := range map[int]bool{200: true, 202: true, 401: true, 404: true, 429: true, 500: true, 502: false, 503: false, 504: false} {
		for _, way := range []http.HandlerFunc{sends(status, "text/plain", "words"), sends(status, "application/json", `{"jsonrpc":"2.0","id":null,"error":{}}`)} {
			s := newSite(t)
			b := webStarted(t, s, nil)
			b.modern()
			s.on(domain.MethodDiscover, way)
			d := b.outcome(b.health())
			f, failed := d.(domain.ExchangeFailed)
			if failed == alive || failed && (f.Status != status || f.Code != domain.CodeHTTPStatus) {
				t.Errorf("%d: %+v", status, d)
			}
		}
	}
	s := newSite(t)
	b := webStarted(t, s, nil)
	b.modern()
	s.on(domain.MethodDiscover, sends(503, "application/json", rpc(errorAnswer(-32603))))
	if d, ok := b.outcome(b.health()).(domain.HealthAnswered); !ok {
		t.Errorf("an answer under 503: %+v", d)
	}
}

// Messages before the answer are taken for what they are, those of nobody are counted, and what follows the answer is not waited for.
func TestWhatAStreamBringsBesideTheAnswer(t *testing.T) {
	s := newSite(t)
	told := &toldNotes{}
	b := webWith(t, s, func(c *Config, _ *Spec) { c.Progress = told.tell })
	b.modern()
	s.on(domain.MethodCall, streams(
		"\xef\xbb\xbf: a comment\r\n\r\n", "event: message\rdata: {\"jsonrpc\":\"2.0\",\rdata: \"method\":\"notifications/message\"}\r\r",
		event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1}}`),
		event(`{"jsonrpc":"2.0","id":99,"result":{}}`), event(`{"jsonrpc":"2.0","id":99,"result":{},"result":{}}`), event("no json"),
		event(`{"jsonrpc":"2.0","id":"x","method":"ping"}`), "event: other\ndata: {}\n\n", "data:\n\n",
		event(rpc(webComplete)), event(`{"jsonrpc":"2.0","method":"notifications/message"}`), "wait"))
	b.call("c", domain.EraModern, "{}", func(s *domain.Send, _ *domain.Body) { s.Progress = true })
	if a := b.answered(1); a.Facts.Kind != domain.FactResult {
		t.Errorf("%+v", a)
	}
	poll(t, "the stream to be closed", func() bool { return s.deserted(domain.MethodCall) == 1 })
	if notes := told.all(); len(notes) != 1 || !strings.Contains(notes[0], `{"progress":1}`) {
		t.Errorf("progress: %q", notes)
	}
	want := map[string]int64{noiseMessage: 1, noiseUnknownID: 1, noiseNotJSON: 2, noiseRequest: 1}
	if got := b.noises(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the noise is %v, want %v", got, want)
	}
	if len(s.seen("answer")) > 0 {
		t.Error("a request of a modern peer was answered")
	}
}

// Progress on a stream puts off the deadline of its call.
func TestProgressOverHTTPPutsOffTheDeadline(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, nil)
	b.modern()
	s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
		id := idOf(r)
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 20 {
			_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d}}\n\n", id, n+1) // the client may have gone
			w.(http.Flusher).Flush()
			<-time.After(50 * time.Millisecond)
		}
		_, _ = io.WriteString(w, event(`{"jsonrpc":"2.0","id":`+id+`,`+webComplete+`}`)) // likewise
	})
	id := b.call("c", domain.EraModern, "{}", func(s *domain.Send, _ *domain.Body) { s.Progress, s.Deadline, s.Idle, s.Limit = true, 500, 500, 30_000 })
	if _, ok := b.outcome(id).(domain.CallAnswered); !ok {
		t.Errorf("%+v", b.outcome(id))
	}
}

// An answer that cannot be read settles the request on whose stream it comes, and no other.
func TestAnUnreadableAnswerOnAForeignStreamSettlesNobody(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, nil)
	b.modern()
	s.on(domain.MethodCall, streams("wait"))
	waiting := b.simple()
	s.sees(t, domain.MethodCall, 1)
	s.on(domain.MethodCall, streams(event(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{},"result":{}}`, waiting)), event(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, waiting)),
		event(rpc(webComplete))))
	if d, ok := b.outcome(b.simple()).(domain.CallAnswered); !ok {
		t.Errorf("%+v", d)
	}
	if got := b.outcomes(waiting); len(got) > 0 {
		t.Errorf("the other call has the outcome %+v", got)
	}
}

// A connection is used again after an answer in a stream that comes to its end by itself, if soon.
func TestConnectionsAreReused(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) { w.Options.Connections = 1 }) // a call waits for the end of the answer before it
	b.modern()
	for name, way := range map[string]http.HandlerFunc{"json": jsonAnswer(webComplete), "a stream": streams(event(rpc(webComplete)), "soon"),
		"a page": sends(503, "text/plain", "down"), "nothing": sends(202, "", "")} {
		s.on(domain.MethodCall, way)
		_, before := s.connections()
		for range 10 {
			b.outcome(b.simple())
		}
		if _, made := s.connections(); made-before > 5 { // a few where the end did not come soon
			t.Errorf("%s: %d connections for 10 calls", name, made-before)
		}
	}
}

// The probe finds the way by redirects within the origin, and everything else goes there at once, credentials too. Nothing goes to another
// origin, and a call that is redirected is not sent on: whoever redirects it has had it.
func TestACredentialNeverFollowsARedirectElsewhere(t *testing.T) {
	other := newSite(t)
	other.on(domain.MethodCall, jsonAnswer(webComplete))
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) {
		w.Credentials = map[string]Credential{domain.DefaultContext: {Name: "a", Token: "secret-token", Fixed: map[string]string{"X-Key": "secret-key"}}}
	})
	s.on(domain.MethodDiscover, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		jsonAnswer(webDiscovered)(w, r)
	})
	b.probe()
	await[domain.ProbeAnswered](b.t, b.ledger, 1)
	b.Do(domain.SelectEra{At: at1, Era: domain.EraModern, Version: "2026-07-28"}, nil)
	s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/moved" {
			t.Errorf("a call came to %s", r.URL.Path)
		}
		jsonAnswer(webComplete)(w, r)
	})
	b.simple()
	b.answered(1)
	for _, a := range s.seen(domain.MethodCall) {
		if a.header.Get("Authorization") != "Bearer secret-token" || a.header.Get("X-Key") != "secret-key" {
			t.Errorf("%v", a.header)
		}
	}
	s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/mcp", http.StatusTemporaryRedirect)
	})
	if f := b.failure(b.simple()); f.Code != domain.CodeRedirect {
		t.Errorf("%+v", f)
	}
	if _, made := other.connections(); made > 0 {
		t.Error("the other origin was reached")
	}
}

// What cannot be written is "no" without a byte on the wire.
func TestWhatIsNotWrittenAtAll(t *testing.T) {
	schema := func(property string) func(*domain.Send, *domain.Body) {
		return func(_ *domain.Send, b *domain.Body) {
			b.InputSchema = []byte(`{"type":"object","properties":{"a":` + property + `}}`)
		}
	}
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) {
		w.Credentials = map[string]Credential{"gone": {Name: "gone", File: "/nonexistent/token"}, "bad": {Name: "bad", Fixed: map[string]string{"Host": "x"}}}
	})
	b.modern()
	for _, c := range []struct {
		change func(*domain.Send, *domain.Body)
		code   domain.Code
	}{
		{schema(`{"type":"integer","x-mcp-header":"A"}`), domain.CodeHeaderUnfit},
		{schema(`{"type":"number","x-mcp-header":"A"}`), domain.CodeToolHeader},
		{func(s *domain.Send, _ *domain.Body) { s.Context = "gone" }, domain.CodeUnauthorized},
		{func(s *domain.Send, _ *domain.Body) { s.Context = "bad" }, domain.CodeBadRequest},
		{func(_ *domain.Send, b *domain.Body) { b.Arguments = []byte("[") }, domain.CodeBadRequest},
	} {
		if f := b.failure(b.call("c", domain.EraModern, `{"a":1.5}`, c.change)); f.Code != c.code || f.Written != writtenNo || f.Status != 0 {
			t.Errorf("%+v", f)
		}
	}
	if len(s.seen(domain.MethodCall)) > 0 || strings.Contains(b.story(), "peer.exited") {
		t.Errorf("%d calls arrived; %s", len(s.seen(domain.MethodCall)), b.story())
	}
	b.ask(domain.Send{Method: domain.MethodDiscover, Era: domain.EraUnknown, Version: "2026-07-28", Context: "gone"}, nil)
	f, _ := await[domain.ProbeFailed](t, b.ledger, 1)
	if f[0].Class != domain.ClassUnauthorized || f[0].Status != 0 {
		t.Errorf("%+v", f[0])
	}
}

// An endpoint that cannot be used as it is configured is not started.
func TestAnEndpointThatCannotBeStarted(t *testing.T) {
	s := newSite(t)
	for _, change := range []func(*Spec){
		func(s *Spec) { s.Web.Options = web.Options{} },
		func(s *Spec) { s.Verify = func() (domain.Code, string) { return domain.CodePinMismatch, "moved" } },
	} {
		l := newLedger()
		spec := Spec{Name: "p", Web: &Web{Options: webOptions(t, s)}}
		change(&spec)
		m, err := NewManager(testConfig(t, l, map[string]Spec{"p": spec}))
		if err != nil {
			t.Fatal(err)
		}
		m.Do(domain.Launch{At: at1}, nil)
		f, _ := await[domain.SpawnFailed](t, l, 1)
		if f[0].At != at1 || f[0].Reason == "" || f[0].Code != domain.CodeSpawnFailed && f[0].Code != domain.CodePinMismatch {
			t.Errorf("%+v", f[0])
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
