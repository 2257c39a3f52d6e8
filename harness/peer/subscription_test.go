package peer

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
)

// subscribe asks for notices of changed tools, in a context.
func (b *bench) subscribe(context string) int64 {
	return b.askWith(domain.Send{Method: domain.MethodListen, Era: domain.EraModern, Context: context, Types: []string{domain.TypeToolsChanged}}, nil)
}

func subscriptionMeta(id string) string {
	return `"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}`
}

func acknowledgement(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + subscriptionMeta(id) + `,"notifications":{"toolsListChanged":true}}}`
}

func changeNotice(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + subscriptionMeta(id) + `}}`
}

func cancelNotice(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

func gracefulEnd(id string) string {
	return answerLine(id, `{"resultType":"complete",`+subscriptionMeta(id)+`}`)
}

func acked(id int64, context string) domain.Data {
	return domain.SubscriptionAcknowledged{At: at1, Context: context, RequestID: id, Frame: domain.RefTo([]byte(acknowledgement(fmt.Sprint(id))))}
}

// said returns what was reported of subscriptions and what waited, without the life of the process and its noise.
func (b *bench) said() []domain.Data {
	var found []domain.Data
	for _, d := range b.data() {
		switch d.(type) {
		case domain.PeerSpawned, domain.PeerExited, domain.NoiseCounted:
		default:
			found = append(found, d)
		}
	}
	return found
}

// The peer says all of it at once, and is gone.
func TestWhatAPeerSaysOfOneSubscription(t *testing.T) {
	lost := lostListen(1, writtenMaybe, domain.CodeTransportLost)
	broken := endedAs(1, "c", domain.EndedBroken)
	failed := func(code int64) domain.Data {
		return domain.SubscriptionEnded{At: at1, Context: "c", RequestID: 1, How: domain.EndedError, ErrorCode: code}
	}
	ack, change, cancel, end := acknowledgement("1"), changeNotice("1"), cancelNotice("1"), gracefulEnd("1")
	other := func(line, old, word string) string { return strings.Replace(line, old, word, 1) }
	tests := []struct {
		name  string
		says  []string
		want  []domain.Data
		noise map[string]int64
	}{
		{"nothing", nil, []domain.Data{lost}, nil},
		{"an acknowledgement", []string{ack}, []domain.Data{acked(1, "c"), lost}, nil},
		{"one of another id", []string{acknowledgement("2")}, []domain.Data{lost}, map[string]int64{"acknowledgement_ignored": 1}},
		{"one whose id is a string", []string{acknowledgement(`"1"`)}, []domain.Data{lost}, map[string]int64{"acknowledgement_ignored": 1}},
		{"ids in other figures", []string{acknowledgement("1.0"), acknowledgement("1e0"), acknowledgement("-1"), acknowledgement("null")}, []domain.Data{lost},
			map[string]int64{"acknowledgement_ignored": 4}},
		{"one without an id", []string{`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}`}, []domain.Data{lost},
			map[string]int64{"acknowledgement_ignored": 1}},
		{"one that is a request", []string{other(ack, `"method"`, `"id":1,"method"`)}, []domain.Data{lost}, map[string]int64{"server_request": 1}},
		{"one of another jsonrpc", []string{other(ack, "2.0", "1.0")}, []domain.Data{lost}, map[string]int64{"wrong_jsonrpc": 1}},
		{"two", []string{ack, ack}, []domain.Data{acked(1, "c"), lost}, map[string]int64{"acknowledgement_ignored": 1}},
		{"a change before it", []string{change, ack}, []domain.Data{changedOn(1, "c", 1), acked(1, "c"), lost}, nil},
		{"changes around it", []string{change, change, change, ack, change, change}, []domain.Data{changedOn(1, "c", 1), changedOn(1, "c", 2), acked(1, "c"),
			changedOn(1, "c", 2), lost}, nil},
		{"a change on another", []string{ack, changeNotice("2"), changeNotice(`"1"`), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`},
			[]domain.Data{acked(1, "c"), lost}, map[string]int64{"notification_list_changed": 3}},
		{"a change of other lists", []string{ack, other(change, "tools", "prompts"), other(change, "tools", "resources")}, []domain.Data{acked(1, "c"), lost},
			map[string]int64{"notification_list_changed": 2}},
		{"progress", []string{ack, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`},
			[]domain.Data{acked(1, "c"), lost}, map[string]int64{"progress_ignored": 1}},
		{"a graceful end", []string{ack, change, change, end}, []domain.Data{acked(1, "c"), changedOn(1, "c", 1), changedOn(1, "c", 1),
			endedAs(1, "c", domain.EndedAnswered)}, nil},
		{"an end at once", []string{end}, []domain.Data{endedAs(1, "c", domain.EndedAnswered)}, nil},
		{"anything after the end", []string{ack, end, end, change, ack, cancel}, []domain.Data{acked(1, "c"), endedAs(1, "c", domain.EndedAnswered)},
			map[string]int64{"duplicate_answer": 1, "notification_list_changed": 1, "acknowledgement_ignored": 1, "notification_cancelled": 1}},
		{"an end of no type", []string{other(end, "complete", "done")}, []domain.Data{broken}, nil},
		{"an end of another", []string{other(end, `Id":1`, `Id":2`)}, []domain.Data{broken}, nil},
		{"an end that is a list", []string{answerLine("1", "[]")}, []domain.Data{broken}, nil},
		{"an end with an error", []string{other(end, `"result"`, `"error":{"code":1},"result"`)}, []domain.Data{broken}, nil},
		{"an end with nothing", []string{`{"jsonrpc":"2.0","id":1}`}, []domain.Data{broken}, nil},
		{"an end with a name twice", []string{other(end, `"result"`, `"x":1,"x":2,"result"`)}, []domain.Data{broken}, nil},
		{"an end of another jsonrpc", []string{other(end, "2.0", "1.0")}, []domain.Data{broken}, nil},
		{"an error", []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`}, []domain.Data{failed(-32601)}, nil},
		{"an error without a code", []string{ack, `{"jsonrpc":"2.0","id":1,"error":"no"}`}, []domain.Data{acked(1, "c"), failed(0)}, nil},
		{"a cancellation", []string{ack, change, change, cancel, end, cancel}, []domain.Data{acked(1, "c"), changedOn(1, "c", 1), changedOn(1, "c", 1),
			endedAs(1, "c", domain.EndedCancelled)}, map[string]int64{"duplicate_answer": 1, "notification_cancelled": 1}},
		{"a cancellation at once", []string{cancel, ack}, []domain.Data{endedAs(1, "c", domain.EndedCancelled)}, map[string]int64{"acknowledgement_ignored": 1}},
		{"a cancellation of another", []string{cancelNotice("2"), cancelNotice(`"1"`), other(cancel, "requestId", "requestID")}, []domain.Data{lost},
			map[string]int64{"notification_cancelled": 3}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			steps := []string{"read"}
			for _, line := range test.says {
				steps = append(steps, "say "+line)
			}
			b := newBench(t, nil, steps...)
			b.Do(domain.Launch{At: at1}, nil)
			b.modern()
			b.subscribe("c")
			b.ended()
			if got := b.said(); !reflect.DeepEqual(got, test.want) {
				t.Errorf("reported %+v", got)
			}
			if n := b.noises(); !reflect.DeepEqual(n, test.noise) && len(n)+len(test.noise) > 0 {
				t.Errorf("noise is %v", n)
			}
		})
	}
}

func TestTwoSubscriptionsAreKeptApart(t *testing.T) {
	b := started(t, nil, "skip 2", "say "+changeNotice("2"), "say "+acknowledgement("2"), "say "+changeNotice("1"), "say "+changeNotice("1"), "say "+changeNotice("2"),
		"say "+acknowledgement("1"), "say "+gracefulEnd("2"), "say "+changeNotice("2"), "say "+changeNotice("1"), "exit 0")
	b.modern()
	b.subscribe("one")
	b.subscribe("two")
	b.ended()
	want := []domain.Data{changedOn(2, "two", 1), acked(2, "two"), changedOn(1, "one", 1), changedOn(1, "one", 1), acked(1, "one"), changedOn(2, "two", 1),
		endedAs(2, "two", domain.EndedAnswered), changedOn(1, "one", 1), lostListen(1, writtenMaybe, domain.CodeTransportLost)}
	if got := b.said(); !reflect.DeepEqual(got, want) {
		t.Errorf("reported %+v", got)
	}
	if n := b.noises(); n["notification_list_changed"] != 1 || len(n) != 1 {
		t.Errorf("noise is %v", n)
	}
}

func TestAnAcknowledgementIsEvidenceAndRedacted(t *testing.T) {
	secret := strings.Replace(acknowledgement("$ID"), `{"toolsList`, `{"token":"hunter22","toolsList`, 1)
	b := started(t, func(c *Config) {
		s := c.Specs["p"]
		s.Redact = func(b []byte) []byte {
			if !bytes.Contains(b, []byte("hunter22")) {
				return b
			}
			return bytes.ReplaceAll(b, []byte("hunter22"), []byte("[secret]"))
		}
		c.Specs["p"] = s
	}, "read", "say "+secret, "read", "say "+acknowledgement("$ID"), "read", "big 200000", "untilEOF")
	b.modern()
	b.subscribe("c")
	b.subscribe("d")
	acks, full := await[domain.SubscriptionAcknowledged](t, b.ledger, 2)
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1) // the reader's buffer has been written over
	want := strings.NewReplacer("hunter22", "[secret]", "$ID", "1").Replace(secret)
	if string(full[0].evidence) != want || acks[0].Frame != domain.RefTo([]byte(want)) || full[0].payload != nil {
		t.Errorf("evidence %s under %v", full[0].evidence, acks[0].Frame)
	}
	if string(full[1].evidence) != acknowledgement("2") || acks[1] != acked(2, "d") {
		t.Errorf("evidence %.200s under %v", full[1].evidence, acks[1].Frame)
	}
}

func TestTheAnswerToAListRequestHasItsContextAndComesAfterTheChangesBeforeIt(t *testing.T) {
	b := started(t, nil, "read", "say "+acknowledgement("1"), "say "+changeNotice("1"), "read", "say "+changeNotice("1"), "say "+changeNotice("1"),
		"say "+answerLine("2", `{"tools":[]}`), "say "+changeNotice("1"), "untilEOF")
	b.modern()
	b.subscribe("c")
	await[domain.ListChanged](t, b.ledger, 1)
	b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraModern, Context: "d"}, "")
	await[domain.CatalogListed](t, b.ledger, 1)
	b.stopped()
	listed := domain.CatalogListed{At: at1, Context: "d", RequestID: 2, Frame: domain.RefTo([]byte(answerLine("2", `{"tools":[]}`)))}
	want := []domain.Data{acked(1, "c"), changedOn(1, "c", 1), changedOn(1, "c", 2), listed, changedOn(1, "c", 1),
		lostListen(1, writtenMaybe, domain.CodeTransportLost)}
	if got := b.said(); !reflect.DeepEqual(got, want) {
		t.Errorf("reported %+v", got)
	}
}

func TestALegacyPeerGivesNoticeUnasked(t *testing.T) {
	unasked := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	b := started(t, nil, "say "+unasked, "read", "say "+unasked, "say "+answerLine("$ID", "{}"), "skip 2", "say "+unasked,
		"say "+changeNotice("7"), `say {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`, "say "+acknowledgement("2"), "say "+cancelNotice("2"),
		"say "+answerLine("$ID", "{}"), "say "+unasked, "say "+unasked, "exit 0")
	b.ask(domain.Send{Method: domain.MethodInitialize, Version: "2025-11-25"}, "")
	await[domain.ProbeAnswered](t, b.ledger, 1)
	b.legacy()
	b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraLegacy, Version: "2025-11-25"}, "")
	b.ended()
	want := []domain.Data{changedOn(0, "", 1), changedOn(0, "", 1), domain.CatalogListed{At: at1, RequestID: 2, Frame: domain.RefTo([]byte(answerLine("2", "{}")))},
		changedOn(0, "", 2)}
	if got := b.said()[1:]; !reflect.DeepEqual(got, want) {
		t.Errorf("reported %+v", got)
	}
	if n := b.noises(); n["notification_list_changed"] != 3 || n["acknowledgement_ignored"] != 1 || n["notification_cancelled"] != 1 || len(n) != 3 {
		t.Errorf("noise is %v", n)
	}
}

func TestASubscriptionThatIsNotAcknowledgedInTimeIsCancelled(t *testing.T) {
	b := started(t, nil, "skip 3", "say "+acknowledgement("1"), "say "+changeNotice("1"), "say "+gracefulEnd("1"), "say "+answerLine("$ID", "{}"), "untilEOF")
	b.modern()
	b.askWith(domain.Send{Method: domain.MethodListen, Era: domain.EraModern, Types: []string{domain.TypeToolsChanged}, Deadline: 300}, nil)
	b.notes(1)
	await[domain.DeadlinePassed](t, b.ledger, 1)
	b.Do(domain.Withdraw{At: at1, RequestID: 1, Reason: "no acknowledgement"}, nil)
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	b.stopped()
	want := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"no acknowledgement"}}`
	if line := b.notes(3)[1]; line != want {
		t.Errorf("wrote %s", line)
	}
	if got := b.said(); got[0] != domain.Data(domain.DeadlinePassed{At: at1, RequestID: 1, Silent: true}) || len(got) != 2 {
		t.Errorf("reported %+v", got)
	}
	if n := b.noises(); n["acknowledgement_ignored"] != 1 || n["notification_list_changed"] != 1 || n["late_answer"] != 1 || len(n) != 3 {
		t.Errorf("noise is %v", n)
	}
}

func TestAWithdrawnSubscriptionIsCancelledAndNothingOfItIsLost(t *testing.T) {
	b := started(t, nil, "read", "say "+acknowledgement("1"), "say "+changeNotice("1"), "say "+changeNotice("1"), "read", "say "+answerLine("2", "{}"), "skip 2",
		"say "+gracefulEnd("1"), "say "+changeNotice("1"), "say "+answerLine("$ID", "{}"), "untilEOF")
	b.modern()
	b.subscribe("c")
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1) // the notices have been read
	b.Do(domain.Withdraw{At: at1, RequestID: 1}, nil)
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 2)
	b.Do(domain.Withdraw{At: at1, RequestID: 1}, nil) // a second time, and after its answer
	b.stopped()
	if lines := b.notes(4); lines[2] != cancelNotice("1") || len(lines) != 4 {
		t.Errorf("wrote %q", lines)
	}
	if got := of[domain.ListChanged](b.ledger); len(got) != 2 || got[0].Count+got[1].Count != 2 || strings.Contains(b.story(), "subscription.ended") {
		t.Errorf("reported %+v", b.said())
	}
	if n := b.noises(); n["late_answer"] != 1 || n["notification_list_changed"] != 1 || len(n) != 2 {
		t.Errorf("noise is %v", n)
	}
}

func TestASubscriptionThatWasNeverWrittenOrHasEndedIsNotCancelled(t *testing.T) {
	b := newBench(t, nil, "read", "say "+acknowledgement("2"), "say "+cancelNotice("2"), "read", "say "+gracefulEnd("3"), "read", "say "+answerLine("$ID", "{}"), "untilEOF")
	b.Do(domain.Launch{At: at1, Delay: 300}, nil)
	b.modern()
	b.subscribe("never written")
	b.Do(domain.Withdraw{At: at1, RequestID: 1}, nil)
	b.subscribe("ended by the peer")
	await[domain.SubscriptionEnded](t, b.ledger, 1)
	b.Do(domain.Withdraw{At: at1, RequestID: 2}, nil)
	b.subscribe("answered")
	await[domain.SubscriptionEnded](t, b.ledger, 2)
	b.Do(domain.Withdraw{At: at1, RequestID: 3}, nil)
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	for i, line := range b.notes(3) {
		if !strings.Contains(line, fmt.Sprintf(`"id":%d,`, i+2)) {
			t.Errorf("line %d is %s", i+1, line)
		}
	}
}

func TestASubscriptionThatCannotBeWrittenIsABadRequest(t *testing.T) {
	b := started(t, nil, "read", "untilEOF")
	b.modern()
	sends := []domain.Send{
		{Era: domain.EraLegacy, Version: "2025-11-25", Types: []string{domain.TypeToolsChanged}},
		{Era: domain.EraModern, Types: []string{domain.TypeToolsChanged, "promptsListChanged"}},
		{Era: domain.EraModern},
	}
	for i, s := range sends {
		s.Method = domain.MethodListen
		id := b.askWith(s, nil)
		failed, _ := await[domain.ExchangeFailed](t, b.ledger, i+1)
		if failed[i] != lostListen(id, writtenNo, domain.CodeBadRequest) {
			t.Errorf("%+v", failed[i])
		}
	}
	b.subscribe("")
	if lines := b.notes(1); !strings.Contains(lines[0], `"params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`) {
		t.Errorf("wrote %q", lines)
	}
}

func TestAnEndThatIsTooLongSettlesTheSubscriptionLikeAnyRequest(t *testing.T) {
	b := started(t, small, "read", "say "+acknowledgement("1"), "say "+changeNotice("1"), "say "+changeNotice("1"), "big 12000", "read",
		"say "+answerLine("$ID", "{}"), "untilEOF")
	b.modern()
	b.subscribe("c")
	await[domain.ExchangeFailed](t, b.ledger, 1)
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	want := []domain.Data{acked(1, "c"), changedOn(1, "c", 1), changedOn(1, "c", 1), lostListen(1, writtenMaybe, domain.CodeFrameTooLarge)}
	if got := b.said()[:4]; !reflect.DeepEqual(got, want) {
		t.Errorf("reported %+v", got)
	}
}

func TestWhatWasCountedIsReportedWhenItIsAskedFor(t *testing.T) {
	b := started(t, nil, "read", "say "+changeNotice("1"), "say "+changeNotice("1"), "say "+changeNotice("1"), "say "+answerLine("2", "{}"), "untilEOF")
	b.modern()
	b.subscribe("c")
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	b.Flush()
	if got := of[domain.ListChanged](b.ledger); got[0].Count+got[len(got)-1].Count != 3 || len(got) != 2 {
		t.Errorf("reported %+v", got)
	}
}

// The answers in a storm come between its notices, each when its time has come; what is kept does not grow with it.
func TestAStormCostsNoMemoryAndNoAnswer(t *testing.T) {
	const storm, foreign = 100_000, 5_000
	wave := func(n int, id string) string { return fmt.Sprint("storm ", n, " ", changeNotice(id)) }
	b := started(t, nil, "skip 2", "say "+acknowledgement("1"), wave(storm/2, "1"), "say "+answerLine("2", "{}"), wave(storm/2, "1"),
		wave(foreign, "99"), "exit 0")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.modern()
	b.subscribe("c")
	b.call("{}")
	b.ended()
	runtime.GC()
	runtime.ReadMemStats(&after)
	changes := of[domain.ListChanged](b.ledger)
	if n := total(b.data()); n != storm || changes[0].Count != 1 || len(changes) > 60 {
		t.Errorf("%d notices in %d reports", n, len(changes))
	}
	data := b.data()
	if i := slices.IndexFunc(data, isAnswer); i < 0 || total(data[:i]) > storm/2 {
		t.Errorf("the answer is report %d, after %d notices", i, total(data[:max(i, 0)]))
	}
	if n := b.noises(); n["notification_list_changed"] != foreign || len(n) != 1 {
		t.Errorf("noise is %v", n)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d KiB are kept", grown>>10)
	}
	if said := b.said(); said[len(said)-1] != lostListen(1, writtenMaybe, domain.CodeTransportLost) {
		t.Errorf("the last report is %+v", said[len(said)-1])
	}
}

func isAnswer(d domain.Data) bool {
	_, ok := d.(domain.CallAnswered)
	return ok
}

// total is the number of notices that were reported.
func total(reports []domain.Data) int64 {
	n := int64(0)
	for _, d := range reports {
		if c, ok := d.(domain.ListChanged); ok {
			n += c.Count
		}
	}
	return n
}
