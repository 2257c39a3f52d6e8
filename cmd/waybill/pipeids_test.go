package main

import (
	"fmt"
	"slices"
	"strings"
)

const (
	decoy = `{"resultType":"complete","content":[{"type":"text","text":"DECOY"}]}`
	oops  = `{"code":-32603,"message":"DECOY"}`
)

// lines joins the frames of one answer.
func lines(frames ...string) string { return strings.Join(frames, "\n") }

func idRows() []pipeRow {
	return []pipeRow{
		{name: "an id that comes back as a string", calls: thenGood(), noise: []string{"unknown_id 1"},
			call: inTurn(answer(`"@"`, decoy))},
		{name: "an id that comes back as a fraction", calls: thenGood(), noise: []string{"unknown_id 4"},
			call: inTurn(lines(answer("@.5", decoy), answer("@.0", decoy), answer("@e0", decoy), answer("-@", decoy)))},
		{name: "an id that is null or absent", calls: thenGood(), noise: []string{"null_id 2"},
			call: inTurn(lines(`{"jsonrpc":"2.0","id":null,"error":`+oops+`}`, `{"jsonrpc":"2.0","result":`+decoy+`}`))},
		{name: "an id that was never sent", calls: thenGood(), noise: []string{"unknown_id 3"},
			call: inTurn(lines(answer("1@", decoy), answer("99999999999999999999", decoy), answer("0", decoy)))},
		{name: "an id that is no id", calls: thenGood(), noise: []string{"not_json 1", "unknown_id 4"},
			call: inTurn(lines(answer("[@]", decoy), answer(`{"id":@}`, decoy), answer("true", decoy), answer("0@", decoy), answer(`""`, decoy)))},
		{name: "an answer twice", noise: []string{"duplicate_answer 2"},
			call: func(p *pipeScript, m rpc, frame string) { p.line(lines(frame, answer(string(m.ID), decoy))) }},
		{name: "one of two calls answered twice", noise: []string{"duplicate_answer 1"},
			calls: []pipeCall{{want: done, args: `{"one":1}`, beside: true}, {want: timedOut, timeout: 4 * soon, beside: true}},
			got:   "server/discover tools/list tools/call tools/call notifications/cancelled tools/call",
			call: func(p *pipeScript, m rpc, frame string) {
				if string(m.Params.Arguments) == `{"one":1}` {
					p.line(lines(frame, answer(string(m.ID), decoy)))
				}
			}},
		{name: "answers in another order", calls: []pipeCall{{want: done, beside: true}, {want: done, beside: true}, {want: done, beside: true}},
			call: func(p *pipeScript, m rpc, _ string) {
				if p.held = append(p.held, m); len(p.held) == 3 {
					slices.Reverse(p.held)
					for _, m := range p.held {
						p.line(p.frame(m))
					}
				}
			}},
		{name: "an answer after its deadline", calls: thenGood(), noise: []string{"late_answer 1"},
			call: func(p *pipeScript, m rpc, frame string) {
				if p.held = append(p.held, m); p.calls == 2 {
					p.line(lines(answer(string(p.held[0].ID), decoy), frame))
				}
			}},
		{name: "an error for a cancelled call", calls: thenGood(), noise: []string{"late_answer 1"},
			call: func(p *pipeScript, m rpc, frame string) {
				if p.held = append(p.held, m); p.calls > 1 {
					p.line(frame)
				}
			},
			heard: func(p *pipeScript, _ rpc) {
				p.line(`{"jsonrpc":"2.0","id":` + string(p.held[0].ID) + `,"error":` + oops + `}`)
			}},
		{name: "the probe's answer under another id", want: "unavailable unknown modern_evidence", gone: "modern_evidence", got: "server/discover",
			more:  []string{"allow_legacy: true", "probe_timeout: 2s"},
			probe: func(p *pipeScript, m rpc, _ string) { p.line(answer(`"x"`, p.result(m))) }},
	}
}

func answerRows() []pipeRow {
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	return []pipeRow{
		{name: "a key twice", calls: []pipeCall{{want: broken}, {want: broken}, {want: broken}, {want: done}},
			call: inTurn(`{"jsonrpc":"2.0","id":@,"result":`+decoy+`,"result":`+decoy+`}`,
				`{"jsonrpc":"2.0","id":@,"result":`+decoy+`,"resul\u0074":`+decoy+`}`,
				answer("@", `{"resultType":"complete","content":[],"x":{"DECOY":1,"DECOY":1}}`))},
		{name: "members in other letters beside the right ones",
			call: func(p *pipeScript, m rpc, frame string) {
				p.line(`{"Result":` + decoy + `,"ID":99,"Error":` + oops + `,"Method":"ping","JSONRPC":"1.0",` +
					frame[1:len(frame)-1] + `,"RESULT":` + decoy + `,"id ":7}`)
			}},
		{name: "a key that is written with an escape",
			call: func(p *pipeScript, _ rpc, frame string) {
				p.line(strings.Replace(frame, `"result"`, `"r\u0065sult"`, 1))
			}},
		{name: "answers that are none", calls: []pipeCall{{want: broken}, {want: broken}, {want: broken}, {want: broken}, {want: broken}, {want: broken}, {want: done}},
			call: inTurn(`{"jsonrpc":"2.0","id":@,"Result":`+decoy+`}`, `{"jsonrpc":"2.0","id":@,"result":`+decoy+`,"error":`+oops+`}`,
				`{"jsonrpc":"1.0","id":@,"result":`+decoy+`}`, `{"id":@,"result":`+decoy+`}`, answer("@", `["DECOY"]`),
				`{"jsonrpc":"2.0","id":@,"error":"DECOY"}`)},
		{name: "an answer that is also a request", calls: thenGood(), noise: []string{"server_request 1"},
			call: inTurn(`{"jsonrpc":"2.0","id":@,"method":"ping","result":` + decoy + `}`)},
		{name: "an answer that is nested very deep", calls: thenGood(), noise: []string{"not_json 1"},
			call: inTurn(answer("@", `{"resultType":"complete","content":`+deep+`}`))},
	}
}

func requestRows() []pipeRow {
	const legacyHead = "server/discover initialize notifications/initialized tools/list"
	legacy, late := []string{"allow_legacy: true"}, []string{"allow_legacy: true", "probe_timeout: 2s"}
	asks := lines(`{"jsonrpc":"2.0","id":"p-1","method":"ping"}`, `{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}`,
		`{"jsonrpc":"2.0","id":"s-1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
	asking := func(p *pipeScript, _ rpc, frame string) {
		if p.calls == 1 {
			p.line(asks)
		}
		p.line(frame)
	}
	notices := lines(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tool-call-1","progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/unheard/of"}`)
	return []pipeRow{
		{name: "requests of a legacy server", legacy: true, more: legacy, want: "ready legacy", noise: []string{"server_request 3"},
			got: legacyHead + " tools/call (answer) (answer) (answer) tools/call tools/call", call: asking, after: answersToLegacy},
		{name: "requests of a modern server", noise: []string{"server_request 3"}, call: asking},
		{name: "requests before the era is known", legacy: true, more: legacy, want: "ready legacy", noise: []string{"server_request 3"},
			got: legacyHead + " tools/call tools/call tools/call", start: func(p *pipeScript) { p.line(asks) }},
		{name: "requests under no id", legacy: true, more: legacy, want: "ready legacy", got: legacyHead + " tools/call tools/call tools/call",
			noise: []string{"null_id 1", "server_request 2", "server_request_dropped 2"},
			call: once(func(_ *pipeScript, _ rpc, frame string) string {
				return lines(`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, frame)
			})},
		{name: "notifications before each answer",
			noise: []string{"notification 4", "notification_cancelled 4", "notification_list_changed 4", "notification_message 4", "progress_ignored 4"},
			any:   func(p *pipeScript, _ rpc, frame string) { p.line(lines(notices, frame)) }},
		{name: "progress after the answer", noise: []string{"progress_ignored 2"},
			call: func(p *pipeScript, m rpc, frame string) {
				p.line(lines(frame, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":3}}`, m.ID)))
			}},
		{name: "a notification before the initialize result", legacy: true, more: legacy, want: "ready legacy", noise: []string{"notification_list_changed 1"},
			got: legacyHead + " tools/call tools/call tools/call",
			any: func(p *pipeScript, m rpc, frame string) {
				if m.Method == "initialize" {
					p.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				}
				p.line(frame)
			}},
		{name: "the probe's answer after initialize", more: late, got: "server/discover initialize tools/list tools/call tools/call tools/call",
			after: bothOnRecord, any: func(p *pipeScript, m rpc, frame string) {
				switch p.held = append(p.held, m); m.Method {
				case "server/discover":
				case "initialize":
					p.line(p.frame(p.held[0]))
				case "tools/list":
					p.line(lines(p.frame(p.held[1]), frame))
				default:
					p.line(frame)
				}
			}},
		{name: "a modern error after initialize", more: late, want: "unavailable unknown modern_evidence", gone: "modern_evidence",
			got: "server/discover initialize", any: func(p *pipeScript, m rpc, frame string) {
				if p.held = append(p.held, m); m.Method == "initialize" {
					p.line(lines(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"x","data":{"supported":["2026-07-28"]}}}`, p.held[0].ID), frame))
				}
			}},
		{name: "the end in place of the probe's answer", want: "unavailable unknown ambiguous_exit", got: "server/discover", gone: "ambiguous_exit",
			probe: func(*pipeScript, rpc, string) { leave(3) }},
	}
}

// bothOnRecord: the answer to initialize changed nothing, and is no secret.
func bothOnRecord(r *pipeRun) {
	r.t.Helper()
	if n := len(r.events("probe.answered")); n != 2 {
		r.t.Errorf("%d answers are on record, want that to the probe and that to initialize", n)
	}
	if n := len(r.events("era.determined")); n != 1 {
		r.t.Errorf("the era was determined %d times", n)
	}
}

// answersToLegacy checks what a legacy server was told.
func answersToLegacy(r *pipeRun) {
	r.t.Helper()
	got := strings.Join(r.lines("peer", "got"), "\n")
	for _, want := range []string{`{"jsonrpc":"2.0","id":"p-1","result":{}}`, `{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":"s-1","error":{"code":-32601,`} {
		if strings.Count(got, want) != 1 {
			r.t.Errorf("the server was not told %s once:\n%s", want, got)
		}
	}
}
