package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"waybill/cmd/waybill/config"
	"waybill/harness"
	"waybill/harness/bus"
)

const benchArguments = `{"owner":"acme","repo":"widgets","title":"hello","body":"` +
	"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz" +
	"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz" + `"}`

// fastPeer is a modern server that answers as fast as a Go program can.
func fastPeer(in io.Reader, out io.Writer) int {
	r, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriterSize(out, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m rpc
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "server/discover":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`, m.ID)
		case "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}}`, m.ID)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[],"structuredContent":%s}}`, m.ID, m.Params.Arguments)
		}
		_ = w.WriteByte('\n')
		if r.Buffered() == 0 {
			_ = w.Flush()
		}
	}
}

// callers runs b.N calls from n callers at once.
func callers(b *testing.B, n int, call func() error) {
	var wait sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	for range n {
		wait.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkCall makes the same call three ways: direct is a bare pipe to the
// peer without any record; loop is the service without NATS; nats is the whole
// way a host goes.
func BenchmarkCall(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run("direct/"+strconv.Itoa(n), func(b *testing.B) { benchDirect(b, n) })
		b.Run("loop/"+strconv.Itoa(n), func(b *testing.B) { benchService(b, n, false) })
		b.Run("nats/"+strconv.Itoa(n), func(b *testing.B) { benchService(b, n, true) })
	}
}

func benchDirect(b *testing.B, n int) {
	p := startPipe(b)
	defer p.close()
	callers(b, n, p.call)
}

// pipe is the least a client can do: ids, a pending table, one writer.
type pipe struct {
	cmd   *exec.Cmd
	write chan []byte
	mu    sync.Mutex
	next  int64
	wait  map[int64]chan struct{}
	ended sync.WaitGroup
}

func startPipe(b *testing.B) *pipe {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p := &pipe{cmd: exec.Command(self, "fast-peer"), write: make(chan []byte, 1024), wait: map[int64]chan struct{}{}}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p.ended.Go(func() { p.writes(in) })
	p.ended.Go(func() { p.reads(out) })
	return p
}

func (p *pipe) writes(w io.WriteCloser) {
	defer w.Close()
	buf := bufio.NewWriterSize(w, 1<<16)
	for line := range p.write {
		_, _ = buf.Write(line)
		if len(p.write) == 0 {
			_ = buf.Flush()
		}
	}
}

func (p *pipe) reads(r io.Reader) {
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct{ ID int64 }
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		p.mu.Lock()
		done := p.wait[m.ID]
		delete(p.wait, m.ID)
		p.mu.Unlock()
		close(done)
	}
}

func (p *pipe) call() error {
	done := make(chan struct{})
	p.mu.Lock()
	p.next++
	id := p.next
	p.wait[id] = done
	p.mu.Unlock()
	p.write <- fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":%s}}`+"\n", id, benchArguments)
	<-done
	return nil
}

func (p *pipe) close() {
	close(p.write)
	_ = p.cmd.Wait()
	p.ended.Wait()
}

func benchService(b *testing.B, n int, overNATS bool) {
	a, file := benchWorld(b)
	f, err := config.Load(file)
	if err != nil {
		b.Fatal(err)
	}
	node, err := a.openNode(f)
	if err != nil {
		b.Fatal(err)
	}
	s := newServer(node)
	if err := s.start(); err != nil {
		b.Fatal(err)
	}
	if err := s.engine.WaitSettled(a.ctx); err != nil {
		b.Fatal(err)
	}
	call := loopCall(s.engine)
	if overNATS {
		c, err := bus.Dial(a.ctx, s.url(), credentialsDir(s.file), localHost, prefix)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		call = natsCall(c)
	}
	callers(b, n, call)
	roots, err := s.log.Reader().Roots(a.ctx, 0, 1<<30)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(s.log.Head().Size)/float64(len(roots)), "events/commit")
	if err := s.stop(); err != nil {
		b.Error(err)
	}
}

var benchRequest = []byte(`{"tool":"echo","arguments":` + benchArguments + `}`)

func loopCall(e *harness.Engine) func() error {
	return func() error {
		got := make(chan harness.Reply, 1)
		e.Loop.Submit("local", benchRequest, func(r harness.Reply) { got <- r })
		if r := <-got; r.Status != "complete" {
			return fmt.Errorf("%s", r.Encode())
		}
		return nil
	}
}

func natsCall(c *bus.Client) func() error {
	return func() error {
		reply, code, err := c.Request(context.Background(), "call", benchRequest)
		if err != nil || code != "" {
			return fmt.Errorf("%s: %w", reply, err)
		}
		return nil
	}
}

func benchWorld(b *testing.B) (*app, string) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	file := b.TempDir() + "/waybill.yaml"
	yaml := fmt.Sprintf("nats: {listen: \"127.0.0.1:0\"}\npeers:\n  fast:\n    command: %q\n    args: [fast-peer]\n", self)
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	for _, c := range []string{"init", "pin"} {
		if code := run([]string{c, "-c", file}, &out, &out); code != exitDone {
			b.Fatalf("%s: %s", c, out.String())
		}
	}
	return newApp(b.Context(), &out, &out, file), file
}
