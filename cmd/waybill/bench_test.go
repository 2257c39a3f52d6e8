package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"waybill/cmd/waybill/config"
	"waybill/harness"
	"waybill/harness/bench"
	"waybill/harness/bus"
)

// fastPeer is the echo server of waybill bench.
func fastPeer(in io.Reader, out io.Writer) int {
	if bench.Echo(in, out) != nil {
		return 1
	}
	return 0
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
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c, err := bench.StartChild(self, "fast-peer")
	if err != nil {
		b.Fatal(err)
	}
	callers(b, n, c.Call)
	if err := c.Close(); err != nil {
		b.Error(err)
	}
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
		over := benchCall(c)
		call = func() error { return over(a.ctx, 0) }
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
