package stream

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/events"
	"waybill/harness/bus"
	"waybill/harness/bus/bustest"
)

// copyStage is a server and a connection that may publish.
func copyStage(t testing.TB) (bus.Credentials, *bus.Server, *nats.Conn) {
	t.Helper()
	c := writeCredentials(t, bus.LocalHost)
	s := startServer(t, c)
	return c, s, connect(t, c.Service(), bus.Target{Server: s})
}

// publishRaw puts an event into the stream behind the publisher's back, as a
// publisher does whose acknowledgement is lost.
func publishRaw(t testing.TB, nc *nats.Conn, e Event) {
	t.Helper()
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	must[*jetstream.PubAck](t)(js.PublishMsg(testContext(t), message(testLog, e)))
}

// publishForeign puts an event into the stream as a stranger would, without
// an id by which the server could tell it from another.
func publishForeign(t testing.TB, nc *nats.Conn, e Event) {
	t.Helper()
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	must[*jetstream.PubAck](t)(js.Publish(testContext(t), e.Subject, e.Bytes))
}

func createStream(t testing.TB, nc *nats.Conn, change func(*jetstream.StreamConfig)) {
	t.Helper()
	cfg := eventStream(publisherConfig())
	change(&cfg)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	must[jetstream.Stream](t)(js.CreateStream(testContext(t), cfg))
}

func unchanged(*jetstream.StreamConfig) {}

func TestTheStreamsSequenceIsTheLogs(t *testing.T) {
	for _, batch := range []int{1, 63, 512, 5000} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			_, _, nc := copyStage(t)
			cfg, log := publisherConfig(), newLog(1500)
			cfg.Batch = batch
			p := runPublisher(t, nc, cfg, log)
			p.caughtUp(t, 1500)
			log.grow(3)
			p.caughtUp(t, 1503)
			checkCopy(t, nc, log)
			if p.Position() != 1503 || p.Err() != nil {
				t.Errorf("position %d, error %v", p.Position(), p.Err())
			}
			p.stop(t)
			if p.result != nil {
				t.Errorf("ended with %v", p.result)
			}
		})
	}
}

// An event says in its headers which it is, of which kind and of which log, for who
// reads no further (CloudEvents over NATS, structured mode).
func TestAnEventSaysInItsHeadersWhatItIs(t *testing.T) {
	_, _, nc := copyStage(t)
	p := runPublisher(t, nc, publisherConfig(), newLog(3))
	p.caughtUp(t, 3)
	p.stop(t)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	s := must[jetstream.Stream](t)(js.Stream(testContext(t), bus.StreamName(testLog)))
	m := must[*jetstream.RawStreamMsg](t)(s.GetMsg(testContext(t), 2))
	for header, want := range map[string]string{"Nats-Msg-Id": "2", "Waybill-Seq": "2", "Waybill-Type": "call.routed", "Waybill-Log": testLog,
		"Content-Type": "application/cloudevents+json"} {
		if got := m.Header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

func TestARestartedPublisherGoesOnWhereTheStreamEnds(t *testing.T) {
	_, _, nc := copyStage(t)
	log := newLog(10)
	first := runPublisher(t, nc, publisherConfig(), log)
	first.caughtUp(t, 10)
	first.stop(t)
	log.grow(90)
	second := runPublisher(t, nc, publisherConfig(), log)
	second.caughtUp(t, 100)
	checkCopy(t, nc, log)
}

// The acknowledgement was lost and the events are there.
func TestALostAcknowledgementIsNotAFork(t *testing.T) {
	for _, count := range []int{1, 5, 200} {
		for _, there := range []int{1, count} {
			t.Run(fmt.Sprintf("%d of %d", there, count), func(t *testing.T) {
				_, _, nc := copyStage(t)
				log := newLog(3)
				p := runPublisher(t, nc, publisherConfig(), log)
				p.caughtUp(t, 3)
				for i := range there {
					publishRaw(t, nc, eventAt(int64(4+i), ""))
				}
				log.grow(count)
				p.caughtUp(t, int64(3+count))
				checkCopy(t, nc, log)
			})
		}
	}
}

// The pair of faults on a real socket: what the publisher sends arrives and
// the answer does not, or what it sends does not arrive.
func TestALostAnswerAndALostMessageEndTheSame(t *testing.T) {
	for _, count := range []int{1, 300} {
		for name, lost := range map[string]struct{ up, down bool }{
			"did happen":     {false, true},
			"did not happen": {true, false},
		} {
			t.Run(fmt.Sprintf("%d %s", count, name), func(t *testing.T) {
				c, s, direct := copyStage(t)
				w := newWire(t, s.ClientURL())
				cfg, log := publisherConfig(), newLog(5)
				cfg.AckWait = 100 * time.Millisecond
				p := runPublisher(t, connect(t, c.Service(), bus.Target{URL: w.URL()}), cfg, log)
				p.caughtUp(t, 5)
				w.Lose(lost.up, lost.down)
				log.grow(count)
				eventually(t, "failure noticed", func() bool { return p.Err() != nil })
				want := int64(5)
				if lost.down {
					want = 6 // the rest waits for the answer to the first
				}
				eventually(t, "as much in the stream as arrived", func() bool { return lastSeq(t, direct) == want })
				if p.Position() != 5 {
					t.Errorf("position %d without an acknowledgement", p.Position())
				}
				w.Lose(false, false)
				w.Cut()
				p.caughtUp(t, log.head())
				checkCopy(t, direct, log)
			})
		}
	}
}

func lastSeq(t *testing.T, nc *nats.Conn) int64 {
	t.Helper()
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	stream := must[jetstream.Stream](t)(js.Stream(testContext(t), bus.StreamName(testLog)))
	return int64(stream.CachedInfo().State.LastSeq)
}

func TestAServerThatGoesAndComesBackLosesNothing(t *testing.T) {
	c := writeCredentials(t, bus.LocalHost)
	store := t.TempDir()
	start := func() *bus.Server { return must[*bus.Server](t)(bus.StartServer(serverConfig(c, store))) }
	s := start()
	w := newWire(t, s.ClientURL())
	log := newLog(0)
	nc := connect(t, c.Service(), bus.Target{URL: w.URL()})
	p := runPublisher(t, nc, publisherConfig(), log)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // the log grows all the while
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				log.grow(4)
			}
		}
	}()
	for range 3 {
		at := p.Position() + 100
		eventually(t, "publishing", func() bool { return p.Position() > at })
		s.Close()
		at = log.head() + 100
		eventually(t, "the log goes on", func() bool { return log.head() > at })
		s = start()
		w.To(s.ClientURL())
	}
	t.Cleanup(s.Close)
	close(stop)
	receive(t, done)
	p.caughtUp(t, log.head())
	if p.Err() != nil {
		t.Errorf("error %v after recovery", p.Err())
	}
	checkCopy(t, nc, log)
}

func TestAPublisherMayBeginBeforeItsServer(t *testing.T) {
	c := writeCredentials(t)
	w := newWire(t, "127.0.0.1:1")
	nc := connect(t, c.Service(), bus.Target{URL: w.URL(), KeepTrying: true})
	log := newLog(100)
	p := runPublisher(t, nc, publisherConfig(), log)
	eventually(t, "failure noticed", func() bool { return p.Err() != nil })
	w.To(startServer(t, c).ClientURL())
	p.caughtUp(t, 100)
	checkCopy(t, nc, log)
}

func TestAForkStopsAndNamesTheSequence(t *testing.T) {
	for name, tc := range map[string]struct {
		streamed []Event // what the stream has at the start
		later    []Event // what somebody adds once the publisher follows
		log      int
		grow     int
		seq      int64
	}{
		"last differs": {streamed: []Event{eventAt(1, ""), eventAt(2, "x")}, log: 5, seq: 2},
		"differs from the second of many": {streamed: []Event{eventAt(1, ""), eventAt(2, "x"), eventAt(3, "x"), eventAt(4, "x"),
			eventAt(5, "x"), eventAt(6, "x")}, log: 9, seq: 2},
		"stream is longer":    {streamed: []Event{eventAt(1, ""), eventAt(2, ""), eventAt(3, "")}, log: 2, seq: 3},
		"log is empty":        {streamed: []Event{eventAt(1, "")}, log: 0, seq: 1},
		"while following":     {log: 3, later: []Event{eventAt(4, "x")}, grow: 2, seq: 4},
		"in a lost batch":     {log: 3, later: []Event{eventAt(4, ""), eventAt(5, "x"), eventAt(6, "")}, grow: 100, seq: 5},
		"a single among many": {log: 3, later: []Event{eventAt(4, "x"), eventAt(5, ""), eventAt(6, "")}, grow: 6, seq: 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, nc := copyStage(t)
			log := newLog(tc.log)
			if len(tc.streamed) > 0 {
				createStream(t, nc, unchanged)
			}
			for _, e := range tc.streamed {
				publishRaw(t, nc, e)
			}
			p := runPublisher(t, nc, publisherConfig(), log)
			if len(tc.later) > 0 {
				p.caughtUp(t, int64(tc.log))
			}
			for _, e := range tc.later {
				publishForeign(t, nc, e)
			}
			log.grow(tc.grow)
			err := p.ended(t)
			var fork *ForkError
			if !errors.Is(err, ErrForked) || !errors.As(err, &fork) || fork.Seq != tc.seq {
				t.Fatalf("ended with %v, want a fork at %d", err, tc.seq)
			}
			if want := (forkAt{tc.log + tc.grow, tc.streamed, tc.later}).digests(tc.seq); fork.Log != want[0] || fork.Copy != want[1] {
				t.Errorf("differs as %s and %s, want %s", fork.Log, fork.Copy, want)
			}
			if h := p.Health(log.head()); h.State != StateForked || h.Error != err.Error() || h.Lag != log.head()-h.Position {
				t.Errorf("health %+v", h)
			}
			if !errors.Is(p.Err(), ErrForked) || !errors.Is(p.CaughtUp(testContext(t), log.head()+1), ErrForked) {
				t.Errorf("the fork is not remembered: %v", p.Err())
			}
			want := int64(len(tc.streamed))
			if len(tc.later) > 0 {
				want = int64(tc.log + len(tc.later))
			}
			if got := lastSeq(t, nc); got != want {
				t.Errorf("something was published onto the fork: the stream ends at %d, want %d", got, want)
			}
		})
	}
}

// forkAt is what the log and the stream of a case hold.
type forkAt struct {
	log             int
	streamed, later []Event
}

// digests are those of the log and of the stream at seq, made another way.
func (f forkAt) digests(seq int64) (want [2]string) {
	if seq <= int64(f.log) {
		want[0] = fmt.Sprintf("%x", sha256.Sum256(eventAt(seq, "").Bytes))
	}
	for _, e := range slices.Concat(f.streamed, f.later) {
		if e.Seq == seq {
			want[1] = fmt.Sprintf("%x", sha256.Sum256(e.Bytes))
		}
	}
	return want
}

// A fork inside the memory for message ids is acknowledged as a duplicate.
func TestADuplicateIdWithOtherBytesIsAFork(t *testing.T) {
	o := &outlet{inbox: "_INBOX.service.a"}
	err := o.acknowledged(&nats.Msg{Subject: "_INBOX.service.a.7", Data: []byte(`{"stream":"S","seq":7,"duplicate":true}`)})
	if err == nil {
		t.Fatal("a duplicate was taken for an acknowledgement")
	}
	if err := o.acknowledged(&nats.Msg{Subject: "_INBOX.service.a.7", Data: []byte(`{"stream":"S","seq":7}`)}); err != nil {
		t.Fatal(err)
	}
	if err := o.acknowledged(&nats.Msg{Subject: "_INBOX.service.a.7", Data: []byte(`{"stream":"S","seq":8}`)}); err == nil {
		t.Fatal("another sequence was taken for an acknowledgement")
	}
}

func TestAStreamThatWasDeletedIsFilledAgain(t *testing.T) {
	nc := bustest.OpenServer(t)
	log := newLog(80)
	p := runPublisher(t, nc, publisherConfig(), log)
	p.caughtUp(t, 80)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	if err := js.DeleteStream(testContext(t), bus.StreamName(testLog)); err != nil {
		t.Fatal(err)
	}
	log.grow(1)
	p.caughtUp(t, 81)
	checkCopy(t, nc, log)
}

func TestTheStreamDeniesDeletingAndPurging(t *testing.T) {
	nc := bustest.OpenServer(t) // where nothing but the stream itself is in the way
	log := newLog(5)
	runPublisher(t, nc, publisherConfig(), log).caughtUp(t, 5)
	ctx := testContext(t)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	stream := must[jetstream.Stream](t)(js.Stream(ctx, bus.StreamName(testLog)))
	if err := stream.DeleteMsg(ctx, 2); err == nil {
		t.Error("a message was deleted")
	}
	if err := stream.SecureDeleteMsg(ctx, 2); err == nil {
		t.Error("a message was erased")
	}
	if err := stream.Purge(ctx); err == nil {
		t.Error("the stream was purged")
	}
	lax := eventStream(publisherConfig())
	lax.DenyDelete, lax.DenyPurge = false, false
	if _, err := js.UpdateStream(ctx, lax); err == nil {
		t.Error("the denial was lifted")
	}
	checkCopy(t, nc, log)
}

func TestAFullStreamWaitsAndKeepsWhatItHas(t *testing.T) {
	_, _, nc := copyStage(t)
	cfg, log := publisherConfig(), newLog(0)
	cfg.MaxBytes = 4 << 10
	p := runPublisher(t, nc, cfg, log)
	log.grow(200)
	eventually(t, "failure noticed", func() bool { return p.Err() != nil })
	last := lastSeq(t, nc)
	log.grow(10)
	if first := lastSeq(t, nc); first != last || last >= 200 {
		t.Errorf("the stream ends at %d and then %d", last, first)
	}
	for seq := int64(1); seq <= last; seq++ {
		js := must[jetstream.JetStream](t)(jetstream.New(nc))
		stream := must[jetstream.Stream](t)(js.Stream(testContext(t), bus.StreamName(testLog)))
		must[*jetstream.RawStreamMsg](t)(stream.GetMsg(testContext(t), uint64(seq)))
	}
	if err := p.CaughtUp(cancelled(), 200); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// badLog gives what no log may give.
type badLog struct {
	events []Event
}

func (l badLog) Wait(context.Context, int64) error { return nil }
func (l badLog) Read(context.Context, int64, int) ([]Event, error) {
	return l.events, nil
}

func TestAnEventThatCannotBePublishedStops(t *testing.T) {
	event := func(change func(*Event)) []Event {
		e := eventAt(1, "")
		change(&e)
		return []Event{e}
	}
	for name, events := range map[string][]Event{
		"sequence":     event(func(e *Event) { e.Seq = 2 }),
		"gap":          slices.Concat(event(func(*Event) {}), event(func(e *Event) { e.Seq = 3 })),
		"foreign log":  event(func(e *Event) { e.Subject = events.Subject(bus.DefaultPrefix, "other-00000000", "call.routed", "") }),
		"wildcard":     event(func(e *Event) { e.Subject += ".>" }),
		"line break":   event(func(e *Event) { e.Subject += "\r\nPUB x 0" }),
		"over one MiB": event(func(e *Event) { e.Bytes = make([]byte, bus.MaxMessage) }),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, nc := copyStage(t)
			if err := runPublisher(t, nc, publisherConfig(), badLog{events: events}).ended(t); !errors.Is(err, ErrUnpublishable) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// faultyLog fails its first reads.
type faultyLog struct {
	*memoryLog
	faults chan error
}

func (l faultyLog) Read(ctx context.Context, after int64, max int) ([]Event, error) {
	select {
	case err := <-l.faults:
		return nil, err
	default:
		return l.memoryLog.Read(ctx, after, max)
	}
}

func TestALogThatCannotBeReadNowIsReadLater(t *testing.T) {
	_, _, nc := copyStage(t)
	log := faultyLog{newLog(10), make(chan error, 2)}
	log.faults <- errors.New("busy")
	log.faults <- errors.New("busy")
	runPublisher(t, nc, publisherConfig(), log).caughtUp(t, 10)
	checkCopy(t, nc, log.memoryLog)
}

func TestWaitingOnAPublisherThatEndedFails(t *testing.T) {
	_, _, nc := copyStage(t)
	p := runPublisher(t, nc, publisherConfig(), newLog(1))
	p.caughtUp(t, 1)
	p.stop(t)
	if err := p.CaughtUp(testContext(t), 2); !errors.Is(err, ErrPublisherStopped) {
		t.Errorf("error %v", err)
	}
}

// The rest of a batch is on its way when somebody else's message takes a
// place in it: nothing of it may end up behind that message.
func TestNothingIsPublishedOntoAForkInsideABatch(t *testing.T) {
	_, _, nc := copyStage(t)
	createStream(t, nc, unchanged)
	p := must[*Publisher](t)(NewPublisher(nc, publisherConfig(), newLog(0)))
	o := must[*outlet](t)(p.newOutlet())
	defer o.close()
	if err := o.publish(testContext(t), []Event{eventAt(1, ""), eventAt(2, "")}); err != nil {
		t.Fatal(err)
	}
	publishForeign(t, nc, eventAt(3, "x"))
	for seq := int64(3); seq <= 6; seq++ {
		msg := message(testLog, eventAt(seq, ""))
		msg.Header.Set(jetstream.ExpectedLastMsgIDHeader, messageID(seq-1))
		if err := o.send(msg, seq); err != nil {
			t.Fatal(err)
		}
		if err := o.collect(testContext(t), 1); err == nil {
			t.Errorf("event %d was acknowledged", seq)
		}
	}
	if got := lastSeq(t, nc); got != 3 {
		t.Errorf("the stream ends at %d, want 3", got)
	}
}

func TestAnAuditorSeesEventsAsTheyArePublished(t *testing.T) {
	c, s, nc := copyStage(t)
	id := must[bus.Identity](t)(c.Reader("auditor"))
	client := must[*bus.Client](t)(bus.DialAs(testContext(t), id, bus.Target{Server: s, Logger: quiet}, bus.DefaultPrefix))
	defer client.Close()
	log := newLog(0)
	p := runPublisher(t, nc, publisherConfig(), log)
	p.caughtUp(t, 0)
	enough := errors.New("enough")
	var seen []bus.Published
	err := client.Events(testContext(t), testLog, "call.>", func() { log.grow(100) }, func(e bus.Published) error {
		if seen = append(seen, e); len(seen) == 100 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	for i, e := range seen {
		want := log.events[i]
		if e.Seq != want.Seq || e.Subject != want.Subject || string(e.Bytes) != string(want.Bytes) {
			t.Fatalf("event %d: %+v", i, e)
		}
	}
}
