package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const bannerRow = "a banner before the first message"

func noiseRows() []pipeRow {
	return []pipeRow{
		{name: bannerRow, noise: []string{"not_json 2 49"},
			start: func(p *pipeScript) { p.write("toy server 1.2.3 is up\nreading from standard input\n") }},
		{name: "a debug line inside each call", noise: []string{"not_json 2 46"},
			call: func(p *pipeScript, _ rpc, frame string) { p.line("debug: three pages seen\n" + frame) }},
		{name: "colours before each answer", noise: []string{"not_json 4"},
			any: func(p *pipeScript, _ rpc, frame string) { p.line("\x1b[33minfo: connected\x1b[0m\n" + frame) }},
		{name: "a byte order mark before each message",
			any: func(p *pipeScript, _ rpc, frame string) { p.line("\xef\xbb\xbf" + frame) }},
		{name: "two byte order marks before an answer", calls: thenGood(), noise: []string{"not_json 1"},
			call: inTurn("\xef\xbb\xbf\xef\xbb\xbf" + answer("@", "{}"))},
		{name: "a status object spread over lines", noise: []string{"not_json 5 42"},
			probe: func(p *pipeScript, _ rpc, frame string) {
				p.line(frame + "\n{\n  \"ok\": true,\n  \"items\": [],\n  \"tookMs\": 9\n}")
			}},
		{name: "lines of JSON that are no message", noise: []string{"batch 1 4", "not_json 1 17", "not_object 4 16", "wrong_jsonrpc 1 11"},
			start: func(p *pipeScript) { p.line("{\"ok\":true}\n7\n\"text\"\nnull\nfalse\n[{}]\n{\"ok\":true,\"id\":}") },
		},
		{name: "ten thousand lines of noise", noise: []string{"not_json 10000 90000"},
			start: func(p *pipeScript) { p.write(strings.Repeat("chatter 1\n", 10000)) }},
		{name: "noise that is not UTF-8", noise: []string{"not_json 2 13"},
			start: func(p *pipeScript) { p.write("\xff\xfe\x00broken\n\xe2\x82\x00\x07\n") }},
		{name: "noise without an end after the answer", noise: []string{"half_line 1 7"},
			call: func(p *pipeScript, _ rpc, frame string) {
				if p.line(frame); p.calls == 2 {
					p.write("bye now")
				}
			}},
	}
}

func framingRows() []pipeRow {
	return []pipeRow{
		{name: "lines that end in CR LF",
			any: func(p *pipeScript, _ rpc, frame string) { p.write(frame + "\r\n") }},
		{name: "blank lines around each message", noise: []string{"blank 12 12"},
			any: func(p *pipeScript, _ rpc, frame string) { p.write("\n \t \n" + frame + "\r\r\n\n") }},
		{name: "an answer spread over lines", calls: thenGood(), noise: []string{"not_json 5"},
			call: once(func(_ *pipeScript, _ rpc, frame string) string { return strings.ReplaceAll(frame, ",", ",\n") })},
		{name: "an answer in a batch", calls: thenGood(), noise: []string{"batch 1"},
			call: once(func(_ *pipeScript, _ rpc, frame string) string { return "[" + frame + "]" })},
		{name: "two messages on one line", calls: thenGood(), noise: []string{"not_json 1"},
			call: once(func(_ *pipeScript, _ rpc, frame string) string {
				return frame + `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
			})},
		{name: "two messages in one write", noise: []string{"notification_list_changed 2"},
			call: func(p *pipeScript, _ rpc, frame string) {
				p.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n" + frame)
			}},
		{name: "a message in three writes",
			call: func(p *pipeScript, _ rpc, frame string) {
				p.write(frame[:10])
				p.write(frame[10:30])
				p.line(frame[30:])
			}},
		{name: "one byte at a time", calls: []pipeCall{{want: done, result: "dash \u2014 kana \u8aad face \U0001f600"}},
			any: func(p *pipeScript, m rpc, frame string) {
				if m.Method == "tools/call" {
					frame = p.text(m, "dash \u2014 kana \u8aad face \U0001f600")
				}
				for _, b := range []byte(frame + "\n") {
					p.write(string([]byte{b}))
				}
			}},
		{name: "half an answer and the end", calls: []pipeCall{{want: lost}, {want: unsent}},
			got: "server/discover tools/list tools/call", gone: "peer_exited", noise: []string{"half_line 1 49"},
			call: func(p *pipeScript, _ rpc, frame string) {
				p.write(frame[:49])
				leave(1)
			}},
		{name: "an answer without its newline and the end", calls: []pipeCall{{want: lost}, {want: unsent}},
			got: "server/discover tools/list tools/call", gone: "peer_exited", noise: []string{"half_line 1 100"},
			call: func(p *pipeScript, _ rpc, frame string) {
				p.write(frame)
				leave(0)
			}},
	}
}

// eitherWay is a call that ran out of time, written or not.
const eitherWay = "timed_out timed_out maybe|timed_out timed_out no"

func sizeRows() []pipeRow {
	const limit = "limits: {frame: 64KiB}"
	sized := func(p *pipeScript, m rpc, _ string) { p.line(p.sized(m)) }
	calls := func(sizes ...int) (all []pipeCall) {
		for _, n := range sizes {
			all = append(all, pipeCall{args: fmt.Sprintf(`{"size":%d}`, n), want: done, result: strings.Repeat("b", n-200)})
		}
		return all
	}
	tooLong := pipeCall{args: `{"size":65538}`, want: "lost frame_too_large maybe"}
	return []pipeRow{
		{name: "lines whose newline is at the edge of a buffer", call: sized, calls: calls(4096, 65535, 65536, 65537, 131072, 1<<20)},
		{name: "lines of 200 KiB to 10 MiB", call: sized, calls: calls(200<<10, 4<<20, 10<<20)},
		{name: "a line of just the frame limit", call: sized, top: limit, calls: calls(65537)},
		{name: "a line one byte over the frame limit", call: sized, top: limit,
			calls: []pipeCall{tooLong, {args: `{"size":300}`, want: done, result: strings.Repeat("b", 100)}}, noise: []string{"too_long 1"}},
		{name: "a line without an end", top: limit, calls: []pipeCall{tooLong, {want: unsent}}, got: "server/discover tools/list tools/call", gone: "frame_too_large",
			noise: []string{"too_long 1"},
			call: func(p *pipeScript, _ rpc, _ string) {
				for {
					p.write(strings.Repeat("x", 32<<10))
				}
			}},
		{name: "a line without an end in place of the probe's answer", top: limit, want: "unavailable unknown frame_too_large",
			more: []string{"allow_legacy: true"}, got: "server/discover", gone: "frame_too_large", noise: []string{"too_long 1"},
			probe: func(p *pipeScript, _ rpc, _ string) {
				for {
					p.write(strings.Repeat("x", 32<<10))
				}
			}},
		{name: "a request over the frame limit", top: limit, got: "server/discover tools/list tools/call tools/call",
			calls: []pipeCall{{args: `{"s":"` + strings.Repeat("s", 64<<10) + `"}`, want: "lost request_too_large no"}, {want: done}}},
	}
}

func encodingRows() []pipeRow {
	late := []string{"probe_timeout: 2s"}
	spoilt := func(p *pipeScript, _ rpc, frame string) {
		p.line(strings.Replace(frame, `"complete"`, "\"complete\",\"x\":\"\xff\"", 1))
	}
	good := answer("@", `{"resultType":"complete","content":[],"x":"\ud83d\ude00"}`)
	bad := func(s string) string { return answer("@", `{"resultType":"complete","content":[],"x":"DECOY `+s+`"}`) }
	return []pipeRow{
		{name: "broken UTF-8 in answers", calls: []pipeCall{{want: broken}, {want: broken}, {want: broken}, {want: broken}, {want: done}},
			call: inTurn(bad("\xff"), bad("\xe2\x82"), bad("\xed\xa0\xbd"), bad("\xc0\xaf"))},
		{name: "half a surrogate pair in answers", calls: []pipeCall{{want: broken}, {want: broken}, {want: done, result: `\ud83d\ude00`}, {want: done}},
			call: inTurn(bad(`\ud83d`), bad(`\ude00\ud83d`), good)},
		{name: "broken UTF-8 in the answer to the probe", want: "unavailable unknown modern_evidence", more: []string{"probe_timeout: 3s"}, got: "server/discover",
			gone: "modern_evidence", probe: spoilt},
		{name: "broken UTF-8 in the list", want: "degraded modern list_invalid", got: "server/discover tools/list",
			deaf: true, list: spoilt},
		{name: "UTF-16", want: "unavailable unknown ambiguous_silence", more: late, got: "server/discover", gone: "ambiguous_silence",
			noise: []string{"half_line 1", "not_json 1"},
			any: func(p *pipeScript, _ rpc, frame string) {
				p.write("\xff\xfe")
				for _, b := range []byte(frame + "\n") {
					p.write(string([]byte{b, 0}))
				}
			}},
	}
}

func processRows() []pipeRow {
	const flood = 4 << 20
	afterHelper := []pipeCall{{want: lost, timeout: 8 * time.Second}}
	return []pipeRow{
		{name: "a flood on standard error",
			start: func(*pipeScript) { fmt.Fprint(os.Stderr, strings.Repeat("\rprogress", flood/9)) },
			call: func(p *pipeScript, _ rpc, frame string) {
				fmt.Fprint(os.Stderr, strings.Repeat(".", 256<<10))
				p.line(frame)
			},
			after: func(r *pipeRun) { r.stderrIs(flood/9*9 + 2*(256<<10)) }},
		{name: "a helper that keeps the pipes", calls: afterHelper, gone: "peer_exited", call: leaveHelper(false)},
		{name: "a helper apart that keeps the pipes", calls: afterHelper, gone: "peer_exited", call: leaveHelper(true)},
		{name: "standard output closed while the process lives", calls: []pipeCall{{want: lost}, {want: unsent}},
			got: "server/discover tools/list tools/call", gone: "peer_exited",
			call: func(*pipeScript, rpc, string) { _ = os.Stdout.Close() }},
		{name: "standard input closed while the process lives", got: "server/discover tools/list tools/call", gone: "peer_exited",
			calls: []pipeCall{{want: done}, {want: unsent}},
			call: func(p *pipeScript, _ rpc, frame string) {
				_ = os.Stdin.Close()
				p.line(frame)
				stay()
			}},
		{name: "a long answer while a long request is written",
			calls: []pipeCall{{args: `{"size":8388608}`, want: done, result: "bbb", beside: true},
				{args: `{"size":9000000,"s":"` + strings.Repeat("s", 1<<20) + `"}`, want: done, result: "bbb", beside: true}},
			call: func(p *pipeScript, m rpc, _ string) { p.line(p.sized(m)) }},
		{name: "a peer that stops reading while we write", deaf: true, got: "server/discover tools/list tools/call",
			// Whether the second and third had begun to be written is a matter of moments.
			calls: []pipeCall{{timeout: soon, want: timedOut}, {args: `{"s":"` + strings.Repeat("s", 1<<20) + `"}`, timeout: soon, want: eitherWay},
				{timeout: soon, want: eitherWay}},
			call: func(p *pipeScript, _ rpc, _ string) { p.deaf = true }},
	}
}

// stderrIs checks how much the peer is known to have written to its standard
// error.
func (r *pipeRun) stderrIs(size int) {
	r.t.Helper()
	if out := r.must(exitDone, "events", "--type", "peer.exited", "--peer", "peer"); !strings.Contains(out, fmt.Sprintf(`"stderr_size":%d}`, size)) {
		r.t.Errorf("not %d bytes of standard error:\n%s", size, out)
	}
}
