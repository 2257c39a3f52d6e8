package peer

import (
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

func TestALegacyPeerIsAnsweredAndInitializedComesFirst(t *testing.T) {
	b := started(t, nil, "read", "say "+answerLine("$ID", "{}"),
		"read", `say {"jsonrpc":"2.0","id":"q\u00e9","method":"ping"}`, `say {"jsonrpc":"2.0","id":9007199254740993,"method":"roots/list"}`,
		`say {"jsonrpc":"2.0","id":[1],"method":"ping"}`, "skip 3", "untilEOF")
	b.ask(domain.Send{Method: domain.MethodInitialize, Version: "2025-11-25"}, "")
	await[domain.ProbeAnswered](t, b.ledger, 1)
	b.legacy()
	lines := b.notes(4)
	want := []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":"q\u00e9","result":{}}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32601,"message":"Method not found"}}`}
	for i, w := range want {
		if lines[i+1] != w {
			t.Errorf("line %d is %s", i+2, lines[i+1])
		}
	}
	b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraLegacy, Version: "2025-11-25"}, "")
	if line := b.notes(5)[4]; !strings.Contains(line, "tools/list") {
		t.Errorf("line 5 is %s", line)
	}
	b.stopped()
	if n := b.noises(); n["server_request"] != 3 || n["server_request_dropped"] != 1 {
		t.Errorf("noise is %v", n)
	}
}

func TestAPeerOfAnotherEraIsNeverAnswered(t *testing.T) {
	b := started(t, nil, `say {"jsonrpc":"2.0","id":5,"method":"ping"}`, "read", `say {"jsonrpc":"2.0","id":6,"method":"ping"}`,
		"say "+answerLine("$ID", "{}"), "read", "untilEOF")
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	b.modern()
	b.call(`{"second":true}`)
	if line := b.notes(2)[1]; !strings.Contains(line, `"second"`) {
		t.Errorf("after the first call the peer read %s", line)
	}
	b.stopped()
	if n := b.noises(); n["server_request"] != 2 || len(n) != 1 {
		t.Errorf("noise is %v", n)
	}
}

func TestAnswersToALegacyPeerThatDoesNotReadAreBounded(t *testing.T) {
	steps := []string{"read"}
	for range 3 * maxReplies {
		steps = append(steps, `say {"jsonrpc":"2.0","id":1,"method":"ping"}`)
	}
	b := started(t, quick, append(steps, "note asked", "hang")...)
	b.legacy()
	b.call(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`) // fills the pipe
	b.notes(2)
	poll(t, "every request is read", func() bool {
		live := b.lane("p").incarnation(at1)
		live.noise.mu.Lock()
		defer live.noise.mu.Unlock()
		return live.noise.kinds[noiseRequest].Count >= 3*maxReplies
	})
	b.stopped()
	if n := b.noises(); n["server_request_dropped"] < maxReplies {
		t.Errorf("noise is %v", n)
	}
}

func TestAWithdrawnCallIsCancelledAndItsAnswerIsLate(t *testing.T) {
	b := started(t, nil, "skip 2", "say "+answerLine("1", "{}"), "skip 1", "say "+answerLine("$ID", "{}"), "untilEOF")
	b.modern()
	b.call("{}")
	b.notes(1)
	b.Do(domain.Withdraw{At: at1, RequestID: 1, Reason: "the host gave up"}, nil)
	lines := b.notes(2)
	if want := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the host gave up"}}`; lines[1] != want {
		t.Errorf("wrote %s", lines[1])
	}
	b.call("{}")
	answers, _ := await[domain.CallAnswered](t, b.ledger, 1)
	b.stopped()
	if n := b.noises(); answers[0].RequestID != 2 || n["late_answer"] != 1 || outcomes(b.ledger)[1] != 0 {
		t.Errorf("%v, noise %v, outcomes %v", answers, n, outcomes(b.ledger))
	}
}

func TestAProbeIsWithdrawnInSilence(t *testing.T) {
	b := started(t, nil, "skip 2", "untilEOF")
	b.discover()
	b.notes(1)
	b.Do(domain.Withdraw{At: at1, RequestID: 1, Reason: "x"}, nil)
	b.call("{}")
	if line := b.notes(2)[1]; !strings.Contains(line, "tools/call") {
		t.Errorf("wrote %s", line)
	}
}

func TestARequestOverTheFrameLimitIsRefusedAndTheNextIsWritten(t *testing.T) {
	b := started(t, func(c *Config) { c.FrameLimit = 10_000 }, "read", "say "+answerLine("$ID", "{}"), "untilEOF")
	b.modern()
	b.call(`{"a":"` + strings.Repeat("x", 10_000) + `"}`)
	b.call(`not json`)
	b.call(`{}`)
	answers, _ := await[domain.CallAnswered](t, b.ledger, 1)
	failed, _ := await[domain.ExchangeFailed](t, b.ledger, 2)
	want := []domain.ExchangeFailed{{At: at1, RequestID: 1, Call: "host/a/b", Written: "no", Code: domain.CodeRequestTooLarge},
		{At: at1, RequestID: 2, Call: "host/a/b", Written: "no", Code: domain.CodeBadRequest}}
	if failed[0] != want[0] || failed[1] != want[1] || answers[0].RequestID != 3 {
		t.Errorf("%+v, %+v", failed, answers)
	}
}

func TestAPeerThatNeverReadsHoldsUpNobody(t *testing.T) {
	file := ""
	b := newBench(t, func(c *Config) {
		quick(c)
		c.Specs["q"] = actor(t, file, "serve {}")
	}, "hang")
	other := domain.At{Peer: "q", Incarnation: 1}
	b.Do(domain.Launch{At: at1}, nil)
	b.Do(domain.Launch{At: other}, nil)
	await[domain.PeerSpawned](t, b.ledger, 2)
	b.modern()
	arguments := `{"a":"` + strings.Repeat("x", 64<<10) + `"}`
	begun := time.Now()
	for range 64 {
		b.ask(domain.Send{Method: domain.MethodCall, Era: domain.EraModern, Call: "h/c", Tool: "t", Deadline: 1500}, arguments)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("handing over 64 calls took %v", took)
	}
	b.ask(domain.Send{At: other, Method: domain.MethodCall, Era: domain.EraModern, Call: "h/d", Tool: "t"}, "{}")
	if answers, _ := await[domain.CallAnswered](t, b.ledger, 1); answers[0].Peer != "q" {
		t.Errorf("answered by %v", answers[0].At)
	}
	if passed, _ := await[domain.DeadlinePassed](t, b.ledger, 64); len(passed) != 64 {
		t.Errorf("%d deadlines passed", len(passed))
	}
	lane := b.lane("p")
	for range 2 * leastSweep {
		b.ask(domain.Send{Method: domain.MethodCall, Era: domain.EraModern, Call: "h/c", Tool: "t", Deadline: 60_000}, arguments)
		b.Do(domain.Withdraw{At: at1, RequestID: b.next}, nil)
	}
	lane.mu.Lock()
	if len(lane.queue) > leastSweep+1 {
		t.Errorf("%d dead tasks are queued", len(lane.queue))
	}
	lane.mu.Unlock()
	b.stopped()
}

func TestEffectsOnAnIncarnationThatIsNotThereAreDropped(t *testing.T) {
	b := started(t, nil, "serve {}")
	old, unknown := domain.At{Peer: "p", Incarnation: 7}, domain.At{Peer: "nobody", Incarnation: 1}
	for _, at := range []domain.At{old, unknown} {
		b.Do(domain.SelectEra{At: at, Era: domain.EraLegacy}, nil)
		b.Do(domain.Stop{At: at}, nil)
		b.Do(domain.Withdraw{At: at, RequestID: 1}, nil)
		b.ask(domain.Send{At: at, Method: domain.MethodCall, Era: domain.EraModern, Call: "h/c", Tool: "t"}, "{}")
	}
	b.Do(domain.Launch{At: at1}, nil) // a second time
	b.Do(domain.Answer{Call: "h/c"}, nil)
	b.Do(domain.Launch{At: unknown}, nil)
	if refused, _ := await[domain.SpawnFailed](t, b.ledger, 1); refused[0].At != unknown || refused[0].Code != domain.CodeSpawnFailed {
		t.Errorf("%+v", refused)
	}
	failed := of[domain.ExchangeFailed](b.ledger)
	if len(failed) != 2 || failed[0] != (domain.ExchangeFailed{At: old, RequestID: 1, Call: "h/c", Written: "no", Code: domain.CodeTransportLost}) ||
		failed[1].At != unknown {
		t.Errorf("%+v", failed)
	}
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	if n := len(of[domain.PeerSpawned](b.ledger)); n != 1 {
		t.Errorf("%d processes were started", n)
	}
}

// A delayed start waits, and a stop does not wait for it.
func TestADelayedStartCanBeStopped(t *testing.T) {
	b := newBench(t, quick, "serve {}")
	b.Do(domain.Launch{At: at1, Delay: patience.Milliseconds()}, nil)
	b.Do(domain.Stop{At: at1}, nil)
	if got, _ := await[domain.SpawnFailed](t, b.ledger, 1); got[0].At != at1 || len(of[domain.PeerSpawned](b.ledger)) != 0 {
		t.Errorf("%+v", b.data())
	}
	begun := time.Now()
	second := domain.At{Peer: "p", Incarnation: 2}
	b.Do(domain.Launch{At: second, Delay: 50}, nil)
	if got, _ := await[domain.PeerSpawned](t, b.ledger, 1); got[0].At != second || time.Since(begun) < 50*time.Millisecond {
		t.Errorf("%+v after %v", got, time.Since(begun))
	}
}
