package heads

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/replay/replaytest"
	"waybill/store"
)

// world is a data directory with its log.
type world struct {
	t   testing.TB
	dir harness.DataDir
	id  string
	out syncBuffer // what is logged
}

// syncBuffer is a buffer that several goroutines may use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: harness.DataDir(t.TempDir())}
	id, _, err := w.dir.Init("local")
	w.ok(err)
	w.id = id
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&w.out, nil)) }

// open opens the log until close.
func (w *world) open() *store.Log {
	w.t.Helper()
	l, err := store.Open(w.dir.LogFile())
	w.ok(err)
	return l
}

// grow appends events of a history up to a size.
func (w *world) grow(l *store.Log, size int64, history string) {
	w.t.Helper()
	for n := l.Head().Size; n < size; n++ {
		w.ok(appendOne(l, n, history))
	}
}

func appendOne(l *store.Log, after int64, history string) error {
	_, err := l.Append(context.Background(), after, []store.Entry{{Type: "a.b", Bytes: fmt.Appendf(nil, "%s %d", history, after+1)}})
	return err
}

// sign stores a checkpoint of the head and writes the file, as Run does.
func (w *world) sign(l *store.Log) []byte {
	w.t.Helper()
	b := w.note(l)
	w.ok(l.Checkpoint(context.Background(), l.Head().Size, b))
	w.write(b)
	return b
}

// note is a checkpoint of the head.
func (w *world) note(l *store.Log) []byte {
	w.t.Helper()
	s, _, err := w.dir.Signer(l.ID())
	w.ok(err)
	b, err := checkpoint.Sign(s, checkpoint.Head{Log: l.ID(), Size: l.Head().Size, Root: l.Head().Root})
	w.ok(err)
	return b
}

func (w *world) write(b []byte) {
	w.t.Helper()
	w.ok(os.WriteFile(w.dir.CheckpointFile(), b, 0o600))
}

func (w *world) file() string {
	w.t.Helper()
	b, err := os.ReadFile(w.dir.CheckpointFile())
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(b)
}

// signed makes a closed log of 10 events with checkpoints of 4 and 8.
func (w *world) signed() (four, eight []byte) {
	w.t.Helper()
	l := w.open()
	w.grow(l, 4, "true")
	four = w.sign(l)
	w.grow(l, 8, "true")
	eight = w.sign(l)
	w.grow(l, 10, "true")
	w.ok(l.Close())
	return four, eight
}

// check opens the log, checks it and closes it.
func (w *world) check() error {
	w.t.Helper()
	l := w.open()
	defer func() { w.ok(l.Close()) }()
	return Check(context.Background(), w.dir, l, w.logger())
}

// lastStored is the checkpoint that the log has last.
func (w *world) lastStored() string {
	w.t.Helper()
	r, err := store.OpenReader(w.dir.LogFile())
	w.ok(err)
	defer r.Close()
	c, err := r.LastCheckpoint(context.Background())
	w.ok(err)
	return string(c.Note)
}

// begin makes another log in place of the one there is, under the same key.
func (w *world) begin(id string) {
	w.t.Helper()
	public, err := w.dir.PublicKey()
	w.ok(err)
	w.remove()
	w.ok(store.Create(w.dir.LogFile(), id, public))
}

func (w *world) remove() {
	w.t.Helper()
	files, err := filepath.Glob(w.dir.LogFile() + "*")
	w.ok(err)
	for _, f := range files {
		w.ok(os.Remove(f))
	}
}

func (w *world) logs(want string) {
	w.t.Helper()
	if got := w.out.String(); want == "" && got != "" || !strings.Contains(got, want) {
		w.t.Errorf("logged %q, want %q", got, want)
	}
}

const otherKey = replaytest.OtherPrivateKey
