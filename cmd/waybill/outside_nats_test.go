package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/bus/bustest"
	"waybill/store"
)

// gatePeer is a modern server with two tools: echo answers at once, and wait when
// the file that is named to the peer is there, with as many bytes as the argument
// size says.
func gatePeer(args []string) int {
	in, out := bufio.NewReader(os.Stdin), &syncWriter{to: os.Stdout}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m rpc
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		result := `"resultType":"complete","content":[]`
		switch {
		case m.Method == "server/discover":
			result = `"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"`
		case m.Method == "tools/list":
			result = `"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"wait","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"`
		case m.Params.Name == "wait":
			go out.later(args[0], m)
			continue
		}
		out.say(m, result)
	}
}

type syncWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *syncWriter) say(m rpc, result string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.to, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}\n", m.ID, result)
}

func (w *syncWriter) later(file string, m rpc) {
	var a struct{ Size int }
	_ = json.Unmarshal(m.Params.Arguments, &a)
	bustest.Poll(time.Minute, func() bool { _, err := os.Stat(file); return err == nil })
	w.say(m, `"resultType":"complete","content":[],"structuredContent":{"x":"`+strings.Repeat("x", a.Size)+`"}`)
}

// farNATS is a world whose NATS servers are processes of their own, which take the
// users that init wrote.
type farNATS struct {
	*world
	gate  string
	nodes []*bustest.Process

	streams jetstream.JetStream // of the service, to look at the cluster with
}

// newFar makes a log and one peer, gatePeer. Its servers are to be started.
func newFar(t *testing.T) *farNATS {
	t.Helper()
	f := &farNATS{world: newWorld(t, "")}
	f.gate = filepath.Join(f.dir, "gate")
	f.write(`listen: "127.0.0.1:0"`)
	f.ready()
	return f
}

// write sets the section nats.
func (f *farNATS) write(section string) {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	yaml := fmt.Sprintf("nats: {%s}\npayloads: full\npeers:\n  far:\n    command: %q\n    args: [gate-peer, %q]\n", section, self, f.gate)
	if err := os.WriteFile(f.file, []byte(yaml), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// accounts is the line of a server's configuration in dir that names our users.
func (w *world) accounts(dir string) string {
	return bustest.Include(w.t, dir, filepath.Join(w.dir, ".waybill", "nats", bus.AccountsFile))
}

// one starts a single server, with more in its configuration, and makes it nats.url.
func (f *farNATS) one(more string) *bustest.Process {
	f.t.Helper()
	dir := f.t.TempDir()
	p := bustest.StartProcess(f.t, dir, bustest.Port(f.t), more+f.accounts(dir))
	f.nodes = append(f.nodes, p)
	f.write(fmt.Sprintf("url: %q", p.URL()))
	return p
}

// stored is the part of a server's configuration that gives it JetStream.
func stored(t *testing.T) string {
	return fmt.Sprintf("jetstream { store_dir: %q, max_memory_store: 16MB, max_file_store: 1GB }\n", t.TempDir())
}

// urls joins the addresses of the servers.
func (f *farNATS) urls() string {
	var list []string
	for _, p := range f.nodes {
		list = append(list, p.URL())
	}
	return strings.Join(list, ",")
}

// dial is a host that connects again for ever.
func (f *farNATS) dial(host string) *bus.Client {
	f.t.Helper()
	id, err := bus.LoadHost(filepath.Join(f.dir, ".waybill", "nats"), host)
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := bus.DialAs(f.t.Context(), id, bus.Target{URL: f.urls(), Logger: slog.New(slog.DiscardHandler)}, prefix)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	return c
}

// callers call over NATS, each call under an id of its own, until they are stopped.
type natsCalls struct {
	wait  sync.WaitGroup
	ended atomic.Bool
	done  atomic.Int64

	mu   sync.Mutex
	had  []string // ids whose reply came
	lost []string // ids whose reply did not
}

func (f *farNATS) callFrom(clients ...*bus.Client) *natsCalls {
	l := &natsCalls{}
	for n, c := range clients {
		l.wait.Go(func() {
			for i := 0; !l.ended.Load(); i++ {
				id := fmt.Sprintf("c%d-%d", n, i)
				came := f.callOnce(c, id)
				l.mu.Lock()
				if came {
					l.had = append(l.had, id)
					l.done.Add(1)
				} else {
					l.lost = append(l.lost, id)
				}
				l.mu.Unlock()
			}
		})
	}
	return l
}

// callOnce reports whether the reply came. One that comes must be that of a call
// that is complete.
func (f *farNATS) callOnce(c *bus.Client, id string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	b, code, err := c.Request(ctx, bus.CallVerb, fmt.Appendf(nil, `{"tool":"echo","arguments":{},"call_id":%q}`, id))
	if err != nil {
		<-time.After(10 * time.Millisecond) // a host that is cut off need not ask as fast as it can
		return false
	}
	if code != "" {
		f.t.Errorf("call %s: %s", id, b)
	}
	return true
}

func (l *natsCalls) stop() {
	l.ended.Store(true)
	l.wait.Wait()
}

// settled checks that each call whose reply came, or did not, has its outcome by
// asking for it: complete, or never submitted, for then the request was lost on its
// way and nothing ran. It returns how many replies were lost and can be had.
func (f *farNATS) settled(l *natsCalls) (found int) {
	f.t.Helper()
	r, err := store.OpenReader(f.log())
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Close()
	for _, id := range l.had {
		reply, ok, err := harness.Outcome(f.t.Context(), r, domain.CallID{Host: localHost, ID: id})
		if err != nil || !ok || reply.Status != domain.StatusComplete {
			f.t.Errorf("call %s had its reply, and its outcome is %s: %v", id, reply.Encode(), err)
		}
	}
	for _, id := range l.lost {
		reply, ok, err := harness.Outcome(f.t.Context(), r, domain.CallID{Host: localHost, ID: id})
		if err != nil || ok && reply.Status != domain.StatusComplete {
			f.t.Errorf("call %s had no reply, and its outcome is %s: %v", id, reply.Encode(), err)
		}
		if ok {
			found++
		}
	}
	return found
}

// copied waits until the stream has all of the log, and compares them byte for byte.
func (f *farNATS) copied() int64 {
	f.t.Helper()
	head := f.health().Head
	within(f.t, time.Minute, "the copy has caught up", func() bool { h := f.health(); return h.Publisher.Position >= head && h.Publisher.Lag < 50 })
	f.wantSame(head)
	return head
}

// cutOff is how often both of the service's users have lost their connection.
func (s *service) cutOff() int {
	lost := `msg="nats connection lost, connecting again" user=`
	return min(strings.Count(s.errs.String(), lost+"replier"), strings.Count(s.errs.String(), lost+"service"))
}

// within is eventually for what may take long on a busy machine.
func within(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	if !bustest.Poll(limit, done) {
		t.Fatalf("never within %v: %s", limit, what)
	}
}

// raw is a host without our client: it waits for its reply whatever becomes of its
// connection.
func (f *farNATS) raw(url string) *nats.Conn {
	f.t.Helper()
	id, err := bus.LoadHost(filepath.Join(f.dir, ".waybill", "nats"), localHost)
	if err != nil {
		f.t.Fatal(err)
	}
	nc, err := bus.Connect(id, bus.Target{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(nc.Close)
	return nc
}

// pretend gives a host the key of another.
func (f *farNATS) pretend(host, key string) {
	f.t.Helper()
	b, err := os.ReadFile(key)
	if err == nil {
		err = os.WriteFile(filepath.Join(f.dir, ".waybill", "nats", "host-"+host+".nk"), b, 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// serveUnreached starts the service where no server lets it in.
func (f *farNATS) serveUnreached() *service {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	s := &service{t: f.t, cmd: exec.Command(self, "serve", "-c", f.file), out: &bytes.Buffer{}, errs: &syncBuffer{}}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.errs
	if err := s.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	eventually(f.t, "the service is up", func() bool { return strings.Contains(s.errs.String(), "NATS at") })
	return s
}
