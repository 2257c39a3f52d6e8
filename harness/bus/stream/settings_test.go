package stream

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus/bustest"
)

// otherSettings changes one setting each, under the name it has in JetStream.
var otherSettings = map[string]func(*jetstream.StreamConfig){
	"deny_delete":          func(c *jetstream.StreamConfig) { c.DenyDelete = !c.DenyDelete },
	"deny_purge":           func(c *jetstream.StreamConfig) { c.DenyPurge = !c.DenyPurge },
	"storage":              func(c *jetstream.StreamConfig) { c.Storage, c.MaxBytes = jetstream.MemoryStorage, 1<<20 },
	"max_age":              func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
	"max_bytes":            func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 },
	"max_msgs":             func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 },
	"max_msgs_per_subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 },
	"max_msg_size":         func(c *jetstream.StreamConfig) { c.MaxMsgSize = 4000 },
	"retention":            func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
	"allow_rollup_hdrs":    func(c *jetstream.StreamConfig) { c.AllowRollup, c.DenyPurge = true, false },
	"allow_msg_ttl":        func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
	"allow_msg_counter":    func(c *jetstream.StreamConfig) { c.AllowMsgCounter, c.Discard = true, jetstream.DiscardOld },
	"no_ack":               func(c *jetstream.StreamConfig) { c.NoAck = true },
	"first_seq":            func(c *jetstream.StreamConfig) { c.FirstSeq = 4 },
	"subject_transform": func(c *jetstream.StreamConfig) {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "x.>"}
	},
	"sources":        func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "ELSE"}} },
	"another stream": func(c *jetstream.StreamConfig) { c.Name = "ELSE" },
	"discard_new_per_subject": func(c *jetstream.StreamConfig) {
		c.Discard, c.DiscardNewPerSubject, c.MaxMsgsPerSubject = jetstream.DiscardNew, true, 5
	},
	"mirror": func(c *jetstream.StreamConfig) { c.Mirror, c.Subjects = &jetstream.StreamSource{Name: "ELSE"}, nil },
}

// besides says which other settings must change with one.
var besides = map[string][]string{"storage": {"max_bytes"}, "allow_rollup_hdrs": {"deny_purge"}, "allow_msg_counter": {"discard"},
	"discard_new_per_subject": {"discard", "max_msgs_per_subject"}, "mirror": {"subjects"}}

func onlyOf(events bool) map[string]func(*jetstream.StreamConfig) {
	if events {
		return map[string]func(*jetstream.StreamConfig){
			"discard":  func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
			"subjects": func(c *jetstream.StreamConfig) { c.Subjects = []string{"waybill.v1.events.>"} },
		}
	}
	return map[string]func(*jetstream.StreamConfig){
		"discard":  func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew },
		"subjects": func(c *jetstream.StreamConfig) { c.Subjects = []string{"waybill.v1.checkpoint.>"} },
	}
}

// checkSettings makes a stream with one other setting after the other, and
// expects that it is refused with a word about that one.
func checkSettings(t *testing.T, want jetstream.StreamConfig, use func(*testing.T, *nats.Conn) error) {
	cases := onlyOf(want.Discard == jetstream.DiscardNew)
	for setting, change := range otherSettings {
		cases[setting] = change
	}
	for setting, change := range cases {
		t.Run(setting, func(t *testing.T) {
			c := writeCredentials(t)
			nc := connect(t, c.Service(), inside(startServer(t, c)))
			cfg := want
			change(&cfg)
			js := must[jetstream.JetStream](t)(jetstream.New(nc))
			must[jetstream.Stream](t)(js.CreateStream(testContext(t), cfg))
			err := use(t, nc)
			var settings *SettingsError
			if !errors.As(err, &settings) {
				t.Fatalf("ended with %v", err)
			}
			others := 0
			for _, d := range settings.Differences {
				if name := strings.Fields(d)[0]; name != setting && !slices.Contains(besides[setting], name) && !strings.HasPrefix(d, setting) {
					t.Errorf("a word about %s", d)
				}
				if !strings.HasPrefix(d, setting) {
					others++
				}
			}
			if others == len(settings.Differences) || !strings.Contains(err.Error(), settings.Stream) {
				t.Errorf("no word about it: %v", err)
			}
		})
	}
}

func TestAStreamWithOtherSettingsIsRefusedByName(t *testing.T) {
	checkSettings(t, eventStream(publisherConfig()), func(t *testing.T, nc *nats.Conn) error {
		p := runPublisher(t, nc, publisherConfig(), newLog(1))
		err := p.ended(t)
		if h := p.Health(1); p.Position() != 0 || !errors.Is(p.CaughtUp(testContext(t), 1), err) || h.State != StateStopped || h.Error == "" {
			t.Errorf("position %d, %+v", p.Position(), h)
		}
		return err
	})
}

func TestACheckpointStreamWithOtherSettingsIsRefusedByName(t *testing.T) {
	checkSettings(t, checkpointStream(checkpointsConfig()), func(t *testing.T, nc *nats.Conn) error {
		c := must[*Checkpoints](t)(NewCheckpoints(nc, checkpointsConfig()))
		err := c.Publish(headOf(1))
		if !errors.Is(c.Err(), err) || c.Position() != 0 {
			t.Errorf("%v at %d", c.Err(), c.Position())
		}
		return err
	})
}

// What a second life says of the streams must agree with the first.
func TestStreamsAreMadeAsTheConfigurationSays(t *testing.T) {
	c := writeCredentials(t)
	nc := connect(t, c.Service(), inside(startServer(t, c)))
	cfg := publisherConfig()
	cfg.MaxBytes, cfg.MaxAge = 8<<20, 2*time.Hour
	p := runPublisher(t, nc, cfg, newLog(3))
	p.caughtUp(t, 3)
	p.stop(t)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	have := must[jetstream.Stream](t)(js.Stream(testContext(t), "WAYBILL_"+testLog)).CachedInfo().Config
	if have.MaxBytes != 8<<20 || have.MaxAge != 2*time.Hour || have.Replicas != 1 || !have.DenyDelete || !have.DenyPurge || have.Discard != jetstream.DiscardNew {
		t.Errorf("%+v", have)
	}
	err := runPublisher(t, nc, publisherConfig(), newLog(3)).ended(t)
	var settings *SettingsError
	if !errors.As(err, &settings) || len(settings.Differences) != 2 ||
		settings.Differences[0] != "max_bytes is 8388608 and should be -1" || settings.Differences[1] != "max_age is 2h0m0s and should be 0s" {
		t.Errorf("ended with %v", err)
	}
	cfg.Replicas = 3
	if err := runPublisher(t, nc, cfg, newLog(3)).ended(t); err == nil || !strings.Contains(err.Error(), "num_replicas is 1 and should be 3") {
		t.Errorf("ended with %v", err)
	}
}

func TestSettingsThatAreTheOperatorsAreLeftAlone(t *testing.T) {
	_, _, nc := copyStage(t)
	createStream(t, nc, func(c *jetstream.StreamConfig) {
		c.MaxConsumers, c.Duplicates, c.Description, c.Compression = 7, time.Second, "mine", jetstream.S2Compression
	})
	log := newLog(100)
	runPublisher(t, nc, publisherConfig(), log).caughtUp(t, 100)
	checkCopy(t, nc, log)
}

// agedOut is a stream whose first messages are gone as age takes them: by limits,
// from the beginning on.
func agedOut(t *testing.T, nc *nats.Conn, had, kept int64) {
	t.Helper()
	createStream(t, nc, func(c *jetstream.StreamConfig) { c.DenyPurge = false })
	for seq := range had {
		publishRaw(t, nc, eventAt(seq+1, ""))
	}
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	s := must[jetstream.Stream](t)(js.Stream(testContext(t), "WAYBILL_"+testLog))
	if err := s.Purge(testContext(t), jetstream.WithPurgeSequence(uint64(had-kept+1))); err != nil {
		t.Fatal(err)
	}
	must[jetstream.Stream](t)(js.UpdateStream(testContext(t), eventStream(publisherConfig())))
}

func TestAHeadThatHasAgedOutIsToleratedAndSaid(t *testing.T) {
	for name, kept := range map[string]int64{"some are left": 3, "none is left": 0} {
		t.Run(name, func(t *testing.T) {
			nc := bustest.OpenServer(t)
			agedOut(t, nc, 10, kept)
			log := newLog(10)
			p := runPublisher(t, nc, publisherConfig(), log)
			log.grow(5)
			p.caughtUp(t, 15)
			if h := p.Health(15); h.First != 11-kept || h.State != StateOK || h.Lag != 0 || h.Position != 15 {
				t.Errorf("%+v", h)
			}
			if err := runPublisher(t, nc, publisherConfig(), newLog(9)).ended(t); !errors.Is(err, ErrForked) {
				t.Errorf("a log that ends before the stream: %v", err)
			}
		})
	}
	t.Run("a log that ends before all that was there", func(t *testing.T) {
		nc := bustest.OpenServer(t)
		agedOut(t, nc, 10, 0)
		err := runPublisher(t, nc, publisherConfig(), newLog(9)).ended(t)
		var fork *ForkError
		if !errors.As(err, &fork) || fork.Seq != 10 || fork.Log != "" || fork.Copy != "" {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("a fork in what is left", func(t *testing.T) {
		nc := bustest.OpenServer(t)
		agedOut(t, nc, 10, 4)
		publishForeign(t, nc, eventAt(11, "x"))
		publishForeign(t, nc, eventAt(12, "x"))
		err := runPublisher(t, nc, publisherConfig(), newLog(20)).ended(t)
		var fork *ForkError
		if !errors.As(err, &fork) || fork.Seq != 11 {
			t.Errorf("ended with %v", err)
		}
	})
}

// What limits take is the head. A message that is gone from the middle was taken
// out by somebody.
func TestAHoleIsAForkAndNamed(t *testing.T) {
	nc := bustest.OpenServer(t)
	createStream(t, nc, func(c *jetstream.StreamConfig) { c.DenyDelete = false })
	for seq := range int64(9) {
		publishRaw(t, nc, eventAt(seq+1, ""))
	}
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	s := must[jetstream.Stream](t)(js.Stream(testContext(t), "WAYBILL_"+testLog))
	for _, seq := range []uint64{7, 4} {
		if err := s.DeleteMsg(testContext(t), seq); err != nil {
			t.Fatal(err)
		}
	}
	must[jetstream.Stream](t)(js.UpdateStream(testContext(t), eventStream(publisherConfig())))
	err := runPublisher(t, nc, publisherConfig(), newLog(9)).ended(t)
	var fork *ForkError
	if !errors.As(err, &fork) || fork.Seq != 4 || fork.Copy != "" || fork.Log != (forkAt{log: 9}).digests(4)[0] {
		t.Errorf("ended with %v: %+v", err, fork)
	}
}
