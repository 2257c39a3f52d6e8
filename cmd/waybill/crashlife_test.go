package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"waybill/harness"
	"waybill/harness/bus"
	"waybill/store"
)

// crasher is a world whose service is killed again and again while hosts call it,
// and what the hosts were told.
type crasher struct {
	*world
	rand *rand.Rand
	cut  *powercut // what a kill takes with it; nil for nothing

	up    time.Duration // the longest that a start took
	lives int
	kills map[string]int

	mu      sync.Mutex
	asked   int
	replies map[string]reply // by key
	highest int64            // seq in a reply
}

const crashPeers = 2

func newCrasher(t *testing.T, r *rand.Rand) *crasher {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &crasher{world: newWorld(t, ""), rand: r, kills: map[string]int{}, replies: map[string]reply{}, up: 100 * time.Millisecond}
	yaml := "nats: {listen: \"127.0.0.1:0\"}\npayloads: full\npeers:\n"
	for _, name := range []string{"a", "b"}[:crashPeers] {
		yaml += fmt.Sprintf("  %s:\n    command: %q\n    args: [soak-peer, %q, %s]\n    data_files: [%q]\n", name, self, c.dir, name, c.dir)
	}
	if err := os.WriteFile(c.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ready()
	return c
}

func (c *crasher) data() harness.DataDir { return harness.DataDir(filepath.Join(c.dir, ".waybill")) }

// life is one process of the service.
type life struct {
	cmd   *exec.Cmd
	errs  *syncBuffer
	ended chan struct{} // closed when it has been reaped
}

// live starts the service, calls it until it dies at the point or, for none, at
// a random moment, and looks at what it left.
func (c *crasher) live(p crashPoint) {
	c.t.Helper()
	c.lives++
	if c.cut != nil {
		c.cut.arm()
	}
	l := c.begin(p)
	var timer *time.Timer
	if p.name == "" {
		timer = time.AfterFunc(c.moment(), func() { _ = l.cmd.Process.Kill() })
		defer timer.Stop()
	}
	if url := c.serving(l); url != "" {
		c.callUntilItEnds(l, url)
	}
	c.buried(l, p)
	if c.cut != nil {
		c.cut.strike()
	}
	c.wantAcknowledged()
}

// moment is when a life ends that ends at random: during its start as well as
// long after.
func (c *crasher) moment() time.Duration {
	return time.Duration(c.rand.Int64N(int64(2*c.up + 600*time.Millisecond)))
}

func (c *crasher) begin(p crashPoint) *life {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	l := &life{cmd: exec.Command(self, "serve", "-c", c.file), errs: &syncBuffer{}, ended: make(chan struct{})}
	l.cmd.Stderr = l.errs
	l.cmd.Env = os.Environ()
	if p.name != "" {
		l.cmd.Env = append(l.cmd.Env, fmt.Sprintf("%s=%s:%d:%d", crashEnv, p.name, 1+c.rand.IntN(p.within), 40*c.rand.IntN(2)))
	}
	if c.cut != nil {
		l.cmd.Env = append(l.cmd.Env, c.cut.env()...)
	}
	if err := l.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = l.cmd.Process.Kill(); <-l.ended })
	go func() {
		_ = l.cmd.Wait()
		close(l.ended)
	}()
	return l
}

func (l *life) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

var servingAt = regexp.MustCompile(`NATS at (\S+);`)

// serving waits until hosts can call, and returns where; "" if it ends before.
func (c *crasher) serving(l *life) (url string) {
	c.t.Helper()
	began := time.Now()
	eventually(c.t, "the service is up, or dead", func() bool {
		if m := servingAt.FindStringSubmatch(l.errs.String()); m != nil {
			url = m[1]
		}
		return url != "" || l.over()
	})
	c.up = max(c.up, min(time.Since(began), time.Second))
	return url
}

// callUntilItEnds has two hosts' connections with four callers each.
func (c *crasher) callUntilItEnds(l *life, url string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wait sync.WaitGroup
	id, err := bus.LoadHost(c.data().NATSDir(), localHost)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range 2 {
		client, err := bus.DialAs(ctx, id, bus.Target{URL: url, Logger: slog.New(slog.DiscardHandler)}, prefix)
		if err != nil {
			break // it is dying: that it does, is looked at below
		}
		defer client.Close()
		for j := range 4 {
			r := rand.New(rand.NewPCG(c.rand.Uint64(), uint64(10*i+j)))
			wait.Go(func() { c.calling(ctx, client, r) })
		}
	}
	eventually(c.t, "the service dies", l.over)
	cancel()
	wait.Wait()
}

// calling makes one call after the other until one has no reply.
func (c *crasher) calling(ctx context.Context, client *bus.Client, r *rand.Rand) {
	for {
		tool := []string{"slow", "b/slow", "b/slow", "charge"}[r.IntN(4)]
		key := c.nextKey()
		b, _, err := client.Request(ctx, "call", fmt.Appendf(nil, `{"tool":%q,"call_id":%q,"arguments":{"key":%q}}`, tool, key, key))
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, bus.ErrConnectionLost) {
				c.t.Errorf("call %s: %v", key, err)
			}
			return
		}
		var d reply
		if err := json.Unmarshal(b, &d); err != nil {
			c.t.Errorf("call %s: %v", key, err)
			return
		}
		c.told(key, d)
		if d.Status == "refused" {
			c.pause(ctx, 25*time.Millisecond) // until the peers are ready
		}
	}
}

func (c *crasher) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (c *crasher) nextKey() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return fmt.Sprintf("k%d", c.asked)
}

func (c *crasher) told(key string, d reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies[key] = d
	for _, seq := range d.Seqs {
		c.highest = max(c.highest, seq)
	}
}

// buried waits for the end of a life and checks that it was the one intended.
func (c *crasher) buried(l *life, p crashPoint) {
	c.t.Helper()
	eventually(c.t, "the service dies at "+p.name, l.over)
	status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL ||
		p.name != "" && !strings.HasSuffix(l.errs.String(), crashNote+p.name+"\n") {
		c.t.Fatalf("life %d, to end at %q: %v; it said:\n%s", c.lives, p.name, l.cmd.ProcessState, l.errs.String())
	}
	if p.name == "" {
		p.name = "at random"
	}
	c.kills[p.name]++
}

// wantAcknowledged looks at the log before any writer can mend it: what a host was
// told is there.
func (c *crasher) wantAcknowledged() {
	c.t.Helper()
	r, err := store.OpenReader(c.log())
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	head, err := r.Head(context.Background())
	if err != nil || head.Size < c.highest {
		c.t.Fatalf("after life %d (%v) the log has %d events, and hosts were told of event %d: %v", c.lives, c.kills, head.Size, c.highest, err)
	}
}
