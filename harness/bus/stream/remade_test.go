package stream

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
)

// removeCopy removes the copy of the log while its server runs. No user may ask for
// that; an answer of JetStream inside the account may.
func removeCopy(t testing.TB, nc *nats.Conn) {
	t.Helper()
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	name := bus.StreamName(testLog)
	s := must[jetstream.Stream](t)(js.Stream(testContext(t), name))
	must[jetstream.Consumer](t)(s.CreateConsumer(testContext(t), jetstream.ConsumerConfig{Durable: "gone", FilterSubject: "none"}))
	if err := nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+name+".gone", "$JS.API.STREAM.DELETE."+name, []byte(`{"no_wait":true}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the copy removed", func() bool {
		now, err := js.Stream(testContext(t), name)
		return err != nil || !now.CachedInfo().Created.Equal(s.CachedInfo().Created)
	})
}

// publicIDs are the ids of the messages of the public stream, in order, and the copy
// that it says it is filled from.
func (g *stage) publicIDs(t testing.TB) (ids []int64, from string) {
	t.Helper()
	js := must[jetstream.JetStream](t)(jetstream.New(g.curator))
	s, err := js.Stream(testContext(t), bus.PublicStreamName(testLog))
	if err != nil {
		return nil, ""
	}
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		msg, err := s.GetMsg(testContext(t), seq)
		if err != nil {
			return nil, "" // it is made anew just now
		}
		ids = append(ids, must[int64](t)(strconv.ParseInt(msg.Header.Get("Nats-Msg-Id"), 10, 64)))
	}
	return ids, s.CachedInfo().Config.Metadata[copyKey]
}

// onceEach waits until the public stream is filled from the copy that there is, and
// expects each public event of the log in it, once and in order.
func (g *stage) onceEach(t testing.TB, n int, not string) (from string) {
	t.Helper()
	var got []int64
	eventually(t, "the public stream filled from the new copy", func() bool {
		made, err := g.publisher.Made(testContext(t))
		got, from = g.publicIDs(t)
		return err == nil && from != not && from == made.UTC().Format(time.RFC3339Nano) && len(got) >= len(publicSeqs(n))
	})
	eventually(t, "all well", func() bool { h := g.public.Health(); return h.State == StateOK && h.Lag == 0 && h.Error == "" })
	if got, _ = g.publicIDs(t); !slices.Equal(got, publicSeqs(n)) {
		t.Errorf("the public stream has %v, want %v", got, publicSeqs(n))
	}
	return from
}

func TestThePublicStreamIsFilledOnceWhereTheCopyIsMadeAnewWhileTheServerRuns(t *testing.T) {
	g := newStage(t, 40)
	from := g.onceEach(t, 40, "")
	for range 2 {
		removeCopy(t, g.service)
		from = g.onceEach(t, 40, from)
	}
	_, js := g.reader(t, "dashboard")
	if got := readAll(t, js, bus.PublicStreamName(testLog), jetstream.ConsumerConfig{}); len(got) != len(publicSeqs(40)) {
		t.Errorf("%d messages", len(got))
	}
}

func TestThePublicStreamIsFilledOnceWhereTheCopyIsGoneAfterARestart(t *testing.T) {
	c := writeCredentials(t, "local")
	store := t.TempDir()
	s := must[*bus.Server](t)(bus.StartServer(serverConfig(c, store)))
	w := newWire(t, strings.TrimPrefix(s.ClientURL(), "nats://"))
	g := stageOn(t, c, bus.Target{URL: w.URL(), KeepTrying: true}, 40)
	from := g.onceEach(t, 40, "")
	s.Close()
	if err := os.RemoveAll(filepath.Join(store, "jetstream", "WAYBILL_LOG")); err != nil {
		t.Fatal(err)
	}
	again := must[*bus.Server](t)(bus.StartServer(serverConfig(c, store)))
	t.Cleanup(again.Close)
	w.To(again.ClientURL())
	from = g.onceEach(t, 40, from)
	if now := g.onceEach(t, 40, ""); now != from {
		t.Errorf("made anew from %s, and again from %s", from, now)
	}
}

// One that does not say which copy it was filled from may have been filled twice.
func TestAPublicStreamThatDoesNotSayItsCopyIsMadeAnew(t *testing.T) {
	c := writeCredentials(t, "local")
	to := inside(startServer(t, c))
	js := must[jetstream.JetStream](t)(jetstream.New(connect(t, c.Curator(), to)))
	old := must[jetstream.Stream](t)(js.CreateStream(testContext(t), publicStream(publicConfig())))
	g := stageOn(t, c, to, 16)
	g.onceEach(t, 16, "")
	now := must[jetstream.Stream](t)(js.Stream(testContext(t), bus.PublicStreamName(testLog)))
	if now.CachedInfo().Created.Equal(old.CachedInfo().Created) {
		t.Error("it is the one from before")
	}
	made := now.CachedInfo().Created
	must[PublicHealth](t)(g.public.look(testContext(t)))
	if again := must[jetstream.Stream](t)(js.Stream(testContext(t), bus.PublicStreamName(testLog))); !again.CachedInfo().Created.Equal(made) {
		t.Error("it was made anew without a reason")
	}
}

func TestACopyThatIsRemovedWhileNothingHappensIsMadeAgain(t *testing.T) {
	_, _, nc := copyStage(t)
	cfg, log := publisherConfig(), newLog(10)
	cfg.Look = 20 * time.Millisecond
	p := runPublisher(t, nc, cfg, log)
	p.caughtUp(t, 10)
	before := must[time.Time](t)(p.Made(testContext(t)))
	removeCopy(t, nc)
	eventually(t, "published again", func() bool {
		made, err := p.Made(testContext(t))
		return err == nil && !made.Equal(before) && lastSeq(t, nc) == 10 && p.Health(10).State == StateOK
	})
	checkCopy(t, nc, log)
	now := must[time.Time](t)(p.Made(testContext(t)))
	if err := p.unchanged(testContext(t), now); err != nil {
		t.Errorf("the new one: %v", err)
	}
	wantRefused(t, "the one from before", p.unchanged(testContext(t), before), "made anew")
}

func TestACopyThatIsNotThereIsNotCalledWell(t *testing.T) {
	_, _, nc := copyStage(t)
	cfg := publisherConfig()
	cfg.Look, cfg.MinBackoff = 20*time.Millisecond, time.Hour
	p := runPublisher(t, nc, cfg, newLog(10))
	p.caughtUp(t, 10)
	removeCopy(t, nc)
	eventually(t, "said", func() bool { return p.Health(10).State == StateBehind })
	if h := p.Health(10); !strings.Contains(h.Error, "stream not found") || !strings.Contains(h.Error, bus.StreamName(testLog)) {
		t.Errorf("%+v", h)
	}
	if _, err := p.Made(testContext(t)); err == nil {
		t.Error("it was made")
	}
	public := must[*Public](t)(NewPublic(nc, func() PublicConfig { c := publicConfig(); c.Copy = p.Made; return c }()))
	if h, err := public.look(testContext(t)); err == nil || h != (PublicHealth{State: StateBehind}) || !strings.Contains(fmt.Sprint(err), "nothing to fill it from") {
		t.Errorf("%+v, %v", h, err)
	}
}

// What a stranger puts in while nothing happens is found without the next event.
func TestAForkIsFoundWhileNothingHappens(t *testing.T) {
	_, _, nc := copyStage(t)
	cfg := publisherConfig()
	cfg.Look = 20 * time.Millisecond
	p := runPublisher(t, nc, cfg, newLog(3))
	p.caughtUp(t, 3)
	publishForeign(t, nc, eventAt(4, "a stranger's"))
	p.ended(t)
	if h := p.Health(3); h.State != StateForked {
		t.Errorf("%+v", h)
	}
}
