package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
	"waybill/store/payloads"
)

func openPayloads(t testing.TB, path string) *payloads.DB {
	t.Helper()
	p, err := payloads.Open(path, testLog)
	noErr(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func keep(p *domain.PeerConfig) { p.Keep = true }

func keepForms(p *domain.PeerConfig) {
	forms(p)
	p.Keep = true
}

// keptSim is a sim whose peer's payloads are kept.
type keptSim struct {
	*sim
	dir      string
	payloads *payloads.DB
}

func startKept(t *testing.T, dir string, change func(*domain.PeerConfig), engine ...func(*EngineConfig)) *keptSim {
	t.Helper()
	p := openPayloads(t, filepath.Join(dir, "payloads.db"))
	use := func(c *EngineConfig) { c.Payloads = p }
	s := startSim(t, openDisk(t, filepath.Join(dir, "log.db")), change, append([]func(*EngineConfig){use}, engine...)...)
	return &keptSim{s, dir, p}
}

// inKept is inSim with payloads that are kept.
func inKept(t *testing.T, change func(*domain.PeerConfig), test func(s *keptSim), engine ...func(*EngineConfig)) {
	t.Helper()
	dir := filepath.Dir(newLogFile(t))
	synctest.Test(t, func(t *testing.T) {
		s := startKept(t, dir, change, engine...)
		test(s)
		s.end()
		audit(t, s.disk)
	})
}

func id(s string) domain.CallID { return domain.CallID{Host: "local", ID: s} }

// outcome says what became of a call of the host local.
func (s *keptSim) outcome(call string) Reply {
	s.t.Helper()
	synctest.Wait()
	r, ok, err := OutcomeKept(s.t.Context(), s.disk.Reader, s.payloads, id(call))
	if err != nil || !ok {
		s.t.Errorf("outcome of %s: %t, %v", call, ok, err)
	}
	return r
}

// wantResult checks what is kept of the result of a call.
func (s *keptSim) wantResult(call, want string) {
	s.t.Helper()
	if r := s.outcome(call); string(r.Result) != want || r.Erased != nil {
		s.t.Errorf("outcome of %s: %s, want the result %s", call, r.Encode(), want)
	}
}

// wantErased checks that nothing is kept of a call, and who erased it.
func (s *keptSim) wantErased(call, by string) {
	s.t.Helper()
	r := s.outcome(call)
	if r.Result != nil || r.Error != nil || r.Erased == nil || r.Erased.By != by || r.Erased.Seq == 0 || r.Erased.At == "" {
		s.t.Errorf("outcome of %s: %s, want erased by %q", call, r.Encode(), by)
	}
}

// erase orders it and waits until it is done.
func (s *keptSim) erase(d domain.OperatorCommanded) CommandReply {
	s.t.Helper()
	d.By, d.Verb = "ann", domain.VerbErase
	r, err := s.loop.Command(s.t.Context(), d, nil)
	if err != nil || !r.Done || len(r.Seqs) != 2 || r.Erased == nil {
		s.t.Fatalf("erase: %s, %v", r.Encode(), err)
	}
	return r
}

// complete is a call that is answered.
func (s *keptSim) complete(host, call string, n int) {
	s.t.Helper()
	s.finishNext(s.submit(host, `{"tool":"notes","call_id":"`+call+`","arguments":{"of":"`+call+`"}}`), n)
}

// files is all that the data directory holds.
func (s *keptSim) files() (all []byte) {
	s.t.Helper()
	synctest.Wait()
	entries, err := os.ReadDir(s.dir)
	noErr(s.t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(s.dir, e.Name()))
		noErr(s.t, err)
		all = append(append(all, b...), '\n')
	}
	return all
}

func TestTheBytesOfACallAreKeptAndNamedUnderAKeyOfItsOwn(t *testing.T) {
	inKept(t, keep, func(s *keptSim) {
		for i, call := range []string{"a", "b"} {
			got := s.submit("local", `{"tool":"notes","call_id":"`+call+`","arguments":{"n":1}}`)
			s.finish(s.sent(i), `{"done":true}`)
			s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
			s.wantResult(call, `{"done":true}`)
		}
		received, answered := find[domain.CallReceived](s.events()), find[domain.CallAnswered](s.events())
		names := map[domain.Payload]bool{simDigest([]byte(`{"n":1}`)): true, simDigest([]byte(`{"done":true}`)): true}
		for _, p := range []domain.Payload{received[0].Arguments, received[1].Arguments, answered[0].Result, answered[1].Result} {
			if names[p] {
				s.t.Errorf("%+v names other bytes too, or is no name under a key of the call", p)
			}
			names[p] = true
		}
		if !received[0].Kept || received[0].Arguments.Size != 7 || answered[0].Result.Size != 13 {
			s.t.Errorf("%+v, %+v", received[0], answered[0])
		}
		for _, e := range s.events() {
			if d, ok := e.Data.(domain.CallReceived); ok && d.ID == "a" {
				x, ok, err := s.payloads.Read(s.t.Context(), e.Seq, payloads.Arguments)
				if string(x.Bytes) != `{"n":1}` || !ok || err != nil || x.Key.Name(x.Bytes) != d.Arguments.HMAC {
					s.t.Errorf("kept: %+v, %v", x, err)
				}
			}
		}
	})
}

func TestNothingIsKeptOfAPeerThatDoesNotSaySo(t *testing.T) {
	inKept(t, forms, func(s *keptSim) {
		s.asked()
		s.finishNext(s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`), 1)
		received := find[domain.CallReceived](s.events())[0]
		if received.Kept || received.Arguments != simDigest([]byte(`{"n": 1}`)) {
			s.t.Errorf("%+v", received)
		}
		if n, err := s.payloads.Count(s.t.Context(), payloads.Selection{Host: "local"}); n != 0 || err != nil {
			s.t.Errorf("%d are kept, %v", n, err)
		}
		s.wantResult("a", "")
		r, err := s.loop.Command(s.t.Context(), domain.OperatorCommanded{By: "ann", Verb: domain.VerbErase, Host: "local"}, nil)
		if err != nil || r.Done || r.Code != domain.CodePayloadNotKept || len(r.Seqs) != 0 {
			s.t.Errorf("%s, %v", r.Encode(), err)
		}
	})
}

func TestWhereNothingWasEverKeptThereIsNothingToErase(t *testing.T) {
	inSim(t, nil, func(s *sim) {
		r, err := s.loop.Command(s.t.Context(), domain.OperatorCommanded{By: "ann", Verb: domain.VerbErase, Host: "local"}, nil)
		if err != nil || r.Done || r.Code != domain.CodePayloadNotKept || len(r.Seqs) != 0 {
			s.t.Errorf("%s, %v", r.Encode(), err)
		}
	})
}

func TestARoundOfInputIsKeptWhole(t *testing.T) {
	inKept(t, keepForms, func(s *keptSim) {
		s.asked()
		s.wantResult("a", asksFor)
		got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`)
		s.finish(s.sent(1), `{"done":true}`)
		s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		s.wantResult("a", `{"done":true}`)
		for _, e := range s.events() {
			d, ok := e.Data.(domain.CallReceived)
			if !ok || d.Input == nil {
				continue
			}
			for role, want := range map[string]string{payloads.InputResponses: `{"q":{"action":"accept"}}`, payloads.RequestState: `"sA/1"`} {
				if x, _, err := s.payloads.Read(s.t.Context(), e.Seq, role); string(x.Bytes) != want || err != nil {
					s.t.Errorf("%s is kept as %s, %v", role, x.Bytes, err)
				}
			}
		}
	})
}

// The key of a call outlives the service: what the host sends after a restart is
// compared with what came before it.
func TestInputMayComeAfterARestartToACallThatIsKept(t *testing.T) {
	dir := filepath.Dir(newLogFile(t))
	synctest.Test(t, func(t *testing.T) {
		s := startKept(t, dir, keepForms)
		s.asked()
		s.quit()
		noErr(t, s.payloads.Close())
		s = startKept(t, dir, keepForms)
		for request, want := range map[string]domain.Code{
			`{"tool":"notes","call_id":"a","arguments":{"n":1},` + theInput + `}`:                                    domain.CodeInputMismatch,
			`{"tool":"notes","call_id":"a","arguments":{"n": 1},"inputResponses":{},"requestState":"sB/1"}`:          domain.CodeInputMismatch,
			`{"tool":"notes","call_id":"other","arguments":{"n": 1},"inputResponses":{},"requestState":"s\u0041/1"}`: domain.CodeNotWaiting,
		} {
			s.wantReply(s.submit("local", request), domain.StatusRefused, want, domain.RanNo)
		}
		got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`)
		s.finish(s.sent(0), `{"done":true}`)
		s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
		s.wantResult("a", `{"done":true}`)
		s.end()
		audit(t, s.disk)
	})
}

// A submission that is refused for another reason than its bytes is told that one.
func TestInputToAKeptCallIsRefusedForTheRightReason(t *testing.T) {
	inKept(t, keepForms, func(s *keptSim) {
		s.asked()
		s.set(s.peers.broken, "notes", true)
		s.exit("notes")
		got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"n": 1},`+theInput+`}`)
		s.wantReply(got, domain.StatusRefused, domain.CodePeerUnavailable, domain.RanNo)
	})
}

func TestAnOperatorSendsACallAgainWithWhatIsKept(t *testing.T) {
	inKept(t, keep, func(s *keptSim) {
		s.timedOut()
		r, err := s.loop.Command(s.t.Context(), resend("local/a"), []byte(`{"n":2}`))
		if err != nil || r.Code != domain.CodePayloadNotKept {
			s.t.Errorf("with others: %s, %v", r.Encode(), err)
		}
		for n, arguments := range [][]byte{nil, []byte(`{"n":1}`)} {
			done := make(chan CommandReply, 1)
			go func() {
				r, _ := s.loop.Command(context.Background(), resend("local/a"), arguments)
				done <- r
			}()
			x := s.sent(n + 1)
			if string(x.body.Arguments) != `{"n":1}` {
				s.t.Errorf("sent: %s", x.body.Arguments)
			}
			if n == 0 {
				s.pass(time.Hour) // it times out again
			} else {
				s.finish(x, `{"done":true}`)
			}
			<-done
		}
		s.wantResult("a", `{"done":true}`)
	})
}

func TestACallWithoutArgumentsIsSentAgain(t *testing.T) {
	inKept(t, keep, func(s *keptSim) {
		got := s.submit("local", `{"tool":"notes","call_id":"a","timeout_ms":1000}`)
		s.wantReply(got, domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe)
		go func() { _, _ = s.loop.Command(context.Background(), resend("local/a"), nil) }()
		if x := s.sent(1); string(x.body.Arguments) != `{}` {
			s.t.Errorf("sent: %s", x.body.Arguments)
		}
	})
}

// A late answer belongs to nobody: it is not kept, and its name tells nothing.
func TestALateAnswerIsNotKept(t *testing.T) {
	inKept(t, keep, func(s *keptSim) {
		s.timedOut()
		s.finish(s.sent(0), `{"late":true}`)
		_, d := only[domain.CallAnswered](s.sim)
		if d.Result.Size != 13 || d.Result.HMAC == simDigest([]byte(`{"late":true}`)).HMAC {
			s.t.Errorf("%+v", d)
		}
		s.wantResult("a", "")
	})
}

const secret = "hunter2-and-more"

func redacting(c *EngineConfig) {
	c.Redact = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(secret), []byte("[redacted]")) }
}

// The host and the peer get what the other one wrote; what is kept is without
// secrets, and arguments that one was taken out of are not sent again.
func TestWhatIsKeptHoldsNoSecret(t *testing.T) {
	inKept(t, keep, func(s *keptSim) {
		got := s.submit("local", `{"tool":"notes","call_id":"a","arguments":{"s":"`+secret+`"},"timeout_ms":1000}`)
		if x := s.sent(0); !strings.Contains(string(x.body.Arguments), secret) {
			s.t.Errorf("sent: %s", x.body.Arguments)
		}
		s.wantReply(got, domain.StatusTimedOut, domain.CodeTimedOut, domain.RanMaybe)
		r, err := s.loop.Command(s.t.Context(), resend("local/a"), nil)
		if err != nil || r.Code != domain.CodePayloadNotKept || !strings.Contains(r.Reason, "not kept") {
			s.t.Errorf("%s, %v", r.Encode(), err)
		}
		got = s.submit("local", `{"tool":"notes","call_id":"b"}`)
		s.finish(s.sent(1), `{"s":"`+secret+`"}`)
		if r := s.reply(got); !strings.Contains(string(r.Result), secret) {
			s.t.Errorf("reply: %s", r.Encode())
		}
		s.wantResult("b", `{"s":"[redacted]"}`)
		for _, e := range s.events() {
			for _, role := range []string{payloads.Arguments, payloads.Result} {
				x, ok, err := s.payloads.Read(s.t.Context(), e.Seq, role)
				if err != nil || bytes.Contains(x.Bytes, []byte(secret)) || ok && x.Redacted != bytes.Contains(x.Bytes, []byte("[redacted]")) {
					s.t.Errorf("kept of event %d: %s, %v", e.Seq, x.Bytes, err)
				}
			}
		}
	}, redacting)
}

// faulty fails to save as planned: before anything is written, or after all is.
type faulty struct {
	KeptPayloads
	before, after int // times
	eraseFails    bool
}

var errFault = errors.New("the disk said no")

func (f *faulty) Save(ctx context.Context, b payloads.Batch) error {
	if f.before > 0 {
		f.before--
		return errFault
	}
	err := f.KeptPayloads.Save(ctx, b)
	if f.after > 0 {
		f.after--
		return errFault
	}
	return err
}

func (f *faulty) Erase(ctx context.Context, s payloads.Selection) error {
	if f.eraseFails {
		return errFault
	}
	return f.KeptPayloads.Erase(ctx, s)
}

// Failed and absent, failed but present: both are tried again, and the batch goes
// on when the bytes are durable. fakePeers checks that nothing left before.
func TestABatchWhosePayloadsWereNotKeptIsTriedAgain(t *testing.T) {
	for name, f := range map[string]*faulty{"absent": {before: 2}, "present": {after: 2}} {
		t.Run(name, func(t *testing.T) {
			inKept(t, keep, func(s *keptSim) {
				got := s.submit("local", `{"tool":"notes","call_id":"a"}`)
				s.pass(time.Second)
				s.finish(s.sent(0), `{"n":1}`)
				s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
				if f.before+f.after != 0 {
					s.t.Error("nothing failed")
				}
				s.wantResult("a", `{"n":1}`)
				if r := s.outcome("a"); len(r.Seqs) != 4 {
					s.t.Errorf("%s", r.Encode())
				}
			}, func(c *EngineConfig) { f.KeptPayloads, c.Payloads = c.Payloads, f })
		})
	}
}

// A disk that stays full is like a log that cannot be written: nothing is sent, the
// call is refused as it is there, and the service ends.
func TestNothingIsReleasedWhilePayloadsCannotBeKept(t *testing.T) {
	dir := filepath.Dir(newLogFile(t))
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		s := startKept(t, dir, keep, func(c *EngineConfig) { f.KeptPayloads, c.Payloads = c.Payloads, f })
		events := len(s.events())
		f.before = 1 << 30
		got := s.submit("local", `{"tool":"notes","call_id":"a"}`)
		s.pass(time.Second)
		s.wantReply(s.submit("local", `{"tool":"notes","call_id":"b"}`), domain.StatusRefused, domain.CodeLogUnavailable, domain.RanNo)
		s.wantReply(got, domain.StatusRefused, domain.CodeLogUnavailable, domain.RanNo)
		<-s.engine.Done()
		if err := s.engine.Err(); !errors.Is(err, errFault) {
			t.Errorf("the loop ended with %v", err)
		}
		if n := len(s.events()); n != events || len(s.peers.calls) != 0 {
			t.Errorf("%d events more, %d calls sent", n-events, len(s.peers.calls))
		}
		_ = s.engine.Stop("test")
		noErr(t, s.engine.Close())
	})
}

// Bytes that were saved, and whose events then were not appended, are gone after
// the next start; those of events that arrived stay.
func TestOrphansAreErasedAtTheNextStart(t *testing.T) {
	log := newMemLog(t)
	path := filepath.Join(t.TempDir(), "payloads.db")
	p := openPayloads(t, path)
	r := newRig(t, log, func(c *Config) { c.Payloads, c.Keep, c.Patience = p, true, 20*time.Millisecond })
	c := testConfig("notes")
	c.Peers[0].Keep = true
	r.configure(c)
	r.run()
	r.settle()
	r.wantReply(r.submit("local", `{"tool":"notes","call_id":"good"}`), domain.StatusComplete, "", domain.RanYes)
	log.always(absent)
	r.wantReply(r.submit("local", `{"tool":"notes","call_id":"bad"}`), domain.StatusRefused, domain.CodeLogUnavailable, domain.RanNo)
	if err := r.wait(); err == nil {
		t.Fatal("the loop goes on")
	}
	count := func() int64 {
		n, err := p.Count(t.Context(), payloads.Selection{Host: "local"})
		noErr(t, err)
		return n
	}
	if count() != 2 {
		t.Fatal("the crash has left no orphan")
	}
	head := int64(len(readAll(t, log, 0)))
	for range 2 {
		noErr(t, Recover(t.Context(), log, testLog, head, p))
		if count() != 1 {
			t.Errorf("%d calls are kept", count())
		}
	}
	if n, err := p.Count(t.Context(), payloads.Selection{Call: "local/good"}); n != 1 || err != nil {
		t.Errorf("of the good call: %d, %v", n, err)
	}
}
