package peer

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"waybill/domain"
)

func small(c *Config) { c.FrameLimit = 10_000 }

func TestALineOverTheLimitCostsWhatItAnswersAndNothingElse(t *testing.T) {
	large := strings.Repeat("x", 12_000)
	b := started(t, small, "skip 3",
		`raw "{\"jsonrpc\":\"2.0\",\"result\":{\"x\":\"`+large+`\"},\"id\":2}\n"`,
		"say "+answerLine("1", "{}"),
		`raw "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":\"`+large+`\"}\n"`,
		`raw "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":\"`+large+`\"}\n"`,
		`raw "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"`+large+`\"}\n"`,
		`raw "`+large+`\n"`,
		"say "+answerLine("3", "{}"), "read", "big 12000", "read", "say "+answerLine("$ID", "{}"), "untilEOF")
	b.modern()
	for range 3 {
		b.call("{}")
	}
	answers, _ := await[domain.CallAnswered](t, b.ledger, 2)
	failed, _ := await[domain.ExchangeFailed](t, b.ledger, 1)
	want := domain.ExchangeFailed{At: at1, RequestID: 2, Call: "host/a/b", Written: "maybe", Code: domain.CodeFrameTooLarge}
	if failed[0] != want || answers[0].RequestID != 1 || answers[1].RequestID != 3 {
		t.Errorf("%+v, %+v", failed, answers)
	}
	list := b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraModern}, "")
	failed, _ = await[domain.ExchangeFailed](t, b.ledger, 2)
	if want := (domain.ExchangeFailed{At: at1, RequestID: list, Written: "maybe", Code: domain.CodeFrameTooLarge}); failed[1] != want {
		t.Errorf("%+v", failed)
	}
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 3)
	if exit := b.stopped(); exit.Cause != "stopped" {
		t.Errorf("%+v", exit)
	}
	if n, want := b.noises(), map[string]int64{"too_long": 6}; !reflect.DeepEqual(n, want) {
		t.Errorf("noise is %v", n)
	}
}

func TestALineWithoutAnEndEndsTheIncarnation(t *testing.T) {
	b := started(t, func(c *Config) { quick(c); c.FrameLimit = 1 << 20 }, "read", "flood")
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	b.modern()
	b.call("{}")
	if exit := b.ended(); exit.Cause != "frame_too_large" {
		t.Errorf("%+v", exit)
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
	failed := of[domain.ExchangeFailed](b.ledger)
	if len(failed) != 1 || failed[0].Code != domain.CodeFrameTooLarge || failed[0].Written != "maybe" {
		t.Errorf("%+v", failed)
	}
	if n := b.noises(); n["too_long"] != 1 || len(n) != 1 {
		t.Errorf("noise is %v", n)
	}
}

// Whatever such a line holds, and however soon the process is gone after it, the end says so: a process that only ended
// might be started again as a legacy one.
func TestALineOverTheLimitBeforeTheEraIsKnownEndsTheIncarnationAndSaysSo(t *testing.T) {
	line := `raw "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":\"` + strings.Repeat("x", 5000) + `\"}\n"`
	const runs = 20
	b := newBench(t, func(c *Config) { quick(c); c.FrameLimit = 4000 }, "read", line, "say "+answerLine("1", discoverResult), "die 9")
	for i := range runs {
		at := domain.At{Peer: "p", Incarnation: int64(i + 1)}
		b.Do(domain.Launch{At: at}, nil)
		b.ask(domain.Send{At: at, Method: domain.MethodDiscover, Era: domain.EraUnknown}, "")
	}
	exits, _ := await[domain.PeerExited](t, b.ledger, runs)
	for _, exit := range exits {
		if exit.Cause != "frame_too_large" {
			t.Errorf("%+v", exit)
		}
	}
	failed := of[domain.ExchangeFailed](b.ledger)
	for _, f := range failed {
		if f.Code != domain.CodeFrameTooLarge {
			t.Errorf("%+v", f)
		}
	}
	if len(failed) != runs || len(of[domain.ProbeAnswered](b.ledger)) != 0 {
		t.Errorf("reported %s", b.story())
	}
}

// A result of tens of megabytes is copied while its line grows, and not again for the host.
func TestALargeResultIsNotCopiedInEveryLayer(t *testing.T) {
	const size = 30 << 20
	b := started(t, func(c *Config) { c.FrameLimit = 64 << 20 }, "read", "big 31457280", "untilEOF")
	b.modern()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.call("{}")
	_, full := await[domain.CallAnswered](t, b.ledger, 1)
	runtime.ReadMemStats(&after)
	if n := len(full[0].payload); n < size || cap(full[0].payload) != n {
		t.Errorf("the result has %d bytes, with room for %d", n, cap(full[0].payload))
	}
	grown := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d MiB were allocated for a result of %d MiB", grown>>20, size>>20)
	if grown > 5*size/2 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
}
