package harness

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
	"waybill/store/payloads"
)

func TestEachSelectorErasesItsCallsAndNoOthers(t *testing.T) {
	for name, c := range map[string]struct {
		d    domain.OperatorCommanded
		gone string
	}{
		"call":       {domain.OperatorCommanded{Call: "local/b"}, "b"},
		"host":       {domain.OperatorCommanded{Host: "local"}, "abc"},
		"older than": {domain.OperatorCommanded{OlderThan: 90 * 60_000}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			inKept(t, keep, func(s *keptSim) {
				s.complete("other", "x", 0)
				s.complete("local", "a", 1)
				s.pass(2 * time.Hour)
				s.complete("local", "b", 2)
				s.complete("local", "c", 3)
				r := s.erase(c.d)
				want := int64(len(c.gone))
				if name == "older than" {
					want = 2 // with that of the other host
				}
				if r.Erased.Calls != want || (r.Erased.Before != nil) != (name == "older than") {
					s.t.Errorf("%s", r.Encode())
				}
				for _, call := range []string{"a", "b", "c"} {
					if strings.Contains(c.gone, call) {
						s.wantErased(call, "ann")
					} else {
						s.wantResult(call, `{"n":1}`)
					}
				}
			})
		})
	}
}

func TestAnOrderThatNamesNoCallsErasesNothing(t *testing.T) {
	inKept(t, keep, func(s *keptSim) {
		s.complete("local", "a", 0)
		for _, d := range []domain.OperatorCommanded{{}, {Call: "local/a", Host: "local"}, {OlderThan: -1}} {
			d.By, d.Verb = "ann", domain.VerbErase
			r, err := s.loop.Command(s.t.Context(), d, nil)
			if err != nil || r.Done || r.Code != domain.CodeBadRequest || r.Erased != nil {
				s.t.Errorf("%s, %v", r.Encode(), err)
			}
		}
		s.wantResult("a", `{"n":1}`)
	})
}

// A call whose payloads are erased goes on as far as it can without them, and is
// refused where it cannot.
func TestCallsThatMayGoOnAreErasedToo(t *testing.T) {
	inKept(t, keepForms, func(s *keptSim) {
		s.asked()
		lost := s.submit("local", `{"tool":"notes","call_id":"lost","arguments":{"n":1},"timeout_ms":1000}`)
		s.wantReply(lost, domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe)
		under := s.submit("local", `{"tool":"notes","call_id":"under"}`)
		x := s.sent(2)
		s.erase(domain.OperatorCommanded{Host: "local"})
		s.finish(x, `{"n":1}`)
		if r := s.reply(under); string(r.Result) != `{"n":1}` || r.Status != domain.StatusComplete {
			s.t.Errorf("%s", r.Encode())
		}
		for _, call := range []string{"a", "lost", "under"} {
			s.wantErased(call, "ann")
		}
		refused := s.wantReply(s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`),
			domain.StatusRefused, domain.CodeInputMismatch, domain.RanNo)
		if !strings.Contains(refused.Reason, "erased") {
			s.t.Errorf("%s", refused.Encode())
		}
		for _, arguments := range [][]byte{nil, []byte(`{"n":1}`)} {
			r, err := s.loop.Command(s.t.Context(), resend("local/lost"), arguments)
			if err != nil || r.Done || r.Code != domain.CodePayloadNotKept || !strings.Contains(r.Reason, "erased") {
				s.t.Errorf("%s, %v", r.Encode(), err)
			}
		}
	})
}

func TestWhatIsKeptForTooLongIsErasedByItself(t *testing.T) {
	retention := func(c *EngineConfig) { c.Config.Retention = (24 * time.Hour).Milliseconds() }
	inKept(t, keep, func(s *keptSim) {
		s.complete("local", "a", 0)
		s.pass(20 * time.Hour)
		s.complete("local", "b", 1)
		s.wantResult("a", `{"n":1}`)
		s.pass(5 * time.Hour)
		s.wantErased("a", "")
		s.wantResult("b", `{"n":1}`)
		passed, p := only[domain.RetentionPassed](s.sim)
		done, d := only[domain.PayloadsErased](s.sim)
		if p.Calls != 1 || d.Calls != 1 || d.By != "" || done.Cause != passed.Seq || d.Before != done.Time/1_000_000-24*3_600_000 {
			s.t.Errorf("%+v, %+v", p, d)
		}
		s.pass(24 * time.Hour)
		s.wantErased("b", "")
		if n := len(find[domain.PayloadsErased](s.events())); n != 2 {
			s.t.Errorf("%d sweeps are on record", n)
		}
	}, retention)
}

func TestWithoutARetentionAllIsKept(t *testing.T) {
	inKept(t, keep, func(s *keptSim) {
		s.complete("local", "a", 0)
		s.pass(1000 * time.Hour)
		s.wantResult("a", `{"n":1}`)
	})
}

// What the log says was erased is erased by the next start, if the one that said so
// could not.
func TestAnErasureThatFailedIsMadeUpForByTheNextStart(t *testing.T) {
	dir := filepath.Dir(newLogFile(t))
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{eraseFails: true}
		s := startKept(t, dir, keep, func(c *EngineConfig) { f.KeptPayloads, c.Payloads = c.Payloads, f })
		s.complete("local", "a", 0)
		r, err := s.loop.Command(t.Context(), domain.OperatorCommanded{By: "ann", Verb: domain.VerbErase, Host: "local"}, nil)
		if !errors.Is(err, errFault) || !r.Done || len(r.Seqs) != 2 {
			t.Errorf("%s, %v", r.Encode(), err)
		}
		s.wantResult("a", `{"n":1}`)
		s.crash()
		noErr(t, s.payloads.Close())
		s = startKept(t, dir, keep)
		s.wantErased("a", "ann")
		s.complete("local", "b", 0)
		s.wantResult("b", `{"n":1}`)
		s.end()
		audit(t, s.disk)
	})
}

// crash ends the loop as a kill does, as far as the log and the payloads are
// concerned: nothing more is recorded or noted.
func (s *keptSim) crash() {
	s.t.Helper()
	s.loop.inbox.put(input{ask: func(*domain.State) { s.loop.halt = &HaltError{Reason: "killed"} }})
	<-s.engine.Done()
	_ = s.engine.Stop("test")
	noErr(s.t, s.engine.Close())
}

// An erased canary is in no file of the data directory, while the service runs.
func TestErasedBytesAreInNoFileOfTheDataDirectory(t *testing.T) {
	inKept(t, keep, func(s *keptSim) {
		const canary = "canary-4711-canary"
		key := map[string]payloads.Key{}
		for i, size := range []int{1, 3000, 70_000} {
			call := string(rune('a' + i))
			got := s.submit("local", `{"tool":"notes","call_id":"`+call+`","arguments":{"s":"`+strings.Repeat(canary, size)+`"}}`)
			s.finish(s.sent(i), `{"s":"`+strings.Repeat(canary, size)+`"}`)
			s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
			story := s.outcome(call).kept.story
			k, ok, err := s.payloads.Key(s.t.Context(), story)
			if !ok || err != nil || !bytes.Contains(s.files(), k[:]) {
				s.t.Fatalf("the key of call %s: %t, %v", call, ok, err)
			}
			key[call] = k
		}
		s.pass(time.Second)
		s.erase(domain.OperatorCommanded{OlderThan: 1})
		all := s.files()
		if bytes.Contains(all, []byte(canary)) {
			s.t.Error("the canary is there")
		}
		for call, k := range key {
			s.wantErased(call, "ann")
			if bytes.Contains(all, k[:]) {
				s.t.Errorf("the key of call %s is there", call)
			}
		}
	})
}

// Without a service the order is recorded and carried out all the same, after a
// clean stop and after a crash, and calls that a crash left under way are erased too.
func TestErasingWithoutAService(t *testing.T) {
	for name, end := range map[string]func(*keptSim){"stopped": func(s *keptSim) { s.quit() }, "crashed": func(s *keptSim) { s.crash() }} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Dir(newLogFile(t))
			synctest.Test(t, func(t *testing.T) {
				s := startKept(t, dir, keep)
				s.complete("local", "a", 0)
				s.submit("local", `{"tool":"notes","call_id":"under","arguments":{"n":1}}`)
				s.sent(1)
				end(s)
				clean := func(b []byte) []byte { return b }
				d := domain.OperatorCommanded{By: "ann", Verb: domain.VerbErase, Host: "local"}
				r, err := EraseAlone(s.t.Context(), s.disk.Log, s.payloads, SystemClock(), clean, d)
				if err != nil || !r.Done || len(r.Seqs) != 2 || r.Erased == nil || r.Erased.Calls != 2 {
					s.t.Fatalf("%s, %v", r.Encode(), err)
				}
				s.wantErased("a", "ann")
				audit(t, s.disk)
				d.By = "Ann"
				if r, err := EraseAlone(s.t.Context(), s.disk.Log, s.payloads, SystemClock(), clean, d); err != nil || r.Code != domain.CodeBadRequest {
					s.t.Errorf("%s, %v", r.Encode(), err)
				}
				noErr(s.t, s.payloads.Close())
				s = startKept(t, dir, keep)
				s.wantErased("under", "ann")
				r, err = s.loop.Command(s.t.Context(), resend("local/under"), []byte(`{"n":1}`))
				want := domain.CodePayloadNotKept
				if name == "stopped" {
					want = domain.CodeNotResendable // it was cancelled
				}
				if err != nil || r.Code != want {
					s.t.Errorf("%s, %v", r.Encode(), err)
				}
				s.complete("local", "b", 0)
				s.wantResult("b", `{"n":1}`)
				s.end()
				audit(t, s.disk)
			})
		})
	}
}
