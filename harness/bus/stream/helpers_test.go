package stream

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/events"
	"waybill/harness/bus"
	"waybill/harness/bus/bustest"
)

const testLog = "node-0a1b2c3d"

var (
	quiet = slog.New(slog.DiscardHandler)

	eventually  = bustest.Eventually
	testContext = bustest.Context
	newWire     = bustest.NewWire
)

func must[T any](t testing.TB) func(v T, err error) T { return bustest.Must[T](t) }

func receive[T any](t testing.TB, ch <-chan T) T { t.Helper(); return bustest.Receive(t, ch) }

// TestMain fails the run if code of this package is still running at its end.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftovers(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftovers waits for the goroutines of this package to end and returns those
// that do not.
func leftovers() string {
	var left string
	bustest.Poll(5*time.Second, func() bool {
		left = bustest.Running("waybill/harness/bus/stream.", "stream.TestMain")
		return left == ""
	})
	return left
}

func writeCredentials(t testing.TB, hosts ...string) bus.Credentials {
	t.Helper()
	dir := t.TempDir()
	must[[]string](t)(bus.WriteCredentials(dir, bus.DefaultPrefix, testLog, hosts))
	return must[bus.Credentials](t)(bus.LoadCredentials(dir))
}

func serverConfig(c bus.Credentials, store string) bus.ServerConfig {
	return bus.ServerConfig{Listen: "127.0.0.1:0", StoreDir: store, Credentials: c, Prefix: bus.DefaultPrefix, LogID: testLog, Logger: quiet}
}

func startServer(t testing.TB, c bus.Credentials) *bus.Server {
	t.Helper()
	s := must[*bus.Server](t)(bus.StartServer(serverConfig(c, t.TempDir())))
	t.Cleanup(s.Close)
	return s
}

func connect(t testing.TB, id bus.Identity, to bus.Target) *nats.Conn {
	t.Helper()
	to.Logger = quiet
	nc := must[*nats.Conn](t)(bus.Connect(id, to))
	t.Cleanup(nc.Close)
	return nc
}

// memoryLog is a Source in memory.
type memoryLog struct {
	mu     sync.Mutex
	events []Event
	grown  chan struct{}
}

func newLog(n int) *memoryLog {
	l := &memoryLog{grown: make(chan struct{})}
	l.grow(n)
	return l
}

func eventAt(seq int64, salt string) Event {
	return Event{
		Seq:     seq,
		Type:    "call.routed",
		Subject: events.Subject(bus.DefaultPrefix, testLog, "call.routed", ""),
		Bytes:   fmt.Appendf(nil, `{"id":"%d","salt":"%s"}`, seq, salt),
	}
}

func (l *memoryLog) grow(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		l.events = append(l.events, eventAt(int64(len(l.events))+1, ""))
	}
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *memoryLog) head() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.events))
}

func (l *memoryLog) Read(_ context.Context, after int64, max int) ([]Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	after = min(after, int64(len(l.events)))
	rest := l.events[after:]
	return rest[:min(max, len(rest))], nil
}

func (l *memoryLog) Wait(ctx context.Context, after int64) error {
	for {
		l.mu.Lock()
		head, grown := int64(len(l.events)), l.grown
		l.mu.Unlock()
		if head > after {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func publisherConfig() PublisherConfig {
	return PublisherConfig{
		Prefix: bus.DefaultPrefix, LogID: testLog, Logger: quiet,
		AckWait: time.Second, MinBackoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	}
}

// running is a publisher with the goroutine that runs it.
type running struct {
	*Publisher
	cancel context.CancelFunc
	done   chan struct{}
	result error
}

func runPublisher(t testing.TB, nc *nats.Conn, cfg PublisherConfig, src Source) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Publisher: must[*Publisher](t)(NewPublisher(nc, cfg, src)), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.result = r.Run(ctx)
	}()
	t.Cleanup(func() { r.stop(t) })
	return r
}

func (r *running) stop(t testing.TB) {
	t.Helper()
	r.cancel()
	r.ended(t)
}

func (r *running) ended(t testing.TB) error {
	t.Helper()
	receive(t, r.done)
	return r.result
}

func (r *running) caughtUp(t testing.TB, seq int64) {
	t.Helper()
	if err := r.CaughtUp(testContext(t), seq); err != nil {
		t.Fatal(err)
	}
}

// checkCopy compares the whole stream with the log.
func checkCopy(t testing.TB, nc *nats.Conn, log *memoryLog) {
	t.Helper()
	ctx := testContext(t)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	stream := must[jetstream.Stream](t)(js.Stream(ctx, bus.StreamName(testLog)))
	if last := int64(stream.CachedInfo().State.LastSeq); last != log.head() {
		t.Fatalf("the stream ends at %d, the log at %d", last, log.head())
	}
	for _, want := range log.events {
		got := must[*jetstream.RawStreamMsg](t)(stream.GetMsg(ctx, uint64(want.Seq)))
		if !bytes.Equal(got.Data, want.Bytes) || got.Subject != want.Subject {
			t.Fatalf("the stream has %q on %q at %d, the log has %q", got.Data, got.Subject, want.Seq, want.Bytes)
		}
		if id := got.Header.Get(jetstream.MsgIDHeader); id != fmt.Sprint(want.Seq) {
			t.Fatalf("message id %q at %d", id, want.Seq)
		}
	}
}
