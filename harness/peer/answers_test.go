package peer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"waybill/domain"
)

const discoverResult = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`

func answerLine(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
}

func TestAnAnswerToACallIsReportedByteForByte(t *testing.T) {
	result := `{"resultType":"complete","z":9007199254740993,"a":1.10,"content":[{"type":"text","text":"\u00e9é\/\n"}] }`
	b := started(t, nil, "read", "say  "+answerLine("$ID", result)+" ", "untilEOF")
	b.modern()
	id := b.call(`{"n":1}`)
	answers, full := await[domain.CallAnswered](t, b.ledger, 1)
	want := domain.CallAnswered{CallID: domain.CallID{Host: "host", ID: "a/b"}, At: at1, RequestID: id, Result: testDigest([]byte(result)),
		Facts: domain.Facts{Kind: domain.FactResult, ResultType: "complete"}}
	if !reflect.DeepEqual(answers[0], want) || string(full[0].payload) != result || full[0].evidence != nil {
		t.Errorf("reported %+v with %q and %q", answers[0], full[0].payload, full[0].evidence)
	}
}

func TestAnErrorAnswerIsTheErrorObject(t *testing.T) {
	b := started(t, nil, "read", `say {"error":{"code":-32602, "message":"no"},"id":$ID,"jsonrpc":"2.0"}`, "untilEOF")
	b.modern()
	b.call(`{}`)
	answers, full := await[domain.CallAnswered](t, b.ledger, 1)
	if string(full[0].payload) != `{"code":-32602, "message":"no"}` || answers[0].Facts.ErrorCode != -32602 {
		t.Errorf("reported %+v with %s", answers[0], full[0].payload)
	}
}

func TestAnAnswerUnderTheRightIDIsAnAnswerWhateverElseIsWrong(t *testing.T) {
	frames := []string{
		`{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1}}`,
		`{"jsonrpc":"1.0","id":$ID,"result":{}}`,
		`{"jsonrpc":"2.0","id":$ID}`,
		`{"id":$ID,"result":[]}`,
	}
	for _, frame := range frames {
		b := started(t, nil, "read", "say "+frame, "read", "say "+frame, "read", "say "+frame, "untilEOF")
		b.discover()
		_, probes := await[domain.ProbeAnswered](t, b.ledger, 1)
		if want := strings.ReplaceAll(frame, "$ID", "1"); string(probes[0].evidence) != want {
			t.Errorf("%s: evidence is %s", frame, probes[0].evidence)
		}
		b.modern()
		b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraModern}, "")
		b.call("{}")
		if lists, _ := await[domain.CatalogListed](t, b.ledger, 1); lists[0].RequestID != 2 {
			t.Errorf("%s: %+v", frame, lists[0])
		}
		if calls, full := await[domain.CallAnswered](t, b.ledger, 1); calls[0].Facts.Kind != domain.FactBroken || full[0].payload != nil {
			t.Errorf("%s: %+v", frame, calls[0])
		}
		b.stopped()
		if n := b.noises(); len(n) != 0 {
			t.Errorf("%s: noise %v", frame, n)
		}
	}
}

func TestEvidenceIsRedactedAndReferredToAsRedacted(t *testing.T) {
	redact := func(c *Config) {
		s := c.Specs["p"]
		s.Redact = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter22"), []byte("[secret]")) }
		c.Specs["p"] = s
	}
	result := `{"tools":[],"x":"hunter22"}`
	b := started(t, redact, "read", "say "+answerLine("$ID", result), "read", "say "+answerLine("$ID", result), "read",
		"say "+answerLine("$ID", result), "stderr 10", "untilEOF")
	b.discover()
	b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraModern}, "")
	b.call("{}")
	probes, full := await[domain.ProbeAnswered](t, b.ledger, 1)
	want := strings.ReplaceAll(answerLine("1", result), "hunter22", "[secret]")
	if string(full[0].evidence) != want || probes[0].Frame != domain.RefTo([]byte(want)) {
		t.Errorf("evidence %s under %v", full[0].evidence, probes[0].Frame)
	}
	lists, full := await[domain.CatalogListed](t, b.ledger, 1)
	if bytes.Contains(full[0].evidence, []byte("hunter22")) || lists[0].Frame != domain.RefTo(full[0].evidence) {
		t.Errorf("evidence %s under %v", full[0].evidence, lists[0].Frame)
	}
	if _, full := await[domain.CallAnswered](t, b.ledger, 1); string(full[0].payload) != result {
		t.Errorf("the host gets %s", full[0].payload)
	}
}

func TestAFrameArrivesWholeHoweverItIsCut(t *testing.T) {
	b := started(t, nil, "read", "say "+answerLine("$ID", discoverResult), "read", "bytewise "+answerLine("$ID", `{"a":"é😀"}`), "read", "big 4194304", "read",
		`raw "\ufeff{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}\r\n"`, "untilEOF")
	b.discover()
	for range 3 {
		b.call("{}")
	}
	_, full := await[domain.CallAnswered](t, b.ledger, 3)
	want := []string{`{"a":"é😀"}`, `{"x":"` + strings.Repeat("x", 4<<20) + `"}`, `{}`}
	for i, w := range want {
		if string(full[i].payload) != w {
			t.Errorf("answer %d has %d bytes, want %d", i+1, len(full[i].payload), len(w))
		}
	}
	// The reader's buffer has been written over since.
	if _, full := await[domain.ProbeAnswered](t, b.ledger, 1); string(full[0].evidence) != answerLine("1", discoverResult) {
		t.Errorf("evidence is %.80q", full[0].evidence)
	}
}

func TestNoiseIsCountedByKindAndNeverAnAnswer(t *testing.T) {
	say := func(line string) string { return "say " + line }
	b := started(t, nil, "read", say(answerLine("$ID", "{}")), "read",
		say("hello"), say(`{"jsonrpc":"2.0","id":2,"result":{},"id":2}`), `raw "{\"a\":\"\xff\"}\n"`, say(`{"jsonrpc":"2.0","id":2,"result":{}}{}`),
		say(`"text"`), say("7"),
		say(""), `raw "  \r\n"`,
		say("[]"), say(`[{"jsonrpc":"2.0","id":2,"result":{}}]`),
		say(`{"jsonrpc":"1.0","id":99,"result":{}}`), say(`{"method":"x"}`),
		say(answerLine("99", "{}")), say(answerLine(`"2"`, "{}")), say(answerLine("2.0", "{}")), say(answerLine("-2", "{}")), say(answerLine("2e0", "{}")),
		say(answerLine("1", "{}")),
		say(answerLine("null", "{}")), say(`{"jsonrpc":"2.0","error":{"code":1}}`), say(`{"jsonrpc":"2.0","id":null,"method":"m"}`),
		say(`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage"}`), say(`{"jsonrpc":"2.0","id":"q","method":"ping"}`),
		say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2}}`),
		say(`{"jsonrpc":"2.0","method":"notifications/message"}`),
		say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`),
		say(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`),
		say(`{"jsonrpc":"2.0","method":"notifications/other"}`),
		say(answerLine("2", `{"resultType":"complete"}`)), `raw "{\"half"`)
	b.modern()
	b.call("{}")
	b.call("{}")
	answers, _ := await[domain.CallAnswered](t, b.ledger, 2)
	if answers[1].RequestID != 2 || answers[1].Facts.ResultType != "complete" {
		t.Errorf("the second answer is %+v", answers[1])
	}
	b.ended()
	want := map[string]int64{"not_json": 4, "not_object": 2, "blank": 2, "batch": 2, "wrong_jsonrpc": 2, "unknown_id": 5, "duplicate_answer": 1,
		"null_id": 3, "server_request": 2, "progress_ignored": 1, "notification_message": 1, "notification_list_changed": 1,
		"notification_cancelled": 1, "notification": 1, "half_line": 1}
	if got := b.noises(); !reflect.DeepEqual(got, want) {
		t.Errorf("noise is %v, want %v", got, want)
	}
	if n := of[domain.NoiseCounted](b.ledger); len(n) != 1 {
		t.Errorf("noise was reported %d times", len(n))
	}
	if len(of[domain.CallAnswered](b.ledger)) != 2 {
		t.Error("noise was taken for an answer")
	}
}

func TestModernEvidenceUnderAnyIDIsReportedUntilTheEraIsSelected(t *testing.T) {
	refused := `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no"}}`
	steps := []string{"read", "say " + refused, "say " + answerLine("77", discoverResult), "say " + answerLine("78", "{}")}
	for range maxEvidence {
		steps = append(steps, "say "+refused)
	}
	steps = append(steps, "read", "say "+answerLine("$ID", "{}"), "read", "say "+refused, "say "+answerLine("$ID", "{}"), "untilEOF")
	b := started(t, nil, steps...)
	b.discover()
	b.ask(domain.Send{Method: domain.MethodInitialize, Version: "2025-11-25"}, "")
	_, full := await[domain.ProbeAnswered](t, b.ledger, maxEvidence+1)
	if string(full[0].evidence) != refused || string(full[1].evidence) != answerLine("77", discoverResult) ||
		string(full[maxEvidence].evidence) != answerLine("2", "{}") {
		t.Errorf("evidence is %s, %s ... %s", full[0].evidence, full[1].evidence, full[maxEvidence].evidence)
	}
	b.modern()
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	b.stopped()
	if n := b.noises(); n["null_id"] != 3 || n["unknown_id"] != 1 || len(n) != 2 {
		t.Errorf("noise is %v", n)
	}
	if n := len(of[domain.ProbeAnswered](b.ledger)); n != maxEvidence+1 {
		t.Errorf("%d frames were reported", n)
	}
}

func TestALateAnswerToTheProbeIsReportedAndALateCallIsNoise(t *testing.T) {
	b := started(t, nil, "skip 2", "say "+answerLine("1", discoverResult), "say "+answerLine("2", "{}"), "read", "say "+answerLine("2", "{}"),
		"say "+answerLine("1", discoverResult), "say "+answerLine("$ID", "{}"), "untilEOF")
	// The peer answers only when it has read the second request, which is sent when the first is late.
	b.ask(domain.Send{Method: domain.MethodDiscover, Era: domain.EraUnknown, Deadline: 500}, "")
	b.notes(1)
	await[domain.DeadlinePassed](t, b.ledger, 1)
	b.call("{}")
	_, full := await[domain.ProbeAnswered](t, b.ledger, 1)
	if string(full[0].evidence) != answerLine("1", discoverResult) {
		t.Errorf("evidence is %s", full[0].evidence)
	}
	await[domain.CallAnswered](t, b.ledger, 1)
	b.modern()
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 2)
	b.stopped()
	if n := b.noises(); n["duplicate_answer"] != 2 || len(n) != 1 {
		t.Errorf("noise is %v", n)
	}
}

func TestAnAnswerAfterTheDeadlineIsLateNoise(t *testing.T) {
	b := started(t, nil, "skip 2", "say "+answerLine("1", "{}"), "say "+answerLine("2", "{}"), "untilEOF")
	b.modern()
	late := b.ask(domain.Send{Method: domain.MethodCall, Era: domain.EraModern, Call: "h/c", Tool: "t", Deadline: 500}, "{}")
	b.notes(1)
	passed, _ := await[domain.DeadlinePassed](t, b.ledger, 1)
	b.call("{}")
	answers, _ := await[domain.CallAnswered](t, b.ledger, 1)
	b.stopped()
	if passed[0].RequestID != late || answers[0].RequestID != 2 || b.noises()["late_answer"] != 1 {
		t.Errorf("%v, %v, noise %v", passed, answers, b.noises())
	}
}

// Deadlines are set about where the answers come, so that both happen at once many times.
func TestEverySendHasExactlyOneOutcome(t *testing.T) {
	const sends = 3000
	b := started(t, nil, "serve {}")
	b.file = ""
	b.modern()
	for i := range sends {
		b.ask(domain.Send{Method: domain.MethodCall, Era: domain.EraModern, Call: fmt.Sprint("h/", i), Tool: "t", Deadline: rand.Int64N(8)}, "{}")
	}
	poll(t, "an outcome of every send", func() bool { return len(outcomes(b.ledger)) == sends })
	b.stopped()
	total := 0
	for id, n := range outcomes(b.ledger) {
		total += n
		if n != 1 {
			t.Errorf("request %d has %d outcomes", id, n)
		}
	}
	t.Logf("%d answers, %d deadlines, %d lost", len(of[domain.CallAnswered](b.ledger)), len(of[domain.DeadlinePassed](b.ledger)),
		len(of[domain.ExchangeFailed](b.ledger)))
	if total != sends || len(of[domain.DeadlinePassed](b.ledger)) == 0 {
		t.Errorf("%d outcomes", total)
	}
}

func outcomes(l *ledger) map[int64]int {
	found := map[int64]int{}
	reports, _ := l.all()
	for _, r := range reports {
		switch d := r.data.(type) {
		case domain.CallAnswered:
			found[d.RequestID]++
		case domain.CatalogListed:
			found[d.RequestID]++
		case domain.DeadlinePassed:
			found[d.RequestID]++
		case domain.ExchangeFailed:
			found[d.RequestID]++
		}
	}
	return found
}

// An answer that cannot be read ends what it answers at once: nothing better is to
// come. The next one is read.
func TestAnAnswerThatCannotBeReadIsOne(t *testing.T) {
	for name, result := range map[string]string{"a key comes twice": `{"a":1,"a":2}`, "a string is no text": `{"a":"\ud800"}`} {
		t.Run(name, func(t *testing.T) {
			b := started(t, nil, "read", "say "+answerLine("$ID", result), "read", "say "+answerLine("$ID", `{"resultType":"complete"}`), "untilEOF")
			b.modern()
			b.call("{}")
			await[domain.CallAnswered](t, b.ledger, 1)
			b.call("{}")
			answers, full := await[domain.CallAnswered](t, b.ledger, 2)
			if answers[0].Facts.Kind != domain.FactBroken || len(full[0].payload) != 0 || answers[0].RequestID != 1 || answers[1].Facts.Kind != domain.FactResult {
				t.Errorf("reported %+v", answers)
			}
		})
	}
}
