package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/events"
	"waybill/store"
)

func init() { testPeers["sleepy-peer"] = sleepyPeer }

// sleepyPeer is a fast-peer that takes a second to answer its first request.
func sleepyPeer([]string) int {
	in, out := io.Pipe()
	go func() {
		var first [1]byte
		n, err := os.Stdin.Read(first[:])
		<-time.After(time.Second)
		if err == nil {
			_, err = out.Write(first[:n])
		}
		if err == nil {
			_, err = io.Copy(out, os.Stdin)
		}
		_ = out.CloseWithError(err)
	}()
	return fastPeer(in, os.Stdout)
}

// sleepyPeers is how many peers BenchmarkStartup starts.
const sleepyPeers = 50

// BenchmarkStartup starts a service with 50 peers that take a second each to answer
// the probe, and measures until all have listed and their names are merged. With
// script the program of the peers is small, and it must be done in three seconds.
// With binary it is this one, and most of the time goes into hashing it for the pins:
// twice for each peer.
//
//	go test ./cmd/waybill -run xxx -bench Startup -benchtime 1x
func BenchmarkStartup(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("script", func(b *testing.B) { benchStartup(b, selfScript(b), 3*time.Second) })
	b.Run("binary", func(b *testing.B) { benchStartup(b, self, time.Minute) })
}

func benchStartup(b *testing.B, command string, most time.Duration) {
	for range b.N {
		b.StopTimer()
		a, file := sleepyWorld(b, command)
		f, err := config.Load(file)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began := time.Now()
		n, err := a.openNode(f)
		if err != nil {
			b.Fatal(err)
		}
		s := newServer(n)
		if err := s.start(); err != nil {
			b.Fatal(err)
		}
		started := time.Since(began)
		if err := s.engine.WaitSettled(a.ctx); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		b.StopTimer()
		b.ReportMetric(took.Seconds(), "s-to-all-listed")
		b.ReportMetric(started.Seconds(), "s-to-started")
		b.ReportMetric(lastSpawned(b, s.log.Reader()).Sub(began).Seconds(), "s-to-all-spawned")
		r, err := s.engine.Report(a.ctx)
		if err != nil || !r.AllReady() || len(r.Namespaces) != 1 || r.Namespaces[0].Tools != sleepyPeers {
			b.Errorf("%v: %+v", err, r.Namespaces)
		}
		if err := s.stop(); err != nil {
			b.Error(err)
		}
		if took > most {
			b.Errorf("it took %s, more than %s", took, most)
		}
		b.StartTimer()
	}
}

// lastSpawned is when the last process was started.
func lastSpawned(b *testing.B, r *store.Reader) (last time.Time) {
	b.Helper()
	records, err := r.Read(b.Context(), 0, 10_000)
	if err != nil {
		b.Fatal(err)
	}
	for _, rec := range records {
		_, e, err := events.Open(rec.Bytes)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := e.Data.(domain.PeerSpawned); ok {
			last = time.Unix(0, e.Time)
		}
	}
	return last
}

func sleepyWorld(b *testing.B, command string) (*app, string) {
	b.Helper()
	file := b.TempDir() + "/waybill.yaml"
	yaml := "nats: {listen: \"127.0.0.1:0\"}\nmany_peers_reason: it is measured\npeers:\n"
	for i := range sleepyPeers {
		yaml += fmt.Sprintf("  p%02d:\n    command: %q\n    args: [sleepy-peer]\n", i, command)
	}
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
