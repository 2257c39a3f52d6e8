package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

// decoded is a reply as a host reads it.
type decoded map[string]json.RawMessage

func decodeReply(t testing.TB, r Reply) decoded {
	t.Helper()
	var d decoded
	if err := json.Unmarshal(r.Encode(), &d); err != nil {
		t.Fatalf("%v in %s", err, r.Encode())
	}
	return d
}

func (d decoded) want(t testing.TB, values map[string]string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if got := string(d[key]); got != values[key] {
			t.Errorf("%s is %s, want %s", key, got, values[key])
		}
	}
}

// replyKeys are in every reply.
var replyKeys = []string{"call_id", "code", "log", "ran", "result", "route", "seqs", "status"}

func TestEveryReplyHasAllItsKeysAndNullForWhatIsNotKnown(t *testing.T) {
	r := newRig(t, newMemLog(t)).start("notes")
	defer r.stop()
	head := int64(len(readAll(t, r.log, 0)))
	complete := decodeReply(t, r.reply(r.submit("local", `{"tool":"notes","call_id":"mine","arguments":{"a":1}}`)))
	complete.want(t, map[string]string{"call_id": `"mine"`, "status": `"complete"`, "code": "null", "ran": `"yes"`, "result": `{"a":1}`,
		"route": `{"peer":"notes","local":"notes","era":"modern","version":"2026-07-28","incarnation":1,"generation":1}`,
		"seqs":  fmt.Sprintf("[%d,%d,%d,%d]", head+1, head+2, head+3, head+4), "log": `"` + testLog + `"`})
	refused := decodeReply(t, r.reply(r.submit("local", `{"tool":"none"}`)))
	refused.want(t, map[string]string{"status": `"refused"`, "code": `"unknown_tool"`, "ran": `"no"`, "result": "null", "route": "null",
		"seqs": fmt.Sprintf("[%d,%d]", head+5, head+6), "log": `"` + testLog + `"`})
	if !strings.HasPrefix(string(refused["call_id"]), `"`+domain.GeneratedPrefix) {
		t.Errorf("call_id is %s, want one that was made", refused["call_id"])
	}
	shed := decodeReply(t, r.loop.shedReply(input{}, domain.CodeOverloaded, ""))
	shed.want(t, map[string]string{"call_id": "null", "status": `"refused"`, "code": `"overloaded"`, "ran": `"no"`, "result": "null",
		"route": "null", "seqs": "[]", "log": `"` + testLog + `"`})
	for _, d := range []decoded{complete, refused, shed} {
		got := slices.Sorted(maps.Keys(d))
		got = slices.DeleteFunc(got, func(k string) bool { return k == "reason" })
		if !slices.Equal(got, replyKeys) {
			t.Errorf("keys are %v, want %v", got, replyKeys)
		}
	}
	if complete["reason"] != nil || refused["reason"] == nil {
		t.Errorf("reasons: %s and %s; only a refusal has one", complete["reason"], refused["reason"])
	}
}

func TestResultsAndErrorsAreByteForByteThoseOfThePeer(t *testing.T) {
	r := newRig(t, newMemLog(t)).start("notes")
	defer r.stop()
	odd := `{ "n" : 9007199254740993 ,` + "\n\t" + `"s":"\u0041\/é", "x":1.0e+2 , "z":-0 }`
	for _, c := range []struct {
		name   string
		facts  domain.Facts
		status domain.Status
		code   domain.Code
		key    string
	}{
		{"result", domain.Facts{Kind: domain.FactResult, ResultType: "complete"}, domain.StatusComplete, "", "result"},
		{"tool error", domain.Facts{Kind: domain.FactResult, ResultType: "complete", IsError: true}, domain.StatusToolError, domain.CodeToolError, "result"},
		{"input", domain.Facts{Kind: domain.FactResult, ResultType: "input_required"}, domain.StatusInputRequired, domain.CodeInputRequired, "result"},
		{"no result type", domain.Facts{Kind: domain.FactResult}, domain.StatusProtocolError, domain.CodeNoResultType, "result"},
		{"error", domain.Facts{Kind: domain.FactError, ErrorCode: -32000}, domain.StatusProtocolError, domain.CodePeerError, "error"},
	} {
		r.setAnswer(func(e domain.Effect, _ []byte) {
			if s, ok := e.(domain.Send); ok && s.Method == "tools/call" {
				r.report(s, c.facts, []byte(odd))
			}
		})
		reply := r.reply(r.submit("local", `{"tool":"notes"}`))
		if reply.Status != c.status || reply.Code != c.code {
			t.Errorf("%s: %s", c.name, reply.Encode())
		}
		d := decodeReply(t, reply)
		if !strings.Contains(string(reply.Encode()), odd) || string(d[c.key]) != odd {
			t.Errorf("%s: %s does not hold the peer's bytes under %q", c.name, reply.Encode(), c.key)
		}
		if c.key == "error" {
			d.want(t, map[string]string{"result": "null"})
		} else if d["error"] != nil {
			t.Errorf("%s: the reply has an error: %s", c.name, reply.Encode())
		}
	}
}

func TestArgumentsReachThePeerByteForByte(t *testing.T) {
	r := newRig(t, newMemLog(t)).start("notes")
	defer r.stop()
	odd := `{ "n" : 9007199254740993 ,"s":"\u0041" }`
	d := decodeReply(t, r.reply(r.submit("local", `{"arguments": `+odd+` , "tool":"notes"}`)))
	d.want(t, map[string]string{"result": odd})
	d = decodeReply(t, r.reply(r.submit("local", `{"tool":"notes"}`)))
	d.want(t, map[string]string{"result": "{}"})
}

func TestAReplyThatDoesNotFitSaysSoWithItsSizeAndHowTheCallEnded(t *testing.T) {
	big := Reply{CallID: "a", Status: domain.StatusComplete, Ran: domain.RanYes, Seqs: []int64{1, 2}, Log: testLog,
		Route: &Route{Peer: "notes"}, Result: []byte(`{"x":"` + strings.Repeat("x", 100) + `"}`)}
	d := decodeReply(t, big.TooLarge())
	d.want(t, map[string]string{"call_id": `"a"`, "status": `"complete"`, "ran": `"yes"`, "code": `"result_too_large"`, "size": "108",
		"result": "null", "seqs": "[1,2]"})
	if d["route"] == nil || string(d["route"]) == "null" {
		t.Error("the route is gone")
	}
	if len(big.Result) == 0 || big.Code != "" {
		t.Error("the reply itself was changed")
	}
	failed := Reply{Status: domain.StatusProtocolError, Code: domain.CodePeerError, Ran: domain.RanMaybe, Error: []byte(`{"code":1}`)}
	d = decodeReply(t, failed.TooLarge())
	d.want(t, map[string]string{"status": `"protocol_error"`, "ran": `"maybe"`, "code": `"result_too_large"`, "size": "10"})
	if d["error"] != nil {
		t.Error("the error object is still there")
	}
}

func TestAReasonThatIsNoUTF8LeavesAReply(t *testing.T) {
	decodeReply(t, Reply{Reason: "bad \xff byte"}).want(t, map[string]string{"reason": "\"bad \ufffd byte\""})
}

// setAnswer changes how the peers answer, between two batches.
func (r *rig) setAnswer(f func(domain.Effect, []byte)) {
	r.t.Helper()
	if err := r.loop.Ask(r.t.Context(), func(*domain.State) { r.peers.answer = f }); err != nil {
		r.t.Fatal(err)
	}
}

func TestACallIDIsUsedOnceAndEachSubmissionIsAnswered(t *testing.T) {
	const named = `{"tool":"notes","call_id":"a"}`
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes", "sums")
		r.setAnswer(r.silent)
		log.hold()
		r.submit("local", `{"tool":"none","call_id":"z"}`)
		synctest.Wait()
		first, second := r.submit("local", named), r.submit("local", named) // in one batch
		stranger := r.submit("other", named)                                // another host's "a" is another call
		log.pass()
		synctest.Wait()
		reply := r.wantReply(second, domain.StatusRefused, domain.CodeDuplicateCall, domain.RanNo)
		if reply.CallID != "a" {
			t.Errorf("the refusal names call %q, the host named a", reply.CallID)
		}
		r.wantReply(r.submit("local", named), domain.StatusRefused, domain.CodeDuplicateCall, domain.RanNo) // it is under way
		for _, s := range r.peers.sends() {
			r.answer(s, "complete", []byte(`{}`))
		}
		r.wantReply(first, domain.StatusComplete, "", domain.RanYes)
		r.wantReply(stranger, domain.StatusComplete, "", domain.RanYes)
		r.wantReply(r.submit("local", named), domain.StatusRefused, domain.CodeDuplicateCall, domain.RanNo) // it has ended
		r.stop()
		list := readAll(t, log, 0)
		wantOnce(t, list, "local/a")
		for _, d := range find[domain.CallReceived](list) {
			if d.DuplicateOf != "" && (d.DuplicateOf != "a" || !strings.HasPrefix(d.ID, domain.GeneratedPrefix)) {
				t.Errorf("a duplicate was recorded as %+v", d)
			}
		}
	})
}

func TestACallIDThatWasRefusedMayBeUsedAgain(t *testing.T) {
	r := newRig(t, newMemLog(t)).start("notes")
	defer r.stop()
	r.wantReply(r.submit("local", `{"tool":"none","call_id":"a"}`), domain.StatusRefused, domain.CodeUnknownTool, domain.RanNo)
	r.wantReply(r.submit("local", `{"tool":"notes","call_id":"a","x":1}`), domain.StatusRefused, domain.CodeBadRequest, domain.RanNo)
	r.wantReply(r.submit("local", `{"tool":"notes","call_id":"a"}`), domain.StatusComplete, "", domain.RanYes)
}

func TestAnAnswerThatChangesNothingLeavesNoBytesInTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes")
		r.setAnswer(r.silent)
		timedOut, twice := r.submit("local", `{"tool":"notes","call_id":"a"}`), r.submit("local", `{"tool":"notes","call_id":"b"}`)
		synctest.Wait()
		sends := r.peers.sends()
		log.hold()
		r.submit("local", `{"tool":"none"}`)
		synctest.Wait()
		r.loop.Report(domain.DeadlinePassed{At: sends[0].At, RequestID: sends[0].RequestID}, nil, nil)
		r.answer(sends[0], "complete", []byte(`"late"`))
		r.answer(sends[1], "complete", []byte(`"first"`))
		r.answer(sends[1], "complete", []byte(`"second"`))
		log.pass()
		if reply := r.wantReply(timedOut, domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe); reply.Result != nil {
			t.Errorf("a call that timed out has a result: %s", reply.Encode())
		}
		if reply := r.wantReply(twice, domain.StatusComplete, "", domain.RanYes); string(reply.Result) != `"first"` {
			t.Errorf("the result is %s, of an answer that was dropped", reply.Result)
		}
		r.stop()
		if n := len(find[domain.AnswerDropped](readAll(t, log, 0))); n != 2 {
			t.Errorf("%d answers were dropped, want 2", n)
		}
	})
}

func TestIntakeIsBoundedAndWhatIsShedIsCountedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log, func(c *Config) { c.Queue = 3 }).start("notes")
		log.hold()
		r.submit("local", `{"tool":"notes"}`)
		synctest.Wait()
		var taken, shed []<-chan Reply
		for i := range 10 {
			if got := r.submit("local", fmt.Sprintf(`{"tool":"notes","call_id":"c%d"}`, i)); i < 3 {
				taken = append(taken, got)
			} else {
				shed = append(shed, got)
			}
		}
		for _, got := range shed {
			if len(got) != 1 {
				t.Fatal("a call that is shed was not answered at once")
			}
			r.wantReply(got, domain.StatusRefused, domain.CodeOverloaded, domain.RanNo)
		}
		<-time.After(1500 * time.Millisecond)
		r.submit("local", `{"tool":"notes"}`)
		log.pass()
		for _, got := range taken {
			r.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		}
		synctest.Wait()
		if got := find[domain.IntakeShed](readAll(t, log, 0)); !slices.Equal(got, []domain.IntakeShed{{Count: 7, Code: domain.CodeOverloaded}}) {
			t.Errorf("shed: %+v", got)
		}
		r.stop() // before the second is over
		if got := find[domain.IntakeShed](readAll(t, log, 0)); len(got) != 2 || got[1].Count != 1 {
			t.Errorf("the stop lost a count: %+v", got)
		}
	})
}

func TestReportNeverBlocksAndNeverRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20_000
		log := newMemLog(t)
		r := newRig(t, log, func(c *Config) { c.Queue = 1 }).start("notes")
		log.hold()
		for range many { // on one goroutine: it would never come to pass if one blocked
			r.loop.Report(domain.NoiseCounted{At: domain.At{Peer: "notes", Incarnation: 1}, Kinds: []domain.NoiseCount{}}, nil, nil)
		}
		log.pass()
		r.stop()
		if n := len(find[domain.NoiseCounted](readAll(t, log, 0))); n != many {
			t.Errorf("%d observations were recorded, want %d", n, many)
		}
		r.loop.Report(domain.NoiseCounted{}, nil, nil) // nobody listens any more
	})
}

func TestAStopAnswersEveryCallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes")
		r.setAnswer(r.silent)
		under := r.submit("local", `{"tool":"notes","call_id":"a"}`)
		synctest.Wait()
		log.hold()
		r.submit("local", `{"tool":"none"}`)
		synctest.Wait()
		before := r.submit("local", `{"tool":"notes","call_id":"b"}`)
		r.loop.Report(domain.ServiceStopped{Reason: "test"}, nil, nil)
		after := r.submit("local", `{"tool":"notes","call_id":"c"}`)
		log.pass()
		r.wantReply(under, domain.StatusCancelled, domain.CodeShuttingDown, domain.RanMaybe)
		r.wantReply(before, domain.StatusCancelled, domain.CodeShuttingDown, domain.RanMaybe)
		late := r.wantReply(after, domain.StatusRefused, domain.CodeShuttingDown, domain.RanNo)
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		list := readAll(t, log, 0)
		end := slices.Index(kinds(list), "service.stopped")
		if got := kinds(list[end+1:]); !slices.Equal(got, []string{"call.settled", "call.settled"}) || len(late.Seqs) != 0 {
			t.Errorf("after the stop came %v, and the late call has events %v", got, late.Seqs)
		}
		wantOnce(t, list, "local/a")
		wantOnce(t, list, "local/b")
		r.wantReply(r.submit("local", `{"tool":"notes"}`), domain.StatusRefused, domain.CodeShuttingDown, domain.RanNo)
	})
}

func TestASlowReplyHoldsUpOnlyReplies(t *testing.T) {
	r := newRig(t, newMemLog(t)).start("notes")
	blocked := make(chan struct{})
	r.loop.Submit("slow", []byte(`{"tool":"notes"}`), func(Reply) { <-blocked })
	for range 5 {
		r.submit("local", `{"tool":"notes"}`)
	}
	waitFor(t, "six calls end", func() bool { return len(find[domain.CallSettled](readAll(t, r.log, 0))) == 6 })
	close(blocked)
	r.stop()
}

// waitFor polls until done, and fails the test if that takes too long.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

func TestSecretsAreRedactedBeforeACallIsRecorded(t *testing.T) {
	log := newMemLog(t)
	redact := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "hunter2hunter2", "[redacted]")) }
	r := newRig(t, log, func(c *Config) { c.Redact = redact }).start("notes")
	got := r.reply(r.submit("local", `{"tool":"hunter2hunter2","call_id":"a"}`))
	also := r.reply(r.submit("local", `{"tool":"notes","hunter2hunter2":1}`))
	r.wantReply(r.submit("local", `{"tool":"notes","call_id":"hunter2hunter2"}`), domain.StatusRefused, domain.CodeBadRequest, domain.RanNo)
	r.stop()
	for _, rec := range log.records {
		if strings.Contains(string(rec.Bytes), "hunter2") {
			t.Errorf("a secret is in event %s", rec.Bytes)
		}
	}
	if got.Code != domain.CodeUnknownTool || also.Code != domain.CodeBadRequest {
		t.Errorf("replies: %s and %s", got.Encode(), also.Encode())
	}
}

// What a host asks after comes back as it was asked, whatever it is.
func TestAReplyIsJSONWhateverItsIDIs(t *testing.T) {
	for _, id := range []string{`a"b`, `a\`, "a\nb", "\xff", ""} {
		var got struct {
			CallID *string `json:"call_id"`
		}
		b := Reply{CallID: id, Status: domain.StatusRefused}.Encode()
		if err := json.Unmarshal(b, &got); err != nil || (got.CallID == nil) != (id == "") || id != "\xff" && id != "" && *got.CallID != id {
			t.Errorf("%q: %s, %v", id, b, err)
		}
	}
}
