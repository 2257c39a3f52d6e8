package harness

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
	"waybill/store"
)

func TestNothingIsReleasedBeforeItsAppendCommitted(t *testing.T) {
	bothLogs(t, func(t *testing.T, log anyLog) {
		r := newRig(t, log).start("books", "notes", "sums")
		var replies []<-chan Reply
		for i := range 60 {
			replies = append(replies, r.submit("local", fmt.Sprintf(`{"tool":%q,"call_id":"c%d"}`, []string{"books", "notes", "sums"}[i%3], i)))
		}
		for _, got := range replies {
			reply := r.wantReply(got, domain.StatusComplete, "", domain.RanYes)
			settled := readAll(t, log, reply.Seqs[len(reply.Seqs)-1]-1)[0]
			if d, ok := settled.Data.(domain.CallSettled); !ok || d.ID != reply.CallID {
				t.Errorf("reply %s came before its call was settled: event %+v", reply.Encode(), settled)
			}
		}
		r.stop()
		if n := len(r.peers.sends()); n != 60 {
			t.Errorf("%d calls were sent, want 60", n)
		}
		if len(r.peers.due) != 0 {
			t.Errorf("effects were decided and not released: %+v", r.peers.due)
		}
	})
}

func TestInputsGatherWhileABatchIsOnItsWayAndGoInOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes")
		r.setAnswer(r.silent)
		synctest.Wait()
		log.hold()
		before, done := len(readAll(t, log, 0)), r.peers.effects()
		first := r.submit("local", `{"tool":"notes","call_id":"first"}`)
		synctest.Wait()
		for i := range 20 {
			r.submit("local", fmt.Sprintf(`{"tool":"notes","call_id":"c%d"}`, i))
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if n := r.peers.effects(); n != done {
			t.Errorf("%d effects left before their commit", n-done)
		}
		log.pass()
		synctest.Wait()
		_, batches := log.appends()
		if got := batches[len(batches)-2:]; !slices.Equal(got, []int{2, 40}) {
			t.Errorf("the last two transactions have %v events, want one call and then the twenty that gathered", got)
		}
		if n := len(readAll(t, log, 0)) - before; n != 42 {
			t.Errorf("%d events were added, want 42", n)
		}
		r.stop()
		r.wantReply(first, domain.StatusCancelled, domain.CodeShuttingDown, domain.RanMaybe)
	})
}

func TestATransactionHoldsAtMostABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log, func(c *Config) { c.Batch = 4 }).start("notes")
		log.hold()
		for i := range 9 {
			r.submit("local", fmt.Sprintf(`{"tool":"none","call_id":"c%d"}`, i))
		}
		synctest.Wait()
		log.pass()
		synctest.Wait()
		_, batches := log.appends()
		if m := slices.Max(batches); m > 8 {
			t.Errorf("a transaction has %d events, of at most 4 calls that were refused", m)
		}
		r.stop()
	})
}

// faults are those after which the same batch gets through.
var faults = []struct {
	name    string
	plan    []outcome
	rereads []error
	tries   int // appends in all
}{
	{"absent", []outcome{absent}, nil, 2},
	{"absent many times", []outcome{absent, absent, absent, absent, absent}, nil, 6},
	{"present", []outcome{present}, nil, 1},
	{"absent, then present", []outcome{absent, present}, nil, 2},
}

func TestAfterAFailedAppendTheSameBytesGetThroughOnce(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := newMemLog(t)
				r := newRig(t, log).start("notes")
				synctest.Wait()
				before, _ := log.appends()
				r.setAnswer(r.silent)
				log.expect(f.plan...)
				got := r.submit("local", `{"tool":"notes","call_id":"a"}`)
				<-time.After(5 * time.Second)
				synctest.Wait()
				if tries, _ := log.appends(); tries-before != f.tries {
					t.Errorf("%d appends, want %d", tries-before, f.tries)
				}
				if n := len(r.peers.sends()); n != 1 {
					t.Fatalf("the call was sent %d times", n)
				}
				r.answer(r.peers.sends()[0], "complete", []byte(`{}`))
				r.wantReply(got, domain.StatusComplete, "", domain.RanYes)
				again := r.submit("local", `{"tool":"notes","call_id":"b"}`)
				synctest.Wait()
				if n := len(r.peers.sends()); n != 2 {
					t.Errorf("after the fault, %d calls were sent, want 2", n)
				}
				r.stop()
				r.reply(again)
				wantOnce(t, readAll(t, log, 0), "local/a")
			})
		})
	}
}

// wantOnce checks that a call was received, routed and settled once.
func wantOnce(t *testing.T, list []domain.Event, key string) {
	t.Helper()
	var got []string
	for _, e := range list {
		if e.Call() == key && e.Data.Kind() != "call.answered" {
			got = append(got, e.Data.Kind())
		}
	}
	if want := []string{"call.received", "call.routed", "call.settled"}; !slices.Equal(got, want) {
		t.Errorf("the story of %s is %v", key, got)
	}
}

func TestIntakeAnswersLogUnavailableWhileAnAppendFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes")
		synctest.Wait()
		log.expect(absent, absent, absent, absent, absent)
		first := r.submit("local", `{"tool":"notes","call_id":"a"}`)
		synctest.Wait() // the loop sleeps before it tries again
		for range 3 {
			reply := r.wantReply(r.submit("local", `{"tool":"notes","call_id":"b"}`), domain.StatusRefused, domain.CodeLogUnavailable, domain.RanNo)
			if reply.CallID != "b" {
				t.Errorf("reply %s does not name the call that the host named", reply.Encode())
			}
		}
		// What is no call is taken all the same.
		r.loop.Report(domain.NoiseCounted{At: domain.At{Peer: "notes", Incarnation: 1}, Kinds: []domain.NoiseCount{}}, nil, nil)
		r.wantReply(first, domain.StatusComplete, "", domain.RanYes)
		r.wantReply(r.submit("local", `{"tool":"notes","call_id":"b"}`), domain.StatusComplete, "", domain.RanYes)
		<-time.After(2 * time.Second)
		r.stop()
		list := readAll(t, log, 0)
		if got := find[domain.IntakeShed](list); !slices.Equal(got, []domain.IntakeShed{{Count: 3, Code: domain.CodeLogUnavailable}}) {
			t.Errorf("shed: %+v", got)
		}
		if n := len(find[domain.NoiseCounted](list)); n != 1 {
			t.Errorf("%d observations of noise, want 1", n)
		}
	})
}

func TestTheOutcomeIsFoundOutAlsoWhenTheHeadCannotBeReadAtFirst(t *testing.T) {
	for _, what := range []outcome{absent, present} {
		synctest.Test(t, func(t *testing.T) {
			log := newMemLog(t)
			r := newRig(t, log).start("notes")
			synctest.Wait()
			log.expect(what)
			log.rereads = []error{errReread, errReread}
			r.wantReply(r.submit("local", `{"tool":"notes","call_id":"a"}`), domain.StatusComplete, "", domain.RanYes)
			r.stop()
			wantOnce(t, readAll(t, log, 0), "local/a")
		})
	}
}

func TestNothingOfABatchLeavesWhenTheLogCannotTakeIt(t *testing.T) {
	for _, c := range []struct {
		name     string
		what     outcome
		rereads  bool // fail too
		patience time.Duration
		want     error
	}{
		{"somebody else wrote as many events", moved, false, 0, errLogMoved},
		{"somebody else wrote more events", movedOn, false, 0, errLogMoved},
		{"the log is shorter", shrunk, false, 0, errLogMoved},
		{"patience is spent", absent, false, 10 * time.Second, errDisk},
		{"the head cannot be read", absent, true, 10 * time.Second, errReread},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := newMemLog(t)
				r := newRig(t, log).start("notes")
				r.setAnswer(r.silent)
				under := r.submit("local", `{"tool":"notes","call_id":"under-way"}`)
				synctest.Wait()
				effects, begun := r.peers.effects(), time.Now()
				log.always(c.what)
				if c.rereads {
					log.rereads = slices.Repeat([]error{errReread}, 1000)
				}
				new := r.submit("local", `{"tool":"notes","call_id":"new"}`)
				if err := r.wait(); !errors.Is(err, c.want) {
					t.Errorf("Run: %v, want %v", err, c.want)
				}
				if n := r.peers.effects(); n != effects {
					t.Errorf("%d effects of a batch that was not recorded left", n-effects)
				}
				if took := time.Since(begun); took > c.patience || took < c.patience-2*time.Second {
					t.Errorf("it took %v, want up to %v", took, c.patience)
				}
				r.wantReply(under, domain.StatusLost, domain.CodeServiceRestarted, domain.RanMaybe)
				r.wantReply(new, domain.StatusRefused, domain.CodeLogUnavailable, domain.RanNo)
				r.wantReply(r.submit("local", `{"tool":"notes"}`), domain.StatusRefused, domain.CodeShuttingDown, domain.RanNo)
				if err := r.loop.Ask(context.Background(), func(*domain.State) {}); err == nil {
					t.Error("a loop that has ended was asked")
				}
			})
		})
	}
}

// faultyDisk is the real log whose appends fail before or after they happen.
type faultyDisk struct {
	diskLog
	plan  []outcome
	other *store.Log // who moves the head
	tries int
}

func (f *faultyDisk) Append(ctx context.Context, after int64, entries []store.Entry) (store.Head, error) {
	f.tries++
	what := kept
	if len(f.plan) > 0 {
		what, f.plan = f.plan[0], f.plan[1:]
	}
	switch what {
	case absent:
		return store.Head{}, errDisk
	case present:
		if h, err := f.diskLog.Append(ctx, after, entries); err != nil {
			return h, err
		}
		return store.Head{}, errDisk
	case moved:
		if _, err := f.other.Append(ctx, after, []store.Entry{{Type: "intake.shed", Bytes: []byte(`{}`)}}); err != nil {
			return store.Head{}, err
		}
	}
	return f.diskLog.Append(ctx, after, entries)
}

func TestTheRealLogTellsWhetherAFailedAppendHappened(t *testing.T) {
	for _, plan := range [][]outcome{{absent}, {present}, {absent, absent, present}} {
		log := &faultyDisk{diskLog: openDisk(t, newLogFile(t))}
		r := newRig(t, log).start("notes")
		if err := r.loop.Ask(context.Background(), func(*domain.State) { log.plan = plan }); err != nil {
			t.Fatal(err)
		}
		r.wantReply(r.submit("local", `{"tool":"notes","call_id":"a"}`), domain.StatusComplete, "", domain.RanYes)
		r.stop()
		wantOnce(t, readAll(t, log, 0), "local/a")
	}
}

func TestASecondWriterOfTheRealLogEndsTheLoop(t *testing.T) {
	path := newLogFile(t)
	log := &faultyDisk{diskLog: openDisk(t, path)}
	r := newRig(t, log).start("notes")
	other := openDisk(t, path)
	effects := r.peers.effects()
	if err := r.loop.Ask(context.Background(), func(*domain.State) { log.other, log.plan = other.Log, []outcome{moved} }); err != nil {
		t.Fatal(err)
	}
	got := r.submit("local", `{"tool":"notes","call_id":"a"}`)
	if err := r.wait(); !errors.Is(err, errLogMoved) {
		t.Errorf("Run: %v", err)
	}
	r.wantReply(got, domain.StatusRefused, domain.CodeLogUnavailable, domain.RanNo)
	if n := r.peers.effects(); n != effects {
		t.Errorf("%d effects left", n-effects)
	}
}

func TestAnEventThatCannotBeSealedEndsTheLoopWithEveryCallAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes")
		log.hold()
		first := r.submit("local", `{"tool":"notes","call_id":"a"}`)
		synctest.Wait()
		before := r.submit("local", `{"tool":"notes","call_id":"b"}`)
		r.loop.Report(domain.SpawnFailed{At: domain.At{Peer: "notes", Incarnation: 1}, Reason: strings.Repeat("x", 61<<10)}, nil, nil)
		after := r.submit("local", `{"tool":"notes","call_id":"c"}`)
		log.pass()
		if err := r.wait(); err == nil || !strings.Contains(err.Error(), "spawn.failed") {
			t.Errorf("Run: %v", err)
		}
		r.wantReply(first, domain.StatusLost, domain.CodeServiceRestarted, domain.RanMaybe)
		r.wantReply(before, domain.StatusRefused, domain.CodeLogUnavailable, domain.RanNo)
		r.wantReply(after, domain.StatusRefused, domain.CodeLogUnavailable, domain.RanNo)
	})
}

func TestAskSeesOnlyWhatIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes")
		log.hold()
		r.submit("local", `{"tool":"none","call_id":"a"}`)
		synctest.Wait()
		r.submit("local", `{"tool":"none","call_id":"b"}`)
		asked := make(chan int64, 1)
		go r.loop.Ask(context.Background(), func(s *domain.State) { asked <- s.Head })
		r.submit("local", `{"tool":"none","call_id":"c"}`)
		synctest.Wait()
		if len(asked) != 0 {
			t.Error("a question was answered from a batch that was not committed")
		}
		log.pass()
		synctest.Wait()
		if head, kept := <-asked, int64(len(readAll(t, log, 0))); head != kept {
			t.Errorf("asked at head %d, the log is at %d", head, kept)
		}
		r.stop()
	})
}

func TestAQuestionThatWasGivenUpNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log).start("notes")
		log.hold()
		r.submit("local", `{"tool":"none"}`)
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		ran, given := false, make(chan error, 1)
		go func() { given <- r.loop.Ask(ctx, func(*domain.State) { ran = true }) }()
		synctest.Wait()
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("Ask: %v", err)
		}
		log.pass()
		r.stop()
		if ran {
			t.Error("the question ran after its asker had gone")
		}
	})
}

func TestAStateThatEndedWithAStopStartsAgain(t *testing.T) {
	bothLogs(t, func(t *testing.T, log anyLog) {
		for range 3 {
			r := newRig(t, log).start("notes")
			r.wantReply(r.submit("local", `{"tool":"notes"}`), domain.StatusComplete, "", domain.RanYes)
			r.stop()
		}
		if n := len(find[domain.ServiceStopped](readAll(t, log, 0))); n != 3 {
			t.Errorf("%d stops were recorded, want 3", n)
		}
	})
}

func TestOnCommitIsToldEachHeadBeforeTheEffects(t *testing.T) {
	log := newMemLog(t)
	var heads []int64
	r := newRig(t, log, func(c *Config) { c.OnCommit = func(head int64) { heads = append(heads, head) } })
	inner := r.peers.answer
	r.peers.answer = func(e domain.Effect, arguments []byte) {
		if n := int64(len(readAll(t, log, 0))); len(heads) == 0 || heads[len(heads)-1] != n {
			t.Errorf("effect %+v at head %d; told %v", e, n, heads)
		}
		inner(e, arguments)
	}
	r.start("notes")
	r.stop()
	_, batches := log.appends()
	var want []int64
	for _, n := range batches {
		last := int64(0)
		if len(want) > 0 {
			last = want[len(want)-1]
		}
		want = append(want, last+int64(n))
	}
	if !reflect.DeepEqual(heads, want) {
		t.Errorf("told %v, want %v", heads, want)
	}
}

func TestCallsThatStillWaitWhenTheLoopEndsAreAnswered(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(log *memLog, r *rig)
		want error
	}{
		{"with a stop", func(_ *memLog, r *rig) { r.loop.Report(domain.ServiceStopped{Reason: "test"}, nil, nil) }, nil},
		{"with a log that is not ours any more", func(log *memLog, _ *rig) { log.expect(moved) }, errLogMoved},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := newMemLog(t)
				r := newRig(t, log, func(c *Config) { c.Batch = 2 }).start("notes")
				synctest.Wait()
				log.hold()
				first := r.submit("local", `{"tool":"none","call_id":"a"}`)
				synctest.Wait()
				c.end(log, r)
				var waiting []<-chan Reply
				for range 5 {
					waiting = append(waiting, r.submit("local", `{"tool":"none"}`))
				}
				log.pass()
				if err := r.wait(); !errors.Is(err, c.want) {
					t.Errorf("Run: %v, want %v", err, c.want)
				}
				r.reply(first)
				for _, got := range waiting {
					r.wantReply(got, domain.StatusRefused, domain.CodeShuttingDown, domain.RanNo)
				}
			})
		})
	}
}
