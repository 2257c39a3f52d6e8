package peer

import (
	"fmt"
	"net/http"
	"testing"

	"waybill/domain"
)

// Every row of the probe table that is read off HTTP (design, Streamable HTTP; specification 2026-07-28,
// basic/transports/streamable-http, "Backward Compatibility").
func TestWhatAProbeOverHTTPReports(t *testing.T) {
	const rpc = `{"jsonrpc":"2.0","id":$ID,`
	for _, c := range []struct {
		name   string
		way    http.HandlerFunc
		class  string // "" for an answer
		status int
	}{
		{"a result", jsonAnswer(webDiscovered), "", 0},
		{"a result in a stream", streams(event(rpc + webDiscovered + "}")), "", 0},
		{"an error of another kind", jsonAnswer(errorAnswer(-32601)), "", 0},
		{"a modern error under 400", sends(400, "application/json", rpc+errorAnswer(-32022)+"}"), "", 0},
		{"a modern error under 503", sends(503, "application/json", rpc+errorAnswer(-32022)+"}"), "", 0},
		{"an unknown method under 404", sends(404, "application/json", rpc+errorAnswer(-32601)+"}"), "", 0},
		{"a media type with capitals and parameters", sends(200, "Application/JSON; charset=utf-8", rpc+webDiscovered+"}"), "", 0},
		{"401", sends(401, "", ""), domain.ClassUnauthorized, 401},
		{"403 with another error", sends(403, "application/json", rpc+errorAnswer(-32000)+"}"), domain.ClassUnauthorized, 403},
		{"404 without a message", sends(404, "text/plain", "not here"), domain.ClassAmbiguous, 404},
		{"400 under no id", sends(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}`), domain.ClassAmbiguous, 400},
		{"405", sends(405, "", ""), domain.ClassAmbiguous, 405},
		{"407", sends(407, "", ""), domain.ClassUnavailable, 407},
		{"421", sends(421, "text/plain", "misdirected"), domain.ClassUnavailable, 421},
		{"429", sends(429, "", ""), domain.ClassUnavailable, 429},
		{"500 with another error", sends(500, "application/json", rpc+errorAnswer(-32603)+"}"), domain.ClassUnavailable, 500},
		{"502", sends(502, "text/html", "<html>"), domain.ClassUnavailable, 502},
		{"a page", sends(200, "text/html", "<html>"), domain.ClassForeign, 200},
		{"an empty body", sends(200, "application/json", ""), domain.ClassForeign, 200},
		{"202", sends(202, "", ""), domain.ClassForeign, 202},
		{"an answer under another id", sends(200, "application/json", `{"jsonrpc":"2.0","id":99,"result":{}}`), domain.ClassForeign, 200},
		{"a stream that ends", streams(": nothing\n\n"), domain.ClassUnavailable, 0},
		{"a redirect elsewhere", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://192.0.2.1/mcp")
			w.WriteHeader(307)
		}, domain.ClassRedirect, 0},
		{"a redirect that changes the method", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/other")
			w.WriteHeader(302)
		}, domain.ClassRedirect, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			s.on(domain.MethodDiscover, c.way)
			b := webStarted(t, s, nil)
			id := b.probe()
			if c.class == "" {
				if a, _ := await[domain.ProbeAnswered](t, b.ledger, 1); a[0].RequestID != id {
					t.Errorf("%+v", a)
				}
				return
			}
			f, full := await[domain.ProbeFailed](t, b.ledger, 1)
			if f[0].Class != c.class || f[0].Status != c.status || f[0].Reason == "" || f[0].RequestID != id {
				t.Errorf("%+v", f[0])
			}
			if f[0].Frame != (domain.Ref{}) && f[0].Frame != domain.RefTo(full[0].evidence) {
				t.Errorf("the evidence is %q for %+v", full[0].evidence, f[0].Frame)
			}
		})
	}
}

// Modern evidence counts in any body, whole or not and whatever it is said to be: it is no answer, and still rules legacy out (design, the
// probe table).
func TestModernWordsInAForeignBodyAreEvidence(t *testing.T) {
	const own, stream = `{"jsonrpc":"2.0","id":$ID,`, "text/event-stream"
	modern, other := own+errorAnswer(-32022)+"}", own+errorAnswer(-32601)+"}"
	for _, c := range []struct {
		name string
		way  http.HandlerFunc
	}{
		{"text", sends(400, "text/plain", modern)},
		{"words", sends(400, "text/plain", "an error -32021 in words")},
		{"an event without an end", sends(404, stream, "data: "+modern+"\n")},
		{"an event without a line's end", sends(404, stream, "data: "+modern)},
		{"an event of another type", sends(404, stream, "event: error\ndata: "+modern+"\n\n")},
		{"a comment", sends(404, stream, ": "+modern+"\n\n")},
		{"behind another answer", sends(404, stream, event(other)+event(modern))},
		{"behind another answer, under 200", sends(200, stream, event(other)+event(`{"jsonrpc":"2.0","id":999,`+errorAnswer(-32022)+`}`))},
		{"a DiscoverResult without an end", sends(404, stream, "data: "+own+webDiscovered+"}\n")},
		{"the body of a redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/there" {
				sends(404, "", "")(w, r)
				return
			}
			w.Header().Set("Location", "/there")
			sends(307, "application/json", modern)(w, r)
		}},
		{"the body of a redirect elsewhere", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://192.0.2.1/")
			sends(307, "application/json", modern)(w, r)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			s.on(domain.MethodDiscover, c.way)
			b := webStarted(t, s, nil)
			b.probe()
			a, _ := await[domain.ProbeAnswered](t, b.ledger, 1)
			if !a[0].Modern || a[0].At != at1 {
				t.Errorf("the first that is told is %+v", a[0])
			}
			poll(t, "the probe has an outcome", func() bool { return len(of[domain.ProbeFailed](b.ledger))+len(of[domain.ProbeAnswered](b.ledger)) >= 2 })
		})
	}
}

// The stream of one request speaks for no other: not for the progress of another's call, nor for another's subscription.
func TestAStreamSpeaksForItsOwnRequestAlone(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, nil)
	b.modern()
	var told []string
	s.on(domain.MethodListen, streams(event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}`), "wait"))
	listen := b.ask(domain.Send{Method: domain.MethodListen, Era: domain.EraModern, Version: "2026-07-28", Types: []string{domain.TypeToolsChanged}}, nil)
	await[domain.SubscriptionAcknowledged](t, b.ledger, 1)
	about := func(id int64) string {
		return event(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d}}}`, id)) +
			event(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)) +
			event(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, id))
	}
	s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
		streams(about(listen)+event(`{"jsonrpc":"2.0","id":$ID,`+webComplete+`}`))(w, r)
	})
	b.call("mine", domain.EraModern, `{}`)
	b.answered(1)
	b.Flush()
	if ended, changed := of[domain.SubscriptionEnded](b.ledger), of[domain.ListChanged](b.ledger); len(ended)+len(changed)+len(told) > 0 {
		t.Errorf("%+v, %+v", ended, changed)
	}
}

// What a request over HTTP carries (specification 2026-07-28, basic/transports/streamable-http, "Request Metadata").
func TestTheHeadersOfARequest(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, nil)
	b.modern()
	s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Mcp-Session-Id", "never sent back")
		jsonAnswer(webComplete)(w, r)
	})
	for i := range 2 {
		b.call(fmt.Sprint(i), domain.EraModern, `{"owner":"Zoë","count":42,"none":null}`, func(s *domain.Send, body *domain.Body) {
			s.Tool = "größe"
			body.InputSchema = []byte(`{"type":"object","properties":{"owner":{"type":"string","x-mcp-header":"Owner"},` +
				`"count":{"type":"integer","x-mcp-header":"Count"},"none":{"type":"string","x-mcp-header":"None"}}}`)
		})
		b.answered(i + 1)
	}
	seen := s.seen(domain.MethodCall)
	for name, want := range map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?Z3LDtsOfZQ==?=",
		"Mcp-Param-Owner": "=?base64?Wm/Dqw==?=", "Mcp-Param-Count": "42", "Mcp-Param-None": "", "Mcp-Session-Id": "", "Cookie": ""} {
		for _, a := range seen {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	if got := s.seen(domain.MethodDiscover)[0].header; got.Get("Mcp-Method") != "server/discover" || got.Get("Mcp-Name") != "" || got.Get("Mcp-Protocol-Version") != "2026-07-28" {
		t.Errorf("the probe has %v", got)
	}
}
