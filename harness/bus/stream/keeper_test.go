package stream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
	"waybill/harness/bus/access"
)

// readersStage is a stage with a second auditor, ann.
func readersStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	must[[]string](t)(bus.WriteCredentials(dir, bus.DefaultPrefix, testLog, []string{"local"}))
	must[[]string](t)(access.AddUser(dir, bus.DefaultPrefix, testLog, access.RoleAuditor, "ann"))
	c := must[bus.Credentials](t)(bus.LoadCredentials(dir))
	return stageOn(t, c, inside(startServer(t, c)), 8)
}

func wantRefused(t *testing.T, what string, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v, want a word about %q", what, err, words)
	}
}

func TestOneReaderCannotTakeAllConsumers(t *testing.T) {
	g := readersStage(t)
	_, js := g.reader(t, "auditor")
	_, ann := g.reader(t, "auditor-ann")
	ctx, name := testContext(t), bus.StreamName(testLog)
	s := must[jetstream.Stream](t)(js.Stream(ctx, name))
	for i := range MaxConsumers {
		must[jetstream.Consumer](t)(s.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: fmt.Sprint("mine-", i)}))
	}
	tooMany := func(what string) {
		t.Helper()
		for _, cfg := range []jetstream.ConsumerConfig{{Durable: "more"}, {Name: "more"}, {}} {
			_, err := s.CreateConsumer(ctx, cfg)
			wantRefused(t, what, err, ErrManyConsumers.Error())
		}
	}
	tooMany("one more")
	must[jetstream.Consumer](t)(s.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "mine-3"})) // there already
	must[jetstream.Consumer](t)(ann.CreateConsumer(ctx, name, jetstream.ConsumerConfig{Durable: "hers"}))
	must[jetstream.Consumer](t)(js.CreateConsumer(ctx, bus.CheckpointStreamName(testLog), jetstream.ConsumerConfig{Durable: "mine-0"}))
	if err := s.DeleteConsumer(ctx, "mine-5"); err != nil {
		t.Fatal(err)
	}
	must[jetstream.Consumer](t)(s.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "instead"}))
	tooMany("one more again")
	// Another keeper, as after a restart, finds out whose they are.
	list := &owners{js: must[jetstream.JetStream](t)(jetstream.New(g.service)), stream: name}
	if err := list.room("auditor", "more"); !errors.Is(err, ErrManyConsumers) {
		t.Errorf("another keeper: %v", err)
	}
	if err := errors.Join(list.room("auditor", "instead"), list.room("auditor-ann", "more")); err != nil {
		t.Errorf("another keeper: %v", err)
	}
}

func TestAConsumerThatNobodyUsesGoes(t *testing.T) {
	g := newStage(t, 8)
	_, js := g.reader(t, "auditor")
	ctx := testContext(t)
	s := must[jetstream.Stream](t)(js.Stream(ctx, bus.StreamName(testLog)))
	for what, tc := range map[string]struct {
		cfg  jetstream.ConsumerConfig
		want time.Duration
	}{
		"durable":            {jetstream.ConsumerConfig{Durable: "a"}, MaxIdle},
		"durable, long":      {jetstream.ConsumerConfig{Durable: "b", InactiveThreshold: time.Hour}, MaxIdle},
		"durable, short":     {jetstream.ConsumerConfig{Durable: "c", InactiveThreshold: time.Minute}, time.Minute},
		"named":              {jetstream.ConsumerConfig{Name: "d", InactiveThreshold: time.Hour}, MaxIdle},
		"named, as it comes": {jetstream.ConsumerConfig{Name: "e"}, 5 * time.Second},
		"less than nothing":  {jetstream.ConsumerConfig{InactiveThreshold: -1}, MaxIdle},
	} {
		got := must[jetstream.Consumer](t)(s.CreateConsumer(ctx, tc.cfg)).CachedInfo().Config
		if got.InactiveThreshold != tc.want || got.Metadata[ownerKey] != "auditor" {
			t.Errorf("%s: %v, %v", what, got.InactiveThreshold, got.Metadata)
		}
	}
}

func TestAReaderDoesNotChangeAConsumerByMakingIt(t *testing.T) {
	g := readersStage(t)
	_, js := g.reader(t, "auditor")
	_, ann := g.reader(t, "auditor-ann")
	ctx, name := testContext(t), bus.StreamName(testLog)
	mine := jetstream.ConsumerConfig{Durable: "mine", AckPolicy: jetstream.AckExplicitPolicy}
	must[jetstream.Consumer](t)(js.CreateConsumer(ctx, name, mine))
	must[jetstream.Consumer](t)(js.CreateOrUpdateConsumer(ctx, name, mine)) // as it is
	later := time.Now().Add(time.Hour)
	paused, other, posing := mine, mine, mine
	paused.PauseUntil = &later
	other.Description = "another"
	posing.Metadata = map[string]string{ownerKey: "auditor"}
	for what, cfg := range map[string]jetstream.ConsumerConfig{"as it is": mine, "paused": paused, "another": other, "posing as the other": posing} {
		_, err := ann.CreateOrUpdateConsumer(ctx, name, cfg)
		wantRefused(t, what, err, "already exists")
		_, err = ann.CreateConsumer(ctx, name, cfg)
		wantRefused(t, what, err, "already exists")
		_, err = ann.UpdateConsumer(ctx, name, cfg)
		wantRefused(t, what, err, ErrChangeConsumer.Error())
	}
	_, err := js.CreateOrUpdateConsumer(ctx, name, other)
	wantRefused(t, "changed by its own reader", err, "already exists")
	info := must[jetstream.Consumer](t)(js.Consumer(ctx, name, "mine")).CachedInfo()
	if info.Paused || info.Config.Description != "" || info.Config.Metadata[ownerKey] != "auditor" {
		t.Errorf("%+v", info)
	}
}

// A request that nobody waits for is not served, nor one whose answer would be a
// request of the keeper's own.
func TestTheKeeperAnswersOnlyWhereTheServerSaysTo(t *testing.T) {
	k := &Keeper{} // with nobody to ask
	for _, reply := range []string{"", "$JS.API.STREAM.DELETE." + bus.PublicStreamName(testLog)} {
		k.answer(&nats.Msg{Reply: reply, Data: []byte("{}")}, nil, "auditor.create")
	}
	for _, wish := range []string{"create", "create.x", "auditor", "auditor.", "auditor.durable", "auditor.delete.x", ""} {
		_, err := k.make(&owners{stream: "S"}, wish, []byte(`{"stream_name":"S"}`))
		wantRefused(t, wish, err, access.AccountsFile)
	}
}
