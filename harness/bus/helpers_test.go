package bus

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/events"
)

const (
	testLog  = "node-0a1b2c3d"
	patience = 20 * time.Second
)

var quiet = slog.New(slog.DiscardHandler)

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
	poll(5*time.Second, func() bool {
		buf := make([]byte, 4<<20)
		buf = buf[:runtime.Stack(buf, true)]
		var own []string
		for _, stack := range strings.Split(string(buf), "\n\n") {
			if strings.Contains(stack, "waybill/harness/bus.") && !strings.Contains(stack, "bus.TestMain") {
				own = append(own, stack)
			}
		}
		left = strings.Join(own, "\n\n")
		return left == ""
	})
	return left
}

// poll asks until done or until the time is up, and reports which.
func poll(limit time.Duration, done func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			return done()
		case <-tick.C:
		}
	}
	return true
}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !poll(patience, done) {
		t.Fatalf("did not happen within %v: %s", patience, what)
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// receive waits for a value with a limit.
func receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("nothing came within %v", patience)
		panic("unreachable")
	}
}

func writeCredentials(t testing.TB, hosts ...string) (string, Credentials) {
	t.Helper()
	dir := t.TempDir()
	must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, hosts))
	return dir, must[Credentials](t)(LoadCredentials(dir))
}

func serverConfig(c Credentials, store string) ServerConfig {
	return ServerConfig{
		Listen:      "127.0.0.1:0",
		StoreDir:    store,
		Credentials: c,
		Prefix:      DefaultPrefix,
		LogID:       testLog,
		Logger:      quiet,
	}
}

func startServer(t testing.TB, c Credentials) *Server {
	t.Helper()
	s := must[*Server](t)(StartServer(serverConfig(c, t.TempDir())))
	t.Cleanup(s.Close)
	return s
}

// startOpenServer starts a plain server that lets everybody do everything, for
// what our own users may not do.
func startOpenServer(t testing.TB) *nats.Conn {
	t.Helper()
	ns := must[*server.Server](t)(server.NewServer(&server.Options{
		DontListen: true, NoSigs: true, NoLog: true,
		JetStream: true, JetStreamMaxMemory: 1 << 20, JetStreamMaxStore: 1 << 30, StoreDir: t.TempDir(),
	}))
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(patience) {
		t.Fatal("server not ready")
	}
	nc := must[*nats.Conn](t)(nats.Connect("", nats.InProcessServer(ns), nats.CustomInboxPrefix(InboxPrefix(LocalHost))))
	t.Cleanup(nc.Close)
	return nc
}

func connect(t testing.TB, id Identity, to Target) *nats.Conn {
	t.Helper()
	if to.Logger == nil {
		to.Logger = quiet
	}
	nc := must[*nats.Conn](t)(Connect(id, to))
	t.Cleanup(nc.Close)
	return nc
}

func dial(t testing.TB, c Credentials, s *Server, host string) *Client {
	t.Helper()
	id := must[Identity](t)(c.Host(host))
	client := must[*Client](t)(DialAs(testContext(t), id, Target{Server: s, Logger: quiet}, DefaultPrefix))
	t.Cleanup(client.Close)
	return client
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
		Subject: events.Subject(DefaultPrefix, testLog, "call.routed", ""),
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
		Prefix: DefaultPrefix, LogID: testLog, Logger: quiet,
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
	stream := must[jetstream.Stream](t)(js.Stream(ctx, StreamName(testLog)))
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

// wire is a TCP relay in front of a server. It can lose what one side says and
// be cut, and its address stays when the server behind it is another.
type wire struct {
	listener net.Listener
	mu       sync.Mutex
	backend  string
	loseUp   bool // what the client says
	loseDown bool // what the server says
	open     map[net.Conn]struct{}
	relays   sync.WaitGroup
}

func newWire(t testing.TB, backend string) *wire {
	t.Helper()
	w := &wire{
		listener: must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")),
		backend:  strings.TrimPrefix(backend, "nats://"),
		open:     map[net.Conn]struct{}{},
	}
	w.relays.Go(w.accept)
	t.Cleanup(func() {
		w.listener.Close()
		w.cut()
		w.relays.Wait()
	})
	return w
}

func (w *wire) url() string { return "nats://" + w.listener.Addr().String() }

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		backend := w.backend
		w.mu.Unlock()
		server, err := net.Dial("tcp", backend)
		if err != nil {
			client.Close()
			continue
		}
		w.mu.Lock()
		w.open[client], w.open[server] = struct{}{}, struct{}{}
		w.mu.Unlock()
		w.relays.Go(func() { w.relay(server, client, &w.loseUp) })
		w.relays.Go(func() { w.relay(client, server, &w.loseDown) })
	}
}

func (w *wire) relay(to, from net.Conn, lose *bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		w.mu.Lock()
		lost := *lose
		w.mu.Unlock()
		if lost {
			continue
		}
		if _, err := io.Copy(to, bytes.NewReader(buf[:n])); err != nil {
			return
		}
	}
}

// lose sets what is lost from now on.
func (w *wire) lose(up, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loseUp, w.loseDown = up, down
}

// cut closes every connection.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.Close()
	}
	clear(w.open)
}

// to sends new connections to another server.
func (w *wire) to(backend string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backend = strings.TrimPrefix(backend, "nats://")
}
