package main

import (
	"net/http"
	"strings"
	"testing"
)

func httpRows() []httpRow {
	var all []httpRow
	for _, group := range [][]httpRow{closedRows(), statusRows(), streamRows(), headerRows(), sessionRows()} {
		all = append(all, group...)
	}
	return all
}

func calls(n int, want string) []httpCall {
	var all []httpCall
	for range n {
		all = append(all, httpCall{tool: "echo", want: want})
	}
	return all
}

func ways(list ...way) func(*endpoint) { return func(e *endpoint) { e.ways = list } }

// before puts ways before what a legacy endpoint does.
func before(list ...way) func(*endpoint) {
	return func(e *endpoint) { e.legacy, e.ways = true, list }
}

// closedRows are about endpoints that stay closed, or are tried again.
func closedRows() []httpRow {
	closed := func(name, code string, list ...way) httpRow {
		return httpRow{name: name, make: ways(list...), off: "unavailable unknown " + code, on: "unavailable unknown " + code}
	}
	suspect := func(name, code, legacy string, list ...way) httpRow {
		return httpRow{name: name, make: ways(list...), off: "unavailable unknown " + code, on: "unavailable unknown " + legacy}
	}
	const error32022 = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}}`
	return []httpRow{
		suspect("old-sse", "ambiguous_status", "legacy_status", replies("", 405, "", "")).with(reasonHolds("HTTP 405")),
		suspect("not-there", "ambiguous_status", "legacy_status", replies("", 404, "text/html", "<html>404 page not found</html>")),
		closed("misdirected", "unavailable", replies("", 421, "text/plain", "unexpected host")).with(reasonHolds("HTTP 421")),
		closed("throttled", "unavailable", replies("", 429, "", "")), closed("broken-down", "unavailable", replies("", 503, "text/html", "<html>")),
		closed("locked", "unauthorized", replies("", 401, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no"}}`)),
		closed("barred", "unauthorized", replies("", 403, "", "")),
		closed("sign-in", "broken_answer", replies("", 200, "text/html; charset=utf-8", "<!doctype html>")).with(reasonHolds("HTTP 200")),
		closed("moved-for-good", "redirect_refused", moves(301, "/elsewhere/")), closed("moved-away", "redirect_refused", moves(307, "http://192.0.2.1/mcp")),
		closed("stateful", "legacy_only", replies("server/discover", 400, "application/json", error32022)).with(reasonHolds("2025-11-25", "no downgrade")),
		closed("says-it-in-text", "modern_evidence", replies("server/discover", 400, "text/plain", "-32022: not this version")),
	}
}

func (r httpRow) with(after func(*testing.T, *world, string, *endpoint)) httpRow {
	r.after = after
	return r
}

// statusRows are about what a status says beside, or in the place of, a message.
func statusRows() []httpRow {
	legacy := func(name, code string, list ...way) httpRow {
		return httpRow{name: name, make: before(list...), off: "unavailable unknown " + code, on: webLegacy, calls: calls(2, webDone),
			after: func(t *testing.T, _ *world, _ string, e *endpoint) {
				if n := e.count("initialize"); n > 1 || n == 1 && e.count("notifications/initialized") != 1 {
					t.Errorf("initialize %d times, initialized %d", n, e.count("notifications/initialized"))
				}
			}}
	}
	const notFound = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}`
	once := func(list ...way) func(*endpoint) { return ways(list...) }
	return []httpRow{
		legacy("says-404", "ambiguous_status", replies("server/discover", 404, "text/plain", "no such session")),
		legacy("says-400", "ambiguous_status", replies("server/discover", 400, "", "")),
		legacy("says-json", "ambiguous_status", replies("server/discover", 400, "application/json", `{"error":{"code":"bad_request"},"success":false}`)),
		legacy("no-method", "ambiguous_error", replies("server/discover", 200, "application/json", notFound)),
		legacy("no-method-404", "ambiguous_error", replies("server/discover", 404, "application/json", notFound)),
		{name: "scopes", make: func(e *endpoint) {
			e.ways = []way{func(w http.ResponseWriter, r *http.Request, p posted) bool {
				return p.tool == "charge" && replies("", 403, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`)(w, r, p)
			}}
		}, off: webReady, calls: []httpCall{{tool: "charge", want: "protocol_error forbidden maybe"}, {tool: "echo", want: webDone}}, after: runsAre(1)},
		{name: "outage", make: once(times(2, replies("server/discover", 502, "text/html", "<h1>502</h1>"))), off: webReady, on: webReady, calls: calls(1, webDone)},
		{name: "expired", make: once(times(1, replies("tools/call", 401, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no"}}`))), off: webReady,
			calls: []httpCall{{tool: "echo", want: "protocol_error unauthorized no"}, {tool: "echo", want: webDone}}, after: runsAre(1)},
		{name: "fails", make: once(times(1, replies("tools/call", 500, "text/plain", "oops"))), off: webReady,
			calls: []httpCall{{tool: "echo", want: "protocol_error http_status maybe"}, {tool: "echo", want: webDone}}, after: runsAre(1)},
		{name: "accepts", make: once(times(1, replies("tools/call", 202, "", ""))), off: webReady,
			calls: []httpCall{{tool: "echo", want: "protocol_error bad_result maybe"}, {tool: "echo", want: webDone}}, after: without(http.MethodGet)},
		{name: "empty", make: once(times(1, replies("tools/call", 200, "application/json", ""))), off: webReady,
			calls: []httpCall{{tool: "echo", want: "protocol_error bad_result maybe"}, {tool: "echo", want: webDone}}},
		{name: "moved", make: func(e *endpoint) {
			e.ways = []way{func(w http.ResponseWriter, r *http.Request, p posted) bool {
				return moves(307, strings.TrimSuffix(r.URL.Path, "mcp")+"there")(w, r, p)
			}}
		}, off: webReady, calls: calls(2, webDone), after: runsAre(2)},
	}
}

// streamRows are about bodies.
func streamRows() []httpRow {
	streamed := func(name string, n int, want string, pieces ...string) httpRow {
		return httpRow{name: name, off: webReady, calls: calls(n, want), make: func(e *endpoint) {
			e.ways = []way{chunks(e, "Text/Event-Stream;charset=UTF-8", pieces...)}
		}}
	}
	unended := streamed("unended", 1, "timed_out timed_out maybe", "data: $BODY\n", "HANG")
	unended.calls[0].timeout = "1s"
	return []httpRow{
		streamed("chatty", 2, webDone, ": keep-alive\r\n\r\n", "event: ping\ndata:\n\n", "data: \n\n", "event: keepalive\ndata: {}\n\n", "retry: 100\nid: 7\n\n", "data: $BODY\n\n"),
		streamed("split", 2, webDone, "event: message\r", "\ndata: $HALF1", "$HALF2\r", "\n\r", "\n"),
		streamed("returns", 1, webDone, "data: $BODY\r\r"),
		streamed("lines", 1, webDone, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":$ID,\ndata: \"result\":{\"resultType\":\"complete\",\"content\":[]}}\n\n"),
		streamed("breaks-off", 1, "lost transport_lost maybe", "data: $HALF1"),
		streamed("says-more", 1, webDone, `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`+"\n\n", "data: $BODY\n\n", "data: $BODY\n\n", "HANG"),
		streamed("other-id", 1, webDone, `data: {"jsonrpc":"2.0","id":999999,"result":{"resultType":"complete","content":[]}}`+"\n\n", "data: $BODY\n\n"),
		unended,
		{name: "zipped", off: webReady, calls: calls(1, webDone), make: func(e *endpoint) { e.ways = []way{zipped(e)} }, after: runsAre(1)},
		{name: "capitals", off: webReady, make: ways(replies("server/discover", 200, `Application/JSON; Charset="utf-8"`,
			`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`))},
		{name: "localhost", host: "localhost", off: webReady, make: ways(), calls: calls(1, webDone)},
	}
}

const mirroring = `{"name":"echo","inputSchema":{"type":"object","properties":{"owner":{"type":"string","x-mcp-header":"Owner"},` +
	`"opts":{"type":"object","properties":{"count":{"type":"integer","x-mcp-header":"Count"}}}}}},` +
	`{"name":"wrong","inputSchema":{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}}`

// headerRows are about headers.
func headerRows() []httpRow {
	return []httpRow{
		{name: "wants-accept", off: webReady, make: ways(requires("Accept", "application/json, text/event-stream", 406)), calls: calls(1, webDone)},
		{name: "wants-type", off: webReady, make: ways(requires("Content-Type", "application/json", 415)), calls: calls(1, webDone)},
		{name: "mirrors", off: webReady, make: func(e *endpoint) { e.tools = mirroring },
			calls: []httpCall{{tool: "echo", args: `{"owner":"a","opts":{"count":3}}`, want: webDone}, {tool: "echo", args: `{"owner":" \u4e16\r\nEvil: 1 ","opts":{}}`, want: webDone},
				{tool: "echo", args: `{"owner":null}`, want: webDone}, {tool: "echo", args: `{"opts":{"count":9007199254740993}}`, want: "refused header_unfit no"},
				{tool: "wrong", want: "refused unknown_tool no"}},
			after: func(t *testing.T, w *world, peer string, e *endpoint) {
				seen := e.requests("tools/call")
				for i, want := range [][2]string{{"a", "3"}, {"=?base64?IOS4lg0KRXZpbDogMSA=?=", ""}, {"", ""}} {
					if h := seen[i].header; h.Get("Mcp-Param-Owner") != want[0] || h.Get("Mcp-Param-Count") != want[1] || h.Get("Evil") != "" || h.Get("Mcp-Name") != "echo" {
						t.Errorf("call %d came with %v", i+1, h)
					}
				}
				if len(seen) != 3 || len(w.events("tool.rejected", peer)) != 1 {
					t.Errorf("%d calls came; left out: %+v", len(seen), w.events("tool.rejected", peer))
				}
			}},
		{name: "changes-headers", off: webReady, make: func(e *endpoint) {
			e.tools = strings.Replace(mirroring, "Owner", "Before", 1)
			e.ways = []way{func(w http.ResponseWriter, r *http.Request, p posted) bool {
				if p.method != "tools/call" || r.Header.Get("Mcp-Param-Owner") == "a" {
					return false
				}
				e.mu.Lock()
				e.tools = mirroring
				e.mu.Unlock()
				said(w, p, 400, `"error":{"code":-32020,"message":"Header mismatch"}`)
				return true
			}}
		}, calls: []httpCall{{tool: "echo", args: `{"owner":"a"}`, want: webDone}}, after: func(t *testing.T, _ *world, _ string, e *endpoint) {
			if e.count("tools/list") != 2 || e.count("tools/call") != 2 || e.runs() != 1 {
				t.Errorf("%d lists, %d calls, %d of them carried out", e.count("tools/list"), e.count("tools/call"), e.runs())
			}
		}},
		{name: "insists", off: webReady, make: ways(replies("tools/call", 400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"no"}}`)),
			calls: calls(1, "protocol_error peer_error no"), after: func(t *testing.T, _ *world, _ string, e *endpoint) {
				if e.count("tools/call") != 2 {
					t.Errorf("called %d times, want twice", e.count("tools/call"))
				}
			}},
		{name: "mints", off: webReady, calls: calls(2, webDone), make: ways(func(w http.ResponseWriter, _ *http.Request, _ posted) bool {
			w.Header().Set("Mcp-Session-Id", "left-over")
			return false
		}), after: func(t *testing.T, w *world, peer string, e *endpoint) {
			for _, p := range e.requests("tools/call") {
				if p.header.Get("Mcp-Session-Id") != "" {
					t.Error("a modern call names a session")
				}
			}
			without(http.MethodDelete)(t, w, peer, e)
		}},
	}
}

// sessionRows are about legacy sessions.
func sessionRows() []httpRow {
	forgetting := func(name string, status int, kind, body string, calls ...httpCall) httpRow {
		return httpRow{name: name, on: webLegacy, calls: calls, make: func(e *endpoint) {
			e.legacy, e.ways = true, []way{forgets(e, status, kind, body)}
		}, after: func(t *testing.T, w *world, peer string, e *endpoint) {
			if n := e.count("initialize"); n != 2 {
				t.Errorf("initialize %d times, want twice", n)
			}
			for _, p := range e.requests("tools/call") {
				if p.header.Get("Mcp-Session-Id") == "" || p.header.Get("Mcp-Protocol-Version") != "2025-11-25" || p.header.Get("Mcp-Method") != "" {
					t.Errorf("a call came with %v", p.header)
				}
			}
		}}
	}
	return []httpRow{
		forgetting("forgets", 404, "text/plain", "unknown session", calls(3, webDone)...),
		forgetting("rejects", 400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"session is not valid here"}}`,
			httpCall{tool: "echo", want: webDone}, httpCall{tool: "echo", want: "protocol_error http_status maybe"}, httpCall{tool: "echo", want: webDone}),
	}
}
