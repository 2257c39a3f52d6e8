package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waybill/domain"
	"waybill/events"
	"waybill/events/checkpoint"
	"waybill/harness/bus"
	"waybill/store"
	"waybill/store/payloads"
)

// finish starts the service once more, has it catch up and stop in good order, and
// holds the log, the copy, the checkpoint, the replies and the peers' side effects
// against each other.
func (c *crasher) finish() totals {
	c.t.Helper()
	s := c.serve()
	c.wantCopy()
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		c.t.Errorf("the clean stop ended with %d", code)
	}
	eventually(c.t, "every peer is gone", func() bool { return len(processesWith(c.t, c.dir)) == 0 })
	if n := c.audit().InFlight(); n != 0 {
		c.t.Errorf("%d calls have no end in the log", n)
	}
	r, err := store.OpenReader(c.log())
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	c.wantCheckpoint(r)
	return c.settled(r)
}

// wantCopy waits until the stream has caught up and compares all of it, byte for
// byte.
func (c *crasher) wantCopy() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run, err := c.data().Running()
	if err != nil || run == nil {
		c.t.Fatalf("the service is not found: %v", err)
	}
	creds, err := bus.LoadCredentials(run.Credentials)
	if err != nil {
		c.t.Fatal(err)
	}
	users, err := bus.ConnectUsers(creds, bus.Target{URL: run.URL})
	if err != nil {
		c.t.Fatal(err)
	}
	defer users.Close()
	js, err := jetstream.New(users.Events)
	if err != nil {
		c.t.Fatal(err)
	}
	var stream jetstream.Stream
	eventually(c.t, "the stream is there", func() bool { // where a cut took it, it is made again
		stream, err = js.Stream(ctx, bus.StreamName(run.Log))
		return !errors.Is(err, jetstream.ErrStreamNotFound)
	})
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := store.OpenReader(c.log())
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	var head store.Head
	eventually(c.t, "the stream has caught up", func() bool {
		if head, err = r.Head(ctx); err != nil {
			c.t.Fatal(err)
		}
		info, err := stream.Info(ctx)
		return err == nil && info.State.LastSeq >= uint64(head.Size)
	})
	c.wantPublishedHead(ctx, js, r)
	for _, rec := range c.records(r) {
		if rec.Seq > head.Size {
			break
		}
		msg, err := stream.GetMsg(ctx, uint64(rec.Seq))
		if err != nil || !bytes.Equal(msg.Data, rec.Bytes) || msg.Subject != events.Subject(prefix, run.Log, rec.Type, rec.Peer) {
			c.t.Fatalf("event %d is not in the stream as it is in the log: %v", rec.Seq, err)
		}
	}
}

// wantPublishedHead waits until the newest checkpoint of the log is the newest in
// the stream of checkpoints.
func (c *crasher) wantPublishedHead(ctx context.Context, js jetstream.JetStream, r *store.Reader) {
	c.t.Helper()
	var stream jetstream.Stream
	eventually(c.t, "the stream of checkpoints is there", func() (found bool) {
		var err error
		if stream, err = js.Stream(ctx, bus.CheckpointStreamName(r.ID())); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			c.t.Fatal(err)
		}
		return err == nil
	})
	eventually(c.t, "the newest checkpoint is published", func() bool {
		last, err := r.LastCheckpoint(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		msg, err := stream.GetLastMsgForSubject(ctx, bus.CheckpointSubject(prefix, r.ID()))
		return err == nil && bytes.Equal(msg.Data, last.Note)
	})
}

func (c *crasher) records(r *store.Reader) (all []store.Record) {
	c.t.Helper()
	for {
		some, err := r.Read(context.Background(), int64(len(all)), 1000)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

// wantCheckpoint holds the file to the log: after a clean stop it is the last one
// stored, and of the head.
func (c *crasher) wantCheckpoint(r *store.Reader) {
	c.t.Helper()
	ctx := context.Background()
	b, err := os.ReadFile(c.data().CheckpointFile())
	if err != nil {
		c.t.Fatal(err)
	}
	h, err := checkpoint.Open(b, r.PublicKey())
	if err != nil {
		c.t.Fatal(err)
	}
	head, err := r.Head(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	last, err := r.LastCheckpoint(ctx)
	if err != nil || !bytes.Equal(last.Note, b) || h.Log != r.ID() || h.Size != head.Size || h.Root != head.Root {
		c.t.Errorf("the file has %d events of %s, the log a checkpoint of %d and %d events: %v", h.Size, h.Log, last.Size, head.Size, err)
	}
	if left, _ := filepath.Glob(filepath.Join(string(c.data()), "*.new")); len(left) > 0 {
		c.t.Errorf("left over: %q", left)
	}
}

// story is what the log says of one call.
type story struct {
	seqs                            []int64
	arguments, result               int64 // seqs of the events that name them
	received, routed, resent, ended int
	status, code                    string
	ran                             domain.Ran
}

func (c *crasher) stories(records []store.Record) map[string]*story {
	c.t.Helper()
	all := map[string]*story{}
	for i, rec := range records {
		_, e, err := events.Open(rec.Bytes)
		if err != nil || rec.Seq != int64(i)+1 {
			c.t.Fatalf("event %d is %d: %v", i+1, rec.Seq, err)
		}
		key, isCall := strings.CutPrefix(e.Call(), localHost+"/")
		if !isCall {
			continue
		}
		s := all[key]
		if s == nil {
			s = &story{}
			all[key] = s
		}
		s.seqs = append(s.seqs, e.Seq)
		s.take(e)
	}
	return all
}

func (s *story) take(e domain.Event) {
	switch d := e.Data.(type) {
	case domain.CallReceived:
		s.received++
		s.arguments = e.Seq
	case domain.CallRouted:
		s.routed++
	case domain.CallAnswered:
		s.result = e.Seq
	case domain.CallResent:
		s.resent++
	case domain.CallRefused:
		s.ended++
		s.status, s.code, s.ran = string(domain.StatusRefused), string(d.Code), domain.RanNo
	case domain.CallSettled:
		s.ended++
		s.status, s.code, s.ran = string(d.Status), string(d.Code), d.Ran
	}
}

// wantKept looks for the payloads of each call that was sent.
func (c *crasher) wantKept(log string, stories map[string]*story) {
	c.t.Helper()
	p, err := payloads.OpenReader(c.data().PayloadsFile(), log)
	if err != nil {
		c.t.Fatal(err)
	}
	defer p.Close()
	want := func(key string, seq int64, role, bytes string) {
		x, ok, err := p.Read(context.Background(), seq, role)
		if err != nil || !ok || bytes != "" && string(x.Bytes) != bytes {
			c.t.Errorf("%s: of event %d the %s %q are kept, want %q: %v, %v", key, seq, role, x.Bytes, bytes, ok, err)
		}
	}
	for key, s := range stories {
		if s.routed > 0 {
			want(key, s.arguments, payloads.Arguments, fmt.Sprintf(`{"key":%q}`, key))
		}
		if s.result > 0 {
			want(key, s.result, payloads.Result, string(c.replies[key].Result))
		}
	}
}

// charges counts the side effects at the peers, by key.
func (c *crasher) charges() map[string]int {
	c.t.Helper()
	n := map[string]int{}
	for _, peer := range []string{"a", "b"}[:crashPeers] {
		b, err := os.ReadFile(filepath.Join(c.dir, peer+".charged"))
		if err != nil {
			c.t.Fatal(err)
		}
		for key := range strings.Lines(string(b)) {
			n[strings.TrimSpace(key)]++
		}
	}
	return n
}

// settled holds replies, log and side effects against each other.
func (c *crasher) settled(r *store.Reader) totals {
	c.t.Helper()
	records := c.records(r)
	stories, charges := c.stories(records), c.charges()
	c.wantKept(r.ID(), stories)
	sum := totals{kills: c.kills, calls: c.asked, events: int64(len(records))}
	for key, s := range stories {
		if s.received != 1 || s.ended != 1 || s.routed > 1 || s.resent > 0 {
			c.t.Errorf("%s: %+v", key, s)
		}
		if n := charges[key]; s.ran == domain.RanYes && n != 1 || s.ran == domain.RanNo && n != 0 {
			c.t.Errorf("%s ended %s, ran %s, and was charged %d times", key, s.status, s.ran, n)
		}
		if s.code == string(domain.CodeServiceRestarted) {
			sum.under++
		}
	}
	for key, d := range c.replies {
		if len(d.Seqs) == 0 {
			continue // turned away, and said so
		}
		sum.acknowledged++
		s := stories[key]
		if s == nil || s.status != d.Status || string(s.ran) != d.Ran || !slices.Equal(s.seqs, d.Seqs) {
			sum.lost++
			c.t.Errorf("%s was told %s, ran %s, events %v; the log says %+v", key, d.Status, d.Ran, d.Seqs, s)
		}
	}
	for key, n := range charges {
		sum.charged++
		if n > 1 {
			sum.doubled++
		}
		if s := stories[key]; s == nil || s.routed == 0 {
			c.t.Errorf("%s was charged, and the log does not have it as routed: %+v", key, s)
		}
	}
	return sum
}
