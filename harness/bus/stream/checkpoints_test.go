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

	"waybill/harness/bus"
	"waybill/harness/bus/bustest"
)

func inside(s *bus.Server) bus.Target { return bus.Target{Server: s} }

func checkpointsConfig() CheckpointsConfig {
	return CheckpointsConfig{Prefix: bus.DefaultPrefix, LogID: testLog, Patience: time.Second}
}

// headOf is a checkpoint as far as this package looks into one.
func headOf(size int64) []byte {
	return fmt.Appendf(nil, "waybill/%s\n%d\nroot\n\n— waybill/%s sig\n", testLog, size, testLog)
}

// published are the checkpoints in the stream, with their message ids.
func published(t *testing.T, nc *nats.Conn) (out []string) {
	t.Helper()
	ctx := testContext(t)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	s := must[jetstream.Stream](t)(js.Stream(ctx, "WAYBILL_"+testLog+"_CHECKPOINTS"))
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m := must[*jetstream.RawStreamMsg](t)(s.GetMsg(ctx, seq))
		if m.Subject != "waybill.v1.checkpoint."+testLog {
			t.Errorf("a checkpoint on %s", m.Subject)
		}
		out = append(out, m.Header.Get("Nats-Msg-Id")+":"+string(m.Data))
	}
	return out
}

func wantPublished(t *testing.T, nc *nats.Conn, sizes ...int64) {
	t.Helper()
	var want []string
	for _, size := range sizes {
		want = append(want, fmt.Sprintf("%d:%s", size, headOf(size)))
	}
	if got := published(t, nc); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("the stream holds %q, want %q", got, want)
	}
}

func mustPublish(t *testing.T, c *Checkpoints, size int64) {
	t.Helper()
	if err := c.Publish(headOf(size)); err != nil || c.Err() != nil {
		t.Fatalf("%v, %v", err, c.Err())
	}
}

func TestCheckpointsArePublishedOnceAndInOrder(t *testing.T) {
	creds := writeCredentials(t)
	nc := connect(t, creds.Service(), inside(startServer(t, creds)))
	c := must[*Checkpoints](t)(NewCheckpoints(nc, checkpointsConfig()))
	for _, size := range []int64{3, 7, 7, 5, 9} { // one again, and an older one
		mustPublish(t, c, size)
	}
	if c.Position() != 9 {
		t.Errorf("position %d", c.Position())
	}
	next := must[*Checkpoints](t)(NewCheckpoints(nc, checkpointsConfig()))
	mustPublish(t, next, 9) // as at every start
	mustPublish(t, next, 12)
	wantPublished(t, nc, 3, 7, 9, 12)
}

// The acknowledgement is lost, or the checkpoint itself; either way it is tried
// again and is there once.
func TestALostCheckpointAndALostAnswerEndTheSame(t *testing.T) {
	for name, lost := range map[string]struct{ up, down bool }{"did happen": {false, true}, "did not happen": {true, false}} {
		t.Run(name, func(t *testing.T) {
			creds := writeCredentials(t)
			server := startServer(t, creds)
			w := newWire(t, server.ClientURL())
			cfg := checkpointsConfig()
			cfg.Patience = 200 * time.Millisecond
			c := must[*Checkpoints](t)(NewCheckpoints(connect(t, creds.Service(), bus.Target{URL: w.URL()}), cfg))
			mustPublish(t, c, 1)
			w.Lose(lost.up, lost.down)
			if err := c.Publish(headOf(2)); err == nil || !errors.Is(c.Err(), err) || c.Position() != 1 {
				t.Fatalf("published without an answer: %v, at %d", err, c.Position())
			}
			w.Lose(false, false)
			w.Cut()
			eventually(t, "published", func() bool { return c.Publish(headOf(2)) == nil })
			mustPublish(t, c, 3)
			wantPublished(t, connect(t, creds.Service(), inside(server)), 1, 2, 3)
		})
	}
}

func TestACheckpointOfAnotherHistoryIsNotPublishedOver(t *testing.T) {
	creds := writeCredentials(t)
	nc := connect(t, creds.Service(), inside(startServer(t, creds)))
	c := must[*Checkpoints](t)(NewCheckpoints(nc, checkpointsConfig()))
	mustPublish(t, c, 5)
	other := []byte(strings.Replace(string(headOf(5)), "root", "another", 1))
	for name, note := range map[string][]byte{"later": headOf(4), "same size": other} {
		err := must[*Checkpoints](t)(NewCheckpoints(nc, checkpointsConfig())).Publish(note)
		if !errors.Is(err, ErrOtherCheckpoint) || !strings.Contains(err.Error(), "WAYBILL_"+testLog+"_CHECKPOINTS") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Somebody else writes while this life does.
	if err := nc.Publish(bus.CheckpointSubject(bus.DefaultPrefix, testLog), headOf(8)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is there", func() bool { return len(published(t, nc)) == 2 })
	if err := c.Publish(headOf(7)); err == nil {
		t.Error("published onto another's")
	}
	if err := c.Publish(headOf(7)); !errors.Is(err, ErrOtherCheckpoint) {
		t.Errorf("the next time: %v", err)
	}
	if got := len(published(t, nc)); got != 2 {
		t.Errorf("%d in the stream", got)
	}
}

// A log that was put back and has grown past what was published goes on with no
// other history under the same key.
func TestAHistoryThatTheLogDoesNotHoldIsNotContinued(t *testing.T) {
	creds := writeCredentials(t)
	nc := connect(t, creds.Service(), inside(startServer(t, creds)))
	mustPublish(t, must[*Checkpoints](t)(NewCheckpoints(nc, checkpointsConfig())), 5)
	cfg := checkpointsConfig()
	lacks := errors.New("the first 5 events are others")
	cfg.Holds = func(_ context.Context, note []byte) error {
		if !bytes.Equal(note, headOf(5)) {
			t.Errorf("asked about %s", note)
		}
		return lacks
	}
	c := must[*Checkpoints](t)(NewCheckpoints(nc, cfg))
	for range 2 {
		if err := c.Publish(headOf(9)); !errors.Is(err, ErrOtherCheckpoint) || !errors.Is(err, lacks) {
			t.Errorf("published: %v", err)
		}
	}
	lacks = nil
	mustPublish(t, c, 9)
	wantPublished(t, nc, 5, 9)
}

func TestWhatIsNoCheckpointIsNotPublished(t *testing.T) {
	creds := writeCredentials(t)
	c := must[*Checkpoints](t)(NewCheckpoints(connect(t, creds.Service(), inside(startServer(t, creds))), checkpointsConfig()))
	for _, note := range []string{"", "waybill/x", "waybill/x\nmany\nroot\n", "waybill/x\n-1\nroot\n"} {
		if err := c.Publish([]byte(note)); err == nil {
			t.Errorf("%q was published", note)
		}
	}
	if _, err := NewCheckpoints(nil, CheckpointsConfig{Prefix: "a b", LogID: testLog}); err == nil {
		t.Error("a prefix with a space was taken")
	}
}

// Without a server a checkpoint is refused at once: it is tried again later.
func TestACheckpointWithoutAServerFailsInABoundedTime(t *testing.T) {
	creds := writeCredentials(t)
	w := newWire(t, "127.0.0.1:1")
	c := must[*Checkpoints](t)(NewCheckpoints(connect(t, creds.Service(), bus.Target{URL: w.URL(), KeepTrying: true}), checkpointsConfig()))
	start := time.Now()
	if err := c.Publish(headOf(1)); err == nil {
		t.Fatal("published to nobody")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	w.To(startServer(t, creds).ClientURL())
	eventually(t, "published", func() bool { return c.Publish(headOf(1)) == nil })
}

func TestTheCheckpointStreamKeepsTheNewest(t *testing.T) {
	want := checkpointStream(checkpointsConfig())
	if want.MaxBytes != CheckpointBytes || want.Discard != jetstream.DiscardOld || !want.DenyDelete || !want.DenyPurge {
		t.Fatalf("%+v", want)
	}
	nc := bustest.OpenServer(t)
	c := must[*Checkpoints](t)(NewCheckpoints(nc, checkpointsConfig()))
	mustPublish(t, c, 1)
	ctx := testContext(t)
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	s := must[jetstream.Stream](t)(js.Stream(ctx, want.Name))
	if s.DeleteMsg(ctx, 1) == nil || s.Purge(ctx) == nil {
		t.Error("a checkpoint was taken out")
	}
}

// An auditor hears the checkpoints as they are published, and may publish none.
func TestAuditorsHearCheckpoints(t *testing.T) {
	creds := writeCredentials(t, bus.LocalHost)
	server := startServer(t, creds)
	auditor := connect(t, must[bus.Identity](t)(creds.Reader("auditor")), inside(server))
	sub := must[*nats.Subscription](t)(auditor.SubscribeSync("waybill.v1.checkpoint.*"))
	if err := auditor.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	c := must[*Checkpoints](t)(NewCheckpoints(connect(t, creds.Service(), inside(server)), checkpointsConfig()))
	mustPublish(t, c, 4)
	if m := must[*nats.Msg](t)(sub.NextMsgWithContext(testContext(t))); string(m.Data) != string(headOf(4)) {
		t.Errorf("heard %q", m.Data)
	}
}
