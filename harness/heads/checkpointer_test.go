package heads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/replay/replaytest"
	"waybill/store"
)

// fakeLog is a log in memory that grows by saying so.
type fakeLog struct {
	mu    sync.Mutex
	size  int64
	notes []store.Checkpoint
	times []time.Time
	plan  []outcome // of the stores to come
}

type outcome int

const (
	kept    outcome = iota
	absent          // fails, and is not kept
	present         // fails, but is kept
)

var errDisk = errors.New("the disk said no")

func (f *fakeLog) ID() string        { return replaytest.ID }
func (f *fakeLog) PublicKey() string { return replaytest.Key }
func (f *fakeLog) Keys() []string    { return []string{replaytest.Key} }

func rootAt(size int64) [32]byte { return tlog.RecordHash(fmt.Append(nil, size)) }

func (f *fakeLog) Head() store.Head {
	f.mu.Lock()
	defer f.mu.Unlock()
	return store.Head{Size: f.size, Root: rootAt(f.size)}
}

func (f *fakeLog) RootAt(_ context.Context, size int64, _ store.Head) ([32]byte, error) {
	return rootAt(size), nil
}

func (f *fakeLog) Checkpoint(ctx context.Context, size int64, note []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if n := len(f.notes); n > 0 && f.notes[n-1].Size >= size {
		return errors.New("size must grow")
	}
	what := kept
	if len(f.plan) > 0 {
		what, f.plan = f.plan[0], f.plan[1:]
	}
	if what != absent {
		f.notes = append(f.notes, store.Checkpoint{Size: size, Note: note})
		f.times = append(f.times, time.Now())
	}
	if what != kept {
		return errDisk
	}
	return nil
}

func (f *fakeLog) LastCheckpoint(context.Context) (store.Checkpoint, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.notes) == 0 {
		return store.Checkpoint{}, store.ErrNoCheckpoint
	}
	return f.notes[len(f.notes)-1], nil
}

func (f *fakeLog) signed() (sizes []int64, times []time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.notes {
		sizes = append(sizes, c.Size)
	}
	return sizes, append([]time.Time(nil), f.times...)
}

// bench is a running Checkpointer of a log in memory.
type bench struct {
	*fakeLog
	*Checkpointer
	t      *testing.T
	feed   *harness.Feed
	cancel context.CancelFunc
	ended  chan error

	mu        sync.Mutex
	published []string
	refusals  int // publications to come that fail
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, fakeLog: &fakeLog{}, feed: harness.NewFeed(0), ended: make(chan error, 1)}
	signer, _, err := checkpoint.NewSigner(replaytest.PrivateKey, replaytest.ID)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	b.Checkpointer = &Checkpointer{log: b.fakeLog, file: filepath.Join(t.TempDir(), "checkpoint"), signer: signer, every: time.Second,
		logger: w.logger(), publish: b.take}
	return b
}

func (b *bench) take(note []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusals > 0 {
		b.refusals--
		return errors.New("nobody listens")
	}
	b.published = append(b.published, strings.Split(string(note), "\n")[1])
	return nil
}

// start runs it until stop, in a bubble.
func (b *bench) start() {
	b.t.Helper()
	if err := b.open(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go func() { b.ended <- b.Run(ctx, b.feed) }()
	synctest.Wait()
}

func (b *bench) stop() error {
	b.cancel()
	return <-b.ended
}

// commit adds events.
func (b *bench) commit(n int64) {
	b.fakeLog.mu.Lock()
	b.fakeLog.size += n
	size := b.fakeLog.size
	b.fakeLog.mu.Unlock()
	b.feed.Advance(size)
}

func (b *bench) told() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.published, " ")
}

// at holds that the log, the file and the position are at a size.
func (b *bench) at(size int64) {
	b.t.Helper()
	synctest.Wait()
	sizes, _ := b.signed()
	c, err := b.LastCheckpoint(context.Background())
	file, fileErr := os.ReadFile(b.file)
	if err != nil || fileErr != nil || c.Size != size || !bytes.Equal(file, c.Note) || b.Position() != size {
		b.t.Errorf("want a checkpoint of %d: stored %v, file %q, position %d; %v, %v", size, sizes, file, b.Position(), err, fileErr)
	}
}

// TestHeadsAreSignedOnceASecondWhileEventsArrive counts over ten busy seconds,
// ten idle ones and ten busy ones.
func TestHeadsAreSignedOnceASecondWhileEventsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		busy := func() {
			before, _ := b.signed()
			for range 100 {
				b.commit(1)
				<-time.After(100 * time.Millisecond)
			}
			after, times := b.signed()
			if n := len(after) - len(before); n < 9 || n > 10 {
				t.Errorf("signed %v, then %v", before, after)
			}
			for i := len(before) + 1; i < len(times); i++ {
				if gap := times[i].Sub(times[i-1]); gap != time.Second {
					t.Errorf("signed after %v", gap)
				}
			}
		}
		busy()
		<-time.After(2 * time.Second)
		sizes, _ := b.signed()
		<-time.After(10 * time.Second)
		if again, _ := b.signed(); len(again) != len(sizes) {
			t.Errorf("without events it signed %v after %v", again, sizes)
		}
		b.at(100)
		busy()
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.at(200)
		all, _ := b.signed()
		if got := b.told(); !strings.HasSuffix(got, " 200") || len(strings.Fields(got)) != len(all) {
			t.Errorf("published %s of %v", got, all)
		}
	})
}

func TestAnEventIsSignedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		for n := int64(1); n < 5; n++ {
			<-time.After(time.Duration(n) * 777 * time.Millisecond)
			b.commit(1)
			<-time.After(time.Second)
			b.at(n)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestACleanStopSignsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		b.commit(7)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.at(7)
		if b.told() != "7" {
			t.Errorf("published %s", b.told())
		}
		b.start() // a new life
		synctest.Wait()
		if err := b.stop(); err != nil || b.told() != "7 7" {
			t.Errorf("the next life published %s, %v", b.told(), err)
		}
		if sizes, _ := b.signed(); len(sizes) != 1 {
			t.Errorf("nothing had come, and it signed %v", sizes)
		}
	})
}

// TestAStoreThatFailsIsTriedAgain pairs each fault with the events that come
// meanwhile, and with none.
func TestAStoreThatFailsIsTriedAgain(t *testing.T) {
	for _, plan := range [][]outcome{{absent}, {present}, {absent, present}, {present, absent, absent}} {
		for _, more := range []int64{0, 3} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.plan = plan
				b.start()
				b.commit(5)
				for range plan {
					<-time.After(time.Second)
					if more > 0 {
						b.commit(more)
					}
				}
				<-time.After(time.Second)
				b.at(5 + more*int64(len(plan)))
				if err := b.stop(); err != nil {
					t.Errorf("plan %v: %v", plan, err)
				}
			})
		}
	}
}

func TestAStopThatCannotSignSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.plan = []outcome{absent}
		b.start()
		b.commit(5)
		if err := b.stop(); !errors.Is(err, errDisk) || errors.Is(err, ErrOther) {
			t.Errorf("stopped: %v", err)
		}
		b.start() // the next life does it
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.at(5)
	})
}

// TestAFileThatCannotBeWrittenIsTriedAgain puts a folder in the way.
func TestAFileThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if err := os.MkdirAll(filepath.Join(b.file+".new", "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		b.start()
		b.commit(5)
		<-time.After(2500 * time.Millisecond)
		if b.Position() != 0 || b.told() != "" {
			t.Errorf("at %d, published %s", b.Position(), b.told())
		}
		b.commit(1)
		if err := os.RemoveAll(b.file + ".new"); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		b.at(6)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAWriteThatFailedButHappenedIsOurs is the fault that a file cannot be made
// to have: the name was changed, the folder could not be synced.
func TestAWriteThatFailedButHappenedIsOurs(t *testing.T) {
	b := newBench(t)
	for i, note := range []string{"one", "two", "three"} {
		if err := b.replace([]byte(note)); err != nil {
			t.Fatal(err)
		}
		if i == 1 { // as if the write of this one had failed
			b.kept, b.tried = []byte("one"), []byte("two")
		}
	}
	if got, err := os.ReadFile(b.file); err != nil || string(got) != "three" {
		t.Errorf("the file is %s, %v", got, err)
	}
}

func TestAFileThatSomethingElseWritesIsNotReplaced(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"written": func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) },
		"longer":  func(path string) error { return appendTo(path, "\n") },
		"removed": os.Remove,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.start()
			b.commit(5)
			<-time.After(time.Second)
			b.at(5)
			if err := harm(b.file); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(b.file)
			b.commit(1)
			if err := <-b.ended; !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), b.file) {
				t.Errorf("%s: %v", name, err)
			}
			if after, _ := os.ReadFile(b.file); !bytes.Equal(before, after) {
				t.Errorf("%s: it was replaced by %s", name, after)
			}
			b.cancel()
		})
	}
}

func appendTo(path, s string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, s...), 0o600)
}

func TestALogThatSomethingElseSignsEndsIt(t *testing.T) {
	for _, size := range []int64{6, 9} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.start()
			if err := b.Checkpoint(context.Background(), size, []byte("other")); err != nil {
				t.Fatal(err)
			}
			b.commit(6)
			if err := <-b.ended; !errors.Is(err, ErrOther) {
				t.Errorf("at %d: %v", size, err)
			}
			b.cancel()
		})
	}
}

// TestAPublicationThatFailsIsTriedAgain, and a newer checkpoint takes its place.
func TestAPublicationThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.refusals = 3
		b.start()
		b.commit(5)
		<-time.After(10 * time.Second)
		if b.told() != "5" {
			t.Errorf("published %s", b.told())
		}
		b.refusals = 2
		b.commit(1)
		<-time.After(1500 * time.Millisecond)
		b.commit(1)
		<-time.After(10 * time.Second)
		if b.told() != "5 7" {
			t.Errorf("published %s", b.told())
		}
		b.refusals = 2 // at once, and at the end
		b.commit(1)
		if err := b.stop(); err != nil || b.told() != "5 7" {
			t.Errorf("published %s, %v", b.told(), err)
		}
		b.at(8)
	})
}

func TestAPublisherThatHangsDoesNotHoldUpTheSigning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		gate := make(chan struct{})
		b.publish = func([]byte) error { <-gate; return nil }
		b.start()
		for range 5 {
			b.commit(1)
			<-time.After(time.Second)
		}
		b.at(5)
		close(gate)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestARealLogIsSignedWhileItGrows runs beside appends, as the service does, and
// holds every checkpoint to the log.
func TestARealLogIsSignedWhileItGrows(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	feed := harness.NewFeed(0)
	var last []byte
	c, err := New(t.Context(), Config{Dir: w.dir, Log: l, Every: time.Millisecond, Logger: w.logger(),
		Publish: func(note []byte) error { last = note; return nil }})
	w.ok(err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, feed) }()
	for n := range int64(600) {
		w.ok(appendOne(l, n, "true"))
		feed.Advance(n + 1)
	}
	cancel()
	w.ok(<-ended)
	public, err := w.dir.PublicKey()
	w.ok(err)
	all, err := l.Reader().Checkpoints(t.Context(), -1, 1000)
	w.ok(err)
	for _, s := range all {
		h, err := checkpoint.Open(s.Note, public)
		w.ok(err)
		root, err := l.Reader().RootAt(t.Context(), h.Size, l.Head())
		if err != nil || root != h.Root || h.Size != s.Size || h.Log != w.id {
			t.Errorf("signed %+v, %v", h, err)
		}
	}
	end := all[len(all)-1]
	if end.Size != 600 || len(all) < 2 || w.file() != string(end.Note) || string(last) != string(end.Note) || c.Position() != 600 {
		t.Errorf("%d checkpoints, the last of %d; the file is %s", len(all), end.Size, w.file())
	}
	w.ok(l.Close())
	w.ok(w.check())
	w.logs("")
}
