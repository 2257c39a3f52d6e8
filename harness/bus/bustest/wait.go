package bustest

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Patience is how long a test waits for what must happen.
const Patience = 20 * time.Second

// Poll asks until done or until the time is up, and reports which.
func Poll(limit time.Duration, done func() bool) bool {
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

// Eventually fails the test if done never holds.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !Poll(Patience, done) {
		t.Fatalf("did not happen within %v: %s", Patience, what)
	}
}

// Context ends with the test, or with its Patience.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Must returns what has no error.
func Must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Receive waits for a value with a limit.
func Receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(Patience):
		t.Fatalf("nothing came within %v", Patience)
		panic("unreachable")
	}
}

// OpenServer starts a plain server that lets everybody do everything, for
// what our own users may not do.
func OpenServer(t testing.TB) *nats.Conn {
	t.Helper()
	ns := Must[*server.Server](t)(server.NewServer(&server.Options{
		DontListen: true, NoSigs: true, NoLog: true,
		JetStream: true, JetStreamMaxMemory: 1 << 20, JetStreamMaxStore: 1 << 30, StoreDir: t.TempDir(),
	}))
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(Patience) {
		t.Fatal("server not ready")
	}
	nc := Must[*nats.Conn](t)(nats.Connect("", nats.InProcessServer(ns), nats.CustomInboxPrefix("_INBOX.local")))
	t.Cleanup(nc.Close)
	return nc
}

// Running returns the stacks of goroutines that are in a package, "" for none;
// those with the word except are not looked for.
func Running(pkg, except string) string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var own []string
	for _, stack := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(stack, pkg) && !strings.Contains(stack, except) {
			own = append(own, stack)
		}
	}
	return strings.Join(own, "\n\n")
}
