package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/events"
	"waybill/harness/bus"
)

// mixed are the types of the events of a mixedLog, in turn: more public ones than one
// subject has, and others between them.
var mixed = []string{"era.determined", "call.routed", "namespace.merged", "collision.resolved", "call.settled", "name.assigned", "peer.exited", "list.read"}

// isPublic says what dashboards may read, in the words of the design.
func isPublic(kind string) bool {
	noun, _, _ := strings.Cut(kind, ".")
	return noun == "era" || noun == "collision" || noun == "name" || noun == "namespace" || noun == "peer"
}

// mixedLog has events of all sorts.
func mixedLog(n int) *memoryLog {
	l := newLog(0)
	for seq := range int64(n) {
		e := eventAt(seq+1, "")
		e.Subject = events.Subject(bus.DefaultPrefix, testLog, mixed[seq%int64(len(mixed))], "")
		l.events = append(l.events, e)
	}
	return l
}

func publicSeqs(n int) []int64 {
	var list []int64
	for seq := range int64(n) {
		if isPublic(mixed[seq%int64(len(mixed))]) {
			list = append(list, seq+1)
		}
	}
	return list
}

// stage is a server with the streams of a log, and who keeps them.
type stage struct {
	creds     bus.Credentials
	to        bus.Target
	log       *memoryLog
	service   *nats.Conn
	curator   *nats.Conn
	publisher *running
	public    *Public
}

func publicConfig() PublicConfig {
	return PublicConfig{Prefix: bus.DefaultPrefix, LogID: testLog, Logger: quiet, Look: 10 * time.Millisecond}
}

func newStage(t testing.TB, n int) *stage {
	t.Helper()
	c := writeCredentials(t, "local")
	s := startServer(t, c)
	return stageOn(t, c, inside(s), n)
}

func stageOn(t testing.TB, c bus.Credentials, to bus.Target, n int) *stage {
	t.Helper()
	g := &stage{creds: c, to: to, log: mixedLog(n), service: connect(t, c.Service(), to), curator: connect(t, c.Curator(), to)}
	g.publisher = runPublisher(t, g.service, publisherConfig(), g.log)
	heads := must[*Checkpoints](t)(NewCheckpoints(g.service, checkpointsConfig()))
	if err := heads.Publish(headOf(1)); err != nil {
		t.Fatal(err)
	}
	must[*Keeper](t)(NewKeeper(g.service, bus.DefaultPrefix, quiet, bus.StreamName(testLog), bus.CheckpointStreamName(testLog)))
	must[*Keeper](t)(NewKeeper(g.curator, bus.DefaultPrefix, quiet, bus.PublicStreamName(testLog)))
	g.publisher.caughtUp(t, int64(n))
	cfg := publicConfig()
	cfg.Copy = g.publisher.Made
	g.public = runPublic(t, g.curator, cfg)
	if list := publicSeqs(n); len(list) > 0 {
		eventually(t, "the public stream filled", func() bool { return g.public.Health().Position == list[len(list)-1] })
	}
	return g
}

func runPublic(t testing.TB, nc *nats.Conn, cfg PublicConfig) *Public {
	t.Helper()
	p := must[*Public](t)(NewPublic(nc, cfg))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := receive(t, done); err != nil {
			t.Errorf("the public stream ended with %v", err)
		}
	})
	return p
}

func (g *stage) reader(t testing.TB, name string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc := connect(t, must[bus.Identity](t)(g.creds.Reader(name)), g.to)
	return nc, must[jetstream.JetStream](t)(jetstream.New(nc))
}

// readAll reads a stream to its end with a consumer of its own.
func readAll(t testing.TB, js jetstream.JetStream, name string, cfg jetstream.ConsumerConfig) []jetstream.Msg {
	t.Helper()
	ctx := testContext(t)
	stream := must[jetstream.Stream](t)(js.Stream(ctx, name))
	consumer := must[jetstream.Consumer](t)(stream.CreateConsumer(ctx, cfg))
	var list []jetstream.Msg
	for pending := consumer.CachedInfo().NumPending; pending > 0; {
		msg, err := consumer.Next(jetstream.FetchMaxWait(5 * time.Second))
		if err != nil {
			t.Fatalf("after %d messages: %v", len(list), err)
		}
		if cfg.AckPolicy == jetstream.AckExplicitPolicy {
			if err := msg.DoubleAck(ctx); err != nil {
				t.Fatal(err)
			}
		}
		pending = must[*jetstream.MsgMetadata](t)(msg.Metadata()).NumPending
		list = append(list, msg)
	}
	return list
}

func TestADashboardReadsThePublicEventsInOrder(t *testing.T) {
	g := newStage(t, 100)
	_, js := g.reader(t, "dashboard")
	want := publicSeqs(100)
	got := readAll(t, js, bus.PublicStreamName(testLog), jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy})
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i, msg := range got {
		e := g.log.events[want[i]-1]
		if msg.Subject() != e.Subject || string(msg.Data()) != string(e.Bytes) || msg.Headers().Get("Nats-Msg-Id") != fmt.Sprint(e.Seq) {
			t.Errorf("message %d is %s %s %v, want that of event %d", i, msg.Subject(), msg.Data(), msg.Headers(), e.Seq)
		}
	}
	if h := g.public.Health(); h.State != StateOK || h.Lag != 0 || h.Error != "" {
		t.Errorf("%+v", h)
	}
}

func TestADashboardCanUseConsumersOfEveryKindThatIsPulledFrom(t *testing.T) {
	g := newStage(t, 16)
	_, js := g.reader(t, "dashboard")
	root := bus.EventRoot(bus.DefaultPrefix, testLog)
	for name, tc := range map[string]struct {
		cfg  jetstream.ConsumerConfig
		want int
	}{
		"from a sequence": {jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: 8}, 3},
		"one subject":     {jetstream.ConsumerConfig{FilterSubject: root + "era.>"}, 2},
		"many subjects":   {jetstream.ConsumerConfig{FilterSubjects: []string{root + "era.>", root + "peer.>"}}, 4},
		"durable":         {jetstream.ConsumerConfig{Durable: "mine", AckPolicy: jetstream.AckExplicitPolicy}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readAll(t, js, bus.PublicStreamName(testLog), tc.cfg); len(got) != tc.want {
				t.Errorf("%d messages, want %d", len(got), tc.want)
			}
		})
	}
	ctx := testContext(t)
	s := must[jetstream.Stream](t)(js.Stream(ctx, bus.PublicStreamName(testLog)))
	ordered := must[jetstream.Consumer](t)(s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{}))
	messages := must[jetstream.MessagesContext](t)(ordered.Messages())
	defer messages.Stop()
	for range 10 {
		must[jetstream.Msg](t)(messages.Next(jetstream.NextContext(ctx)))
	}
	if got := must[*jetstream.RawStreamMsg](t)(s.GetLastMsgForSubject(ctx, root+"era.>")); got.Sequence != 6 {
		t.Errorf("the last era is message %d", got.Sequence)
	}
}

// Before there is a copy of the log, there is nothing to fill the stream from.
func TestThePublicStreamWaitsForTheCopy(t *testing.T) {
	c := writeCredentials(t)
	to := inside(startServer(t, c))
	cfg := publicConfig()
	there := make(chan struct{})
	cfg.After = func(ctx context.Context) error {
		select {
		case <-there:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	nc := connect(t, c.Curator(), to)
	p := runPublic(t, nc, cfg)
	log := mixedLog(8)
	runPublisher(t, connect(t, c.Service(), to), publisherConfig(), log).caughtUp(t, 8)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	if _, err := js.Stream(testContext(t), bus.PublicStreamName(testLog)); !errors.Is(err, jetstream.ErrStreamNotFound) || p.Health().State != StateBehind {
		t.Errorf("%v, %+v", err, p.Health())
	}
	close(there)
	eventually(t, "all is well", func() bool { h := p.Health(); return h.State == StateOK && h.Position == 7 && h.Error == "" })
}

// Without the copy the server says nothing for a while, and then that is a fault.
func TestWhatKeepsThePublicStreamBehindIsSaid(t *testing.T) {
	for what, tc := range map[string]struct {
		info  jetstream.StreamSourceInfo
		state string
		said  string
	}{
		"well":     {jetstream.StreamSourceInfo{Active: time.Second, Lag: 3}, StateOK, ""},
		"behind":   {jetstream.StreamSourceInfo{Active: time.Second, Lag: publicLag + 1}, StateBehind, ""},
		"never":    {jetstream.StreamSourceInfo{Active: -1}, StateBehind, "does not fill it"},
		"no more":  {jetstream.StreamSourceInfo{Active: publicQuiet + 1}, StateBehind, "does not fill it"},
		"a reason": {jetstream.StreamSourceInfo{Active: 1, Error: &jetstream.APIError{Description: "stream not found"}}, StateBehind, "stream not found"},
	} {
		h, err := healthOf(&tc.info)
		if h.State != tc.state || (err == nil) != (tc.said == "") || err != nil && !strings.Contains(err.Error(), tc.said) {
			t.Errorf("%s: %+v, %v", what, h, err)
		}
	}
	c := writeCredentials(t)
	p := must[*Public](t)(NewPublic(connect(t, c.Curator(), inside(startServer(t, c))), publicConfig()))
	p.well = time.Now()
	if p.note(PublicHealth{State: StateBehind}, errIdle); p.Health().Error != "" {
		t.Errorf("too early: %+v", p.Health())
	}
	p.well = time.Now().Add(-publicQuiet)
	if p.note(PublicHealth{State: StateBehind}, errIdle); p.Health().Error != errIdle.Error() {
		t.Errorf("too late: %+v", p.Health())
	}
	if p.note(PublicHealth{State: StateOK, Position: 4}, nil); p.Health() != (PublicHealth{State: StateOK, Position: 4}) || time.Since(p.well) > publicQuiet {
		t.Errorf("well again: %+v", p.Health())
	}
}

func TestAPublicStreamWithOtherSettingsIsRefusedByName(t *testing.T) {
	for setting, change := range map[string]func(*jetstream.StreamConfig){
		"subjects":   func(c *jetstream.StreamConfig) { c.Subjects = []string{"waybill.v1.events.>"} },
		"deny_purge": func(c *jetstream.StreamConfig) { c.DenyPurge = false },
		"max_age":    func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"discard":    func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"sources": func(c *jetstream.StreamConfig) {
			s := *c.Sources[0]
			s.SubjectTransforms = append(s.SubjectTransforms[:len(s.SubjectTransforms):len(s.SubjectTransforms)],
				jetstream.SubjectTransformConfig{Source: bus.EventRoot(bus.DefaultPrefix, testLog) + "call.>"})
			c.Sources = []*jetstream.StreamSource{&s}
		},
	} {
		t.Run(setting, func(t *testing.T) {
			c := writeCredentials(t)
			nc := connect(t, c.Curator(), inside(startServer(t, c)))
			cfg := publicStream(publicConfig())
			change(&cfg)
			js := must[jetstream.JetStream](t)(jetstream.New(nc))
			must[jetstream.Stream](t)(js.CreateStream(testContext(t), cfg))
			p := must[*Public](t)(NewPublic(nc, publicConfig()))
			var settings *SettingsError
			if err := p.Run(testContext(t)); !errors.As(err, &settings) || len(settings.Differences) != 1 || !strings.HasPrefix(settings.Differences[0], setting) {
				t.Errorf("ended with %v", err)
			}
			if h := p.Health(); h.State != StateStopped || h.Error == "" {
				t.Errorf("%+v", h)
			}
		})
	}
}

// The server is stopped and comes back with what it had.
func TestThePublicStreamGoesOnAfterTheServerWasAway(t *testing.T) {
	c := writeCredentials(t, "local")
	store := t.TempDir()
	s := must[*bus.Server](t)(bus.StartServer(serverConfig(c, store)))
	w := newWire(t, strings.TrimPrefix(s.ClientURL(), "nats://"))
	g := stageOn(t, c, bus.Target{URL: w.URL(), KeepTrying: true}, 16)
	s.Close()
	again := must[*bus.Server](t)(bus.StartServer(serverConfig(c, store)))
	t.Cleanup(again.Close)
	w.To(again.ClientURL())
	more := mixedLog(32).events[16:]
	g.log.mu.Lock()
	g.log.events = append(g.log.events, more...)
	g.log.mu.Unlock()
	g.log.grow(0)
	g.publisher.caughtUp(t, 32)
	eventually(t, "the public stream filled", func() bool { h := g.public.Health(); return h.Position == 31 && h.State == StateOK })
	_, js := g.reader(t, "dashboard")
	if got := readAll(t, js, bus.PublicStreamName(testLog), jetstream.ConsumerConfig{}); len(got) != 20 {
		t.Errorf("%d messages", len(got))
	}
}

// More than the server sends without a word from who receives it.
func TestTheServerIsToldThatItMayGoOnFillingThePublicStream(t *testing.T) {
	g := newStage(t, 8)
	more := make([]Event, 1000)
	for i := range more {
		more[i] = Event{Seq: int64(9 + i), Subject: events.Subject(bus.DefaultPrefix, testLog, "era.determined", "a"), Bytes: bytes.Repeat([]byte("x"), 8000)}
	}
	g.log.mu.Lock()
	g.log.events = append(g.log.events, more...)
	g.log.mu.Unlock()
	g.log.grow(0)
	g.publisher.caughtUp(t, 1008)
	eventually(t, "the public stream filled", func() bool { return g.public.Health().Position == 1008 })
}
