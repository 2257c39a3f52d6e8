package harness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"waybill/domain"
	"waybill/projections"
	"waybill/store"
)

// service is an engine on a real log with fake peers.
type service struct {
	*rig
	engine *Engine
	disk   diskLog
}

// startService starts an engine; calls are answered by answer, or echoed.
func startService(t testing.TB, disk diskLog, c domain.Config, answer func(*rig, domain.Effect, []byte)) *service {
	t.Helper()
	s := &service{rig: &rig{t: t, log: disk}, disk: disk}
	s.peers = &fakePeers{t: t, log: disk, read: disk.Log.Head().Size}
	s.peers.answer = func(e domain.Effect, arguments []byte) {
		if answer == nil {
			s.echo(e, arguments)
			return
		}
		answer(s.rig, e, arguments)
	}
	engine, err := StartEngine(context.Background(), EngineConfig{Log: disk.Log, Config: c, Digest: testDigest, Version: "test", Logger: quietLogger(),
		NewPeers: func(report func(domain.Data, []byte, []byte)) (Peers, error) {
			s.tell = report
			return s.peers, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	s.engine, s.loop = engine, engine.Loop
	return s
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// quit stops and closes the engine.
func (s *service) quit() {
	s.t.Helper()
	noErr(s.t, errors.Join(s.engine.Stop("test"), s.engine.Close()))
}

// noAnswer leaves calls to the test.
func noAnswer(r *rig, e domain.Effect, _ []byte) { r.probes(e) }

func TestAnEngineServesCallsAndStopsInGoodOrder(t *testing.T) {
	disk := openDisk(t, newLogFile(t))
	s := startService(t, disk, testConfig("notes", "sums"), nil)
	noErr(t, s.engine.WaitSettled(within(t)))
	s.wantReply(s.submit("local", `{"tool":"notes"}`), domain.StatusComplete, "", domain.RanYes)
	report, err := s.engine.Report(within(t))
	if err != nil || !report.AllReady() || report.Log != testLog || len(report.Peers) != 2 {
		t.Errorf("report: %+v, %v", report, err)
	}
	s.quit()
	if s.peers.closed != 1 {
		t.Errorf("the peers were closed %d times", s.peers.closed)
	}
	if _, err := s.engine.Report(within(t)); !errors.Is(err, errStopping) {
		t.Errorf("a report after the stop: %v", err)
	}
	list := readAll(t, disk, 0)
	if last := list[len(list)-1].Data.Kind(); last != "service.stopped" {
		t.Errorf("the last event is %s", last)
	}
	if head := s.engine.Feed.Head(); head != int64(len(list)) || head != disk.Log.Head().Size {
		t.Errorf("the feed is at %d of %d", head, len(list))
	}
}

func TestStopSettlesWhatIsUnderWayAsCancelled(t *testing.T) {
	disk := openDisk(t, newLogFile(t))
	s := startService(t, disk, testConfig("notes"), noAnswer)
	noErr(t, s.engine.WaitSettled(within(t)))
	got := s.submit("local", `{"tool":"notes","call_id":"a"}`)
	waitFor(t, "the call is sent", func() bool { return len(s.peers.sends()) == 1 })
	s.quit()
	s.wantReply(got, domain.StatusCancelled, domain.CodeShuttingDown, domain.RanMaybe)
	wantOnce(t, readAll(t, disk, 0), "local/a")
}

func TestDrainWaitsForWhatIsUnderWayAndNoLonger(t *testing.T) {
	s := startService(t, openDisk(t, newLogFile(t)), testConfig("notes"), noAnswer)
	noErr(t, s.engine.WaitSettled(within(t)))
	noErr(t, s.engine.Drain(within(t)))
	got := s.submit("local", `{"tool":"notes","call_id":"a"}`)
	waitFor(t, "the call is sent", func() bool { return len(s.peers.sends()) == 1 })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.engine.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain with a call under way: %v", err)
	}
	drained := make(chan error, 1)
	go func() { drained <- s.engine.Drain(within(t)) }()
	s.answer(s.peers.sends()[0], "complete", []byte(`{}`))
	noErr(t, <-drained)
	s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
	s.quit()
}

func TestDrainEndsWithTheLoop(t *testing.T) {
	s := startService(t, openDisk(t, newLogFile(t)), testConfig("notes"), noAnswer)
	noErr(t, s.engine.WaitSettled(within(t)))
	s.submit("local", `{"tool":"notes","call_id":"a"}`)
	waitFor(t, "the call is sent", func() bool { return len(s.peers.sends()) == 1 })
	drained := make(chan error, 1)
	go func() { drained <- s.engine.Drain(within(t)) }()
	waitFor(t, "Drain waits", func() bool { return strings.Contains(stacks(), "harness.(*Feed).wait") })
	s.tell(domain.SpawnFailed{At: domain.At{Peer: "notes", Incarnation: 1}, Reason: strings.Repeat("x", 61<<10)}, nil, nil)
	if err := <-drained; !errors.Is(err, errStopping) {
		t.Errorf("Drain of a loop that ended: %v", err)
	}
	if err := s.engine.Stop("test"); err == nil {
		t.Error("Stop hides why the loop ended")
	}
	noErr(t, s.engine.Close())
}

// crash leaves a log with a routed, unsettled call.
func crash(t *testing.T, path string) {
	t.Helper()
	l, err := store.Open(path)
	noErr(t, err)
	r := newRig(t, diskLog{l, l.Reader()}).start("notes")
	r.setAnswer(r.silent)
	got := r.submit("local", `{"tool":"notes","call_id":"a"}`)
	waitFor(t, "the call is sent", func() bool { return len(r.peers.sends()) == 1 })
	noErr(t, l.Close()) // from here on nothing more is recorded
	r.loop.cfg.Patience = 0
	r.loop.Report(domain.NoiseCounted{At: domain.At{Peer: "notes", Incarnation: 1}, Kinds: []domain.NoiseCount{}}, nil, nil)
	if err := r.wait(); !errors.Is(err, store.ErrClosed) {
		t.Fatalf("Run: %v", err)
	}
	r.wantReply(got, domain.StatusLost, domain.CodeServiceRestarted, domain.RanMaybe)
}

func TestAStartSettlesWhatACrashLeftAsLostOnce(t *testing.T) {
	path := newLogFile(t)
	crash(t, path)
	for range 2 {
		l, err := store.Open(path)
		noErr(t, err)
		s := startService(t, diskLog{l, l.Reader()}, testConfig("notes"), nil)
		noErr(t, s.engine.WaitSettled(within(t)))
		s.wantReply(s.submit("local", `{"tool":"notes","call_id":"a"}`), domain.StatusRefused, domain.CodeDuplicateCall, domain.RanNo)
		s.quit()
		list := readAll(t, s.disk, 0)
		settled := find[domain.CallSettled](list)
		want := domain.CallSettled{CallID: domain.CallID{Host: "local", ID: "a"}, Status: domain.StatusLost, Code: domain.CodeServiceRestarted, Ran: domain.RanMaybe}
		if !slices.Equal(settled, []domain.CallSettled{want}) {
			t.Errorf("settled: %+v", settled)
		}
		if n := len(s.peers.sends()); n != 0 {
			t.Errorf("the call was sent again %d times", n)
		}
		noErr(t, l.Close())
	}
}

func TestARejectedConfigurationEndsTheLoopAndItsWait(t *testing.T) {
	c := testConfig("notes", "sums")
	c.Collision = domain.RejectOnCollision
	same := func(r *rig, e domain.Effect, arguments []byte) {
		if x, ok := e.(domain.Send); ok && x.Method == "tools/list" {
			f := listed(x.RequestID, "search")
			r.tell(domain.CatalogListed{At: x.At, RequestID: x.RequestID, Frame: domain.RefTo(f)}, f, nil)
			return
		}
		r.echo(e, arguments)
	}
	s := startService(t, openDisk(t, newLogFile(t)), c, same)
	var halt *HaltError
	if err := s.engine.WaitSettled(within(t)); !errors.As(err, &halt) || halt.Code != domain.CodeCollisionReject {
		t.Errorf("WaitSettled: %v", err)
	}
	s.wantReply(s.submit("local", `{"tool":"search"}`), domain.StatusRefused, domain.CodeShuttingDown, domain.RanNo)
	if err := s.engine.Stop("test"); !errors.As(err, &halt) {
		t.Errorf("Stop: %v", err)
	}
	noErr(t, s.engine.Close())
}

func TestWaitSettledEndsWithItsContextAndWithTheLoop(t *testing.T) {
	mute := func(*rig, domain.Effect, []byte) {}
	s := startService(t, openDisk(t, newLogFile(t)), testConfig("notes"), mute)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.engine.WaitSettled(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitSettled: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- s.engine.WaitSettled(within(t)) }()
	s.quit()
	noErr(t, <-waited)
}

func TestPeersThatCannotBeMadeStartNothing(t *testing.T) {
	disk := openDisk(t, newLogFile(t))
	no := errors.New("no watchdog")
	_, err := StartEngine(context.Background(), EngineConfig{Log: disk.Log, Config: testConfig(), Digest: testDigest, Logger: quietLogger(),
		NewPeers: func(func(domain.Data, []byte, []byte)) (Peers, error) { return nil, no }})
	if !errors.Is(err, no) || disk.Log.Head().Size != 0 {
		t.Errorf("StartEngine: %v, and the log has %d events", err, disk.Log.Head().Size)
	}
}

func TestCallOnceReturnsTheReplyAlsoWhenTheUserGivesUp(t *testing.T) {
	disk := openDisk(t, newLogFile(t))
	s := startService(t, disk, testConfig("notes"), nil)
	noErr(t, s.engine.WaitSettled(within(t)))
	reply, err := s.engine.CallOnce(within(t), "local", []byte(`{"tool":"notes","arguments":{"a":1}}`), domain.Trace{})
	if err != nil || string(reply.Result) != `{"a":1}` {
		t.Errorf("CallOnce: %s, %v", reply.Encode(), err)
	}
	s.quit()
	s = startService(t, disk, testConfig("notes"), noAnswer)
	noErr(t, s.engine.WaitSettled(within(t)))
	ctx, cancel := context.WithCancel(context.Background())
	s.peers.answer = func(e domain.Effect, _ []byte) { cancel() } // the loop is idle: nothing is under way
	reply, err = s.engine.CallOnce(ctx, "local", []byte(`{"tool":"notes"}`), domain.Trace{})
	if err != nil || reply.Status != domain.StatusCancelled || reply.Ran != domain.RanMaybe {
		t.Errorf("CallOnce after the user gave up: %s, %v", reply.Encode(), err)
	}
	s.quit()
}

// follower keeps what it is given.
type follower struct {
	seen []domain.Event
	at   atomic.Int64
	most int // events of the largest batch
	fail error
	left atomic.Int64 // times it fails; 0 for ever
	ran  atomic.Int64
}

func (f *follower) Name() string    { return "test" }
func (f *follower) Position() int64 { return f.at.Load() }

func (f *follower) Apply(_ context.Context, list []domain.Event) error {
	if n := f.ran.Add(1); f.fail != nil && (f.left.Load() == 0 || n <= f.left.Load()) {
		return f.fail
	}
	f.seen, f.most = append(f.seen, list...), max(f.most, len(list))
	f.at.Store(list[len(list)-1].Seq)
	return nil
}

func TestAFollowerSeesEveryEventOnceInOrderWithItsEvidence(t *testing.T) {
	disk := openDisk(t, newLogFile(t))
	s := startService(t, disk, testConfig("notes"), nil)
	live := &follower{}
	s.engine.AttendFollower(live)
	noErr(t, s.engine.WaitSettled(within(t)))
	for i := range 300 {
		s.reply(s.submit("local", fmt.Sprintf(`{"tool":"notes","call_id":"c%d"}`, i)))
	}
	noErr(t, s.engine.Stop("test"))
	head := s.engine.Feed.Head()
	noErr(t, CatchUpWithin(30*time.Second, live, head))
	noErr(t, s.engine.Close())
	late := &follower{}
	noErr(t, CatchUp(within(t), disk, testLog, late))
	want := readAll(t, disk, 0)
	if !reflect.DeepEqual(live.seen, want) || !reflect.DeepEqual(late.seen, want) {
		t.Errorf("followers saw %d and %d events of %d, or others", len(live.seen), len(late.seen), len(want))
	}
	if late.most != foldBatch {
		t.Errorf("a batch had %d events, want at most %d", late.most, foldBatch)
	}
}

func TestAFollowerThatFailsIsReportedByCloseAndStopsNobody(t *testing.T) {
	s := startService(t, openDisk(t, newLogFile(t)), testConfig("notes"), nil)
	broken, whole := &follower{fail: errDisk}, &follower{}
	s.engine.AttendFollower(broken)
	s.engine.AttendFollower(whole)
	noErr(t, s.engine.WaitSettled(within(t)))
	noErr(t, s.engine.Stop("test"))
	noErr(t, CatchUpWithin(30*time.Second, whole, s.engine.Feed.Head()))
	if err := CatchUpWithin(time.Millisecond, broken, s.engine.Feed.Head()); err == nil {
		t.Error("a follower that failed has caught up")
	}
	waitFor(t, "the broken one has been tried", func() bool { return broken.ran.Load() > 0 })
	if err := s.engine.Close(); !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "follower test") {
		t.Errorf("Close: %v", err)
	}
}

func TestAFollowerThatFailedCatchesUp(t *testing.T) {
	s := startService(t, openDisk(t, newLogFile(t)), testConfig("notes"), nil)
	f := &follower{fail: errDisk}
	f.left.Store(2)
	s.engine.AttendFollower(f)
	noErr(t, s.engine.WaitSettled(within(t)))
	noErr(t, s.engine.Stop("test"))
	noErr(t, CatchUpWithin(30*time.Second, f, s.engine.Feed.Head()))
	noErr(t, s.engine.Close())
	if f.ran.Load() < 3 {
		t.Errorf("it was tried %d times", f.ran.Load())
	}
}

func TestAFollowerStopsAtALogThatIsNotWhatItSays(t *testing.T) {
	log := newMemLog(t)
	newRig(t, log).start("notes").stop()
	for _, c := range []struct {
		name string
		harm func(m *memLog)
	}{
		{"a gap", func(m *memLog) { m.records = slices.Delete(m.records, 3, 4) }},
		{"a renumbered event", func(m *memLog) { m.records[4].Seq = 77 }},
		{"an event that is none", func(m *memLog) { m.records[4].Bytes = []byte("{}") }},
		{"evidence that is gone", func(m *memLog) { m.evidence = nil }},
	} {
		harmed := newMemLog(t)
		harmed.records, harmed.evidence = slices.Clone(log.records), log.evidence
		c.harm(harmed)
		if err := Fold(within(t), harmed, testLog, domain.NewState()); err == nil {
			t.Errorf("%s: it was folded", c.name)
		}
	}
	if err := Fold(within(t), log, "other-00000000", domain.NewState()); err == nil {
		t.Error("the log of another node was folded")
	}
}

func TestNoGoroutineIsLeftAfterClose(t *testing.T) {
	s := startService(t, openDisk(t, newLogFile(t)), testConfig("notes"), noAnswer)
	s.engine.AttendFollower(&follower{})
	noErr(t, s.engine.WaitSettled(within(t)))
	s.submit("local", `{"tool":"notes"}`)
	s.quit()
	for _, owner := range []string{"harness.(*Engine)", "harness.(*lane)", "harness.(*Loop)", "harness.(*Feed)"} {
		if left := left(t, owner); left != "" {
			t.Errorf("a goroutine of %s is left:\n%s", owner, left)
		}
	}
}

// left is what every goroutine is doing, if one of an owner is among them; "" once
// there is none. Whoever has said that it is done may have a step left to its end.
func left(t *testing.T, owner string) string {
	t.Helper()
	for ctx := within(t); ; runtime.Gosched() {
		all := stacks()
		if !strings.Contains(all, owner) {
			return ""
		}
		if ctx.Err() != nil {
			return all
		}
	}
}

// stacks is what every goroutine is doing.
func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

func TestCloseWaitsForFollowersAndTakesTheirEndForNoFailure(t *testing.T) {
	disk := openDisk(t, newLogFile(t))
	for round := range 8 {
		s := startService(t, disk, testConfig("notes"), nil)
		views, err := projections.Open(t.Context(), filepath.Join(t.TempDir(), "views.db"), testLog, disk.Log.Head().Size)
		noErr(t, err)
		var ended atomic.Bool
		s.engine.AttendFollower(views)
		s.engine.Attend("slow", func(ctx context.Context) error {
			<-ctx.Done()
			for range 1000 {
				runtime.Gosched()
			}
			ended.Store(true)
			return ctx.Err()
		})
		noErr(t, s.engine.WaitSettled(within(t)))
		for range round {
			s.reply(s.submit("local", `{"tool":"notes"}`))
		}
		s.quit() // wherever the views are
		if !ended.Load() {
			t.Error("Close did not wait for a follower")
		}
		noErr(t, views.Close())
	}
}

func TestACallUnderWayWhenTheConfigurationIsRejectedIsLostAndSettledByTheNextStart(t *testing.T) {
	disk := openDisk(t, newLogFile(t))
	var held domain.Send
	holds := make(chan struct{}, 1)
	search := func(r *rig, s domain.Send) {
		f := listed(s.RequestID, "search")
		r.tell(domain.CatalogListed{At: s.At, RequestID: s.RequestID, Frame: domain.RefTo(f)}, f, nil)
	}
	lists := func(hold bool) func(*rig, domain.Effect, []byte) {
		return func(r *rig, e domain.Effect, _ []byte) {
			switch s, ok := e.(domain.Send); {
			case !ok || s.Method != "tools/list":
				r.probes(e)
			case hold && s.Peer == "sums":
				held = s
				holds <- struct{}{}
			default:
				search(r, s)
			}
		}
	}
	s := startService(t, disk, testConfig("notes", "sums"), lists(false))
	noErr(t, s.engine.WaitSettled(within(t)))
	s.quit()

	c := testConfig("notes", "sums")
	c.Collision = domain.RejectOnCollision
	s = startService(t, disk, c, lists(true))
	<-holds
	waitFor(t, "notes is ready", func() bool {
		r, err := s.engine.Report(within(t))
		return err == nil && r.Peers[0].State == "ready"
	})
	got := s.submit("local", `{"tool":"search","call_id":"a"}`)
	waitFor(t, "the call is sent", func() bool { return len(s.peers.sends()) == 1 })
	search(s.rig, held)
	s.wantReply(got, domain.StatusLost, domain.CodeServiceRestarted, domain.RanMaybe)
	if err := s.engine.Stop("test"); !errors.As(err, new(*HaltError)) {
		t.Errorf("Stop: %v", err)
	}
	noErr(t, s.engine.Close())

	s = startService(t, disk, testConfig("notes"), nil)
	noErr(t, s.engine.WaitSettled(within(t)))
	s.quit()
	wantOnce(t, readAll(t, disk, 0), "local/a")
}
