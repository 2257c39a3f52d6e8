package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
	"waybill/harness/bus/bustest"
	"waybill/harness/bus/stream"
	"waybill/store"
)

// longest is how long a cluster may take to agree on something on a busy machine.
const longest = 90 * time.Second

// cluster starts servers that hold JetStream together, and makes all of them
// nats.url.
func (f *farNATS) cluster(servers int) {
	f.t.Helper()
	var routes []string
	var ports []int
	for range servers {
		ports = append(ports, bustest.Port(f.t))
		routes = append(routes, fmt.Sprintf("%q", fmt.Sprintf("nats://127.0.0.1:%d", ports[len(ports)-1])))
	}
	for i, port := range ports {
		dir := f.t.TempDir()
		config := fmt.Sprintf("server_name: n%d\ncluster { name: far, listen: \"127.0.0.1:%d\", routes: [%s] }\n", i, port, strings.Join(routes, ", "))
		f.nodes = append(f.nodes, bustest.StartProcess(f.t, dir, bustest.Port(f.t), config+stored(f.t)+f.accounts(dir)))
	}
	f.write(fmt.Sprintf("url: %q, replicas: %d", f.urls(), servers))
}

// leader is the server that leads the stream of events; nil while nobody does.
func (f *farNATS) leader(log string) *bustest.Process {
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Second)
	defer cancel()
	s, err := f.streams.Stream(ctx, bus.StreamName(log))
	if err != nil || s.CachedInfo().Cluster == nil {
		return nil
	}
	name := s.CachedInfo().Cluster.Leader
	for i, p := range f.nodes {
		if name == fmt.Sprintf("n%d", i) {
			return p
		}
	}
	return nil
}

// Three servers hold the copy. The one that leads it is killed under load and
// started again, twice. No event is lost, none is there twice, and their order is
// the log's; each call has its outcome, whether its reply came or not.
func TestAClusterLosesItsLeaderUnderLoad(t *testing.T) {
	begun := time.Now()
	f := newFar(t)
	f.cluster(3)
	f.streams = f.js(f.urls())
	within(t, longest, "the servers have a leader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.streams.AccountInfo(ctx)
		return err == nil
	})
	s := f.serve()
	within(t, longest, "the copy is made", func() bool { return f.health().Publisher.State == stream.StateOK })
	log := f.health().Log
	t.Logf("%v: the cluster holds a copy", time.Since(begun))
	l := f.callFrom(f.dial(localHost), f.dial(localHost), f.dial(localHost), f.dial(localHost))
	for range 2 {
		at := l.done.Load() + 100
		within(t, longest, "calls are answered", func() bool { return l.done.Load() > at })
		var leader *bustest.Process
		within(t, longest, "the stream has a leader", func() bool { leader = f.leader(log); return leader != nil })
		leader.Kill()
		at, head := l.done.Load()+300, f.head()
		within(t, longest, "two servers carry calls", func() bool { return l.done.Load() > at })
		within(t, longest, "two servers take events", func() bool { return f.health().Publisher.Position > head })
		t.Logf("%v: the other two carry on", time.Since(begun))
		leader.Start()
		within(t, longest, "the third has caught up", func() bool { return f.current(log, 3) })
		t.Logf("%v: the third has caught up", time.Since(begun))
	}
	l.stop()
	within(t, longest, "no call is under way", func() bool { return f.health().Inflight == 0 })
	events, found := f.copied(), f.settled(l)
	t.Logf("%v: %d events; %d replies came, %d did not, of which %d calls had run", time.Since(begun), events, len(l.had), len(l.lost), found)
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	within(t, longest, "the copies are whole", func() bool { return f.current(log, 3) })
	f.wantDense(log)
	f.audit()
}

func (f *farNATS) head() int64 {
	f.t.Helper()
	r, err := store.OpenReader(f.log())
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Close()
	h, err := r.Head(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return h.Size
}

// current reports whether so many servers hold all of the stream.
func (f *farNATS) current(log string, servers int) bool {
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Second)
	defer cancel()
	s, err := f.streams.Stream(ctx, bus.StreamName(log))
	if err != nil || s.CachedInfo().Cluster == nil || s.CachedInfo().Cluster.Leader == "" {
		return false
	}
	n := 1
	for _, p := range s.CachedInfo().Cluster.Replicas {
		if p.Current && !p.Offline && p.Lag == 0 {
			n++
		}
	}
	return n == servers
}

// wantDense reads the stream message by message: sequence n is event n of the log,
// and no id is there twice.
func (f *farNATS) wantDense(log string) {
	f.t.Helper()
	s, err := f.streams.Stream(f.t.Context(), bus.StreamName(log))
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := store.OpenReader(f.log())
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Close()
	state := s.CachedInfo().State
	records, err := r.Read(f.t.Context(), 0, int(state.LastSeq)+1)
	if err != nil || state.FirstSeq != 1 || state.Msgs != state.LastSeq || uint64(len(records)) < state.LastSeq {
		f.t.Fatalf("%+v beside %d events: %v", state, len(records), err)
	}
	consumer, err := s.OrderedConsumer(f.t.Context(), jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		f.t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		f.t.Fatal(err)
	}
	defer messages.Stop()
	seen := map[string]bool{}
	for seq := uint64(1); seq <= state.LastSeq; seq++ {
		m, err := messages.Next(jetstream.NextMaxWait(longest))
		if err != nil {
			f.t.Fatal(err)
		}
		id := m.Headers().Get(jetstream.MsgIDHeader)
		at, err := m.Metadata()
		if err != nil || at.Sequence.Stream != seq || !bytes.Equal(m.Data(), records[seq-1].Bytes) || seen[id] {
			f.t.Fatalf("message %d is %+v %q: %v", seq, at, m.Data(), err)
		}
		seen[id] = true
	}
}
