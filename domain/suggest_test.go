package domain

import "testing"

// TestBrokenFramesThatShowModernBehaviourRuleLegacyOut: a repeated key, a batch,
// a message spread over lines or a bad byte is no answer, but a modern code in it
// still forbids initialize (protocol: a message that carries a modern code).
func TestBrokenFramesThatShowModernBehaviourRuleLegacyOut(t *testing.T) {
	for name, line := range map[string]string{
		"repeated key":   `{"jsonrpc":"2.0","id":1,"id":1,"error":{"code":-32022,"message":"m"}}`,
		"batch":          `[{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"m"}}]`,
		"spread":         `    "code": -32020,`,
		"bad byte":       "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"\xff\"}}",
		"two on a line":  `{"jsonrpc":"2.0","id":1,"error":{"code":-32022}}{"jsonrpc":"2.0","id":1,"error":{"code":-32022}}`,
		"with a method":  `{"jsonrpc":"2.0","id":1,"method":"x","error":{"code":-32022,"message":"m"}}`,
		"discover batch": `[{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if !SuggestsModern([]byte(line)) {
				t.Fatal("it is taken for noise")
			}
			w := probeWorld(t, true)
			w.see(ProbeAnswered{At: w.at("archive"), Modern: true, Frame: RefTo([]byte(line))}, line)
			w.silent("archive")
			want := CodeModernEvidence
			if name == "with a method" { // it carries the probe's id: a broken answer
				want = CodeBrokenAnswer
			}
			if n := w.count(MethodInitialize); n != 0 || w.s.Peer("archive").Code != want {
				t.Errorf("%d initialize, %s", n, w.s.Peer("archive").Code)
			}
		})
	}
}

// TestRedactionCannotHideModernBehaviour: what a line showed as it came counts,
// and an answer of which nothing is left closes instead of leaving the peer
// without a deadline.
func TestRedactionCannotHideModernBehaviour(t *testing.T) {
	const nothing = `"[redacted]"`
	for _, c := range []struct {
		name   string
		id     int64
		modern bool
		want   Code
	}{
		{"the probe's own answer, modern", 1, true, CodeBrokenAnswer},
		{"the probe's own answer", 1, false, CodeBrokenAnswer},
		{"another id, modern", 0, true, CodeModernEvidence},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := probeWorld(t, true)
			id := c.id
			if id != 0 {
				id = w.last("archive").RequestID
			}
			w.see(ProbeAnswered{At: w.at("archive"), RequestID: id, Modern: c.modern, Frame: RefTo([]byte(nothing))}, nothing)
			w.silent("archive")
			if n := w.count(MethodInitialize); n != 0 || w.s.Peer("archive").Code != c.want {
				t.Errorf("%d initialize, %s", n, w.s.Peer("archive").Code)
			}
		})
	}
	w := probeWorld(t, true)
	frame := w.frame("archive", `{"jsonrpc":"2.0","id":$ID,"error":"[redacted]"}`)
	w.see(ProbeAnswered{At: w.at("archive"), RequestID: w.last("archive").RequestID, Modern: true, Frame: RefTo([]byte(frame))}, frame)
	if n := w.count(MethodInitialize); n != 0 || w.s.Peer("archive").Code != CodeModernEvidence {
		t.Errorf("a message that redaction made ambiguous: %d initialize, %s", n, w.s.Peer("archive").Code)
	}
}

func TestArgumentsAreBoundedInDepth(t *testing.T) {
	nest := func(n int) string {
		open, shut := "", ""
		for range n {
			open, shut = open+`{"a":`, `}`+shut
		}
		return `{"tool":"t","arguments":` + open + `"]}\""` + shut + `}`
	}
	if _, problem := ParseCall([]byte(nest(MaxDepth))); problem != "" {
		t.Errorf("%d levels: %s", MaxDepth, problem)
	}
	if _, problem := ParseCall([]byte(nest(MaxDepth + 1))); problem == "" {
		t.Error("one level more is accepted")
	}
}

// TestASlowPagerIsGivenUp: the pages of a list have a deadline together, too.
func TestASlowPagerIsGivenUp(t *testing.T) {
	w := listing(t, EraModern)
	limit := listPatience * testPeer("archive").ProbeTimeout * 1_000_000
	w.listed("archive", listPage(`,"resultType":"complete","nextCursor":"a"`, "x"))
	w.now += limit / 2
	must[ListRequested](t, w.listed("archive", listPage(`,"resultType":"complete","nextCursor":"b"`, "y")))
	w.now += limit
	if d := must[CatalogRefused](t, w.listed("archive", listPage(`,"resultType":"complete","nextCursor":"c"`, "z"))); d.Code != CodeListTimeout {
		t.Errorf("%+v", d)
	}
}
