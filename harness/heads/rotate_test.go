package heads

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/replay"
	"waybill/store"
)

var still0 = harness.Clock{Wall: func() int64 { return 1_785_240_000_000_000_000 }, Mono: func() int64 { return 1 }}

// begun makes a log with one event and a checkpoint of it.
func begun(t *testing.T) (*world, *store.Log) {
	w := newWorld(t)
	l := w.open()
	w.ok(record(t.Context(), l, still0, domain.ServiceStarted{Version: "0.1", Rules: 1}))
	w.sign(l)
	return w, l
}

// verified returns how many checkpoints of the log were right.
func (w *world) verified(key string, kept ...[]byte) (replay.Verified, error) {
	l, err := logfile.Open(w.dir.LogFile())
	w.ok(err)
	defer l.Close()
	return replay.VerifyAgainst(context.Background(), l, replay.Kept{Key: key, Checkpoints: kept})
}

// TestAKeyIsLeftForAnother: from the rotation on the new key signs, and the chain
// from the first one is in the log.
func TestAKeyIsLeftForAnother(t *testing.T) {
	w, l := begun(t)
	old := w.file()
	first, err := w.dir.PublicKey()
	w.ok(err)
	keys := []string{first}
	for range 3 {
		to, err := Rotate(t.Context(), w.dir, l, "oncall", still0)
		w.ok(err)
		keys = append(keys, to)
		w.sign(l)
	}
	got, err := w.dir.Keys(l.ID(), l.PublicKey())
	w.ok(err)
	for i := range keys {
		if len(got) != len(keys) || !checkpoint.SameKey(got[i], keys[i]) {
			t.Fatalf("the chain is %v, want %v", got, keys)
		}
		if v, err := w.verified(keys[i], []byte(old), []byte(w.file())); err != nil || v.Checkpoints != 4 {
			t.Errorf("held to key %d: %+v, %v", i, v, err)
		}
	}
	if err := Check(t.Context(), w.dir, l, w.logger()); err != nil {
		t.Error(err)
	}
	if _, made, err := w.dir.Init("local"); err != nil || len(made) != 0 {
		t.Errorf("init again: %v, %v", made, err)
	}
	w.ok(l.Close())
	logs, err := logfile.Open(w.dir.LogFile())
	w.ok(err)
	defer logs.Close()
	ring, err := replay.Keys(t.Context(), logs)
	if err != nil || len(ring) != 4 || ring[3].Seq != 4 || !checkpoint.SameKey(ring[3].Public, keys[3]) {
		t.Errorf("the log's keys are %+v, %v", ring, err)
	}
	if _, err := w.verified("waybill/x+3b9aca00+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"); err == nil {
		t.Error("a key that the log never had is taken for one of its own")
	}
}

// TestAKeySignsInItsTimeOnly: what the old key signs after it was left, and the
// new one before, is found.
func TestAKeySignsInItsTimeOnly(t *testing.T) {
	w, l := begun(t)
	late, _, err := w.dir.Signer(l.ID())
	w.ok(err)
	_, err = Rotate(t.Context(), w.dir, l, "oncall", still0)
	w.ok(err)
	b, err := checkpoint.Sign(late, checkpoint.Head{Log: l.ID(), Size: l.Head().Size, Root: l.Head().Root})
	w.ok(err)
	var altered *replay.AlteredError
	if _, err := w.verified("", b); !errors.As(err, &altered) {
		t.Errorf("kept elsewhere: %v", err)
	}
	w.ok(l.Checkpoint(t.Context(), l.Head().Size, b))
	w.ok(l.Close())
	if _, err := w.verified(""); !errors.As(err, &altered) || altered.Seq != 2 {
		t.Errorf("stored: %v", err)
	}
}

// TestAForgedRotationIsFound: an event that claims that the log was handed over.
func TestAForgedRotationIsFound(t *testing.T) {
	w, l := begun(t)
	foreign := newWorld(t)
	r, err := prepare(foreign.dir, l.ID())
	w.ok(err)
	w.ok(record(t.Context(), l, still0, r.data))
	w.ok(l.Close())
	var altered *replay.AlteredError
	if _, err := w.verified(""); !errors.As(err, &altered) || altered.Seq != 2 {
		t.Errorf("verify: %v", err)
	}
}

// TestARotationIsAllOrNothing stops one after each of its steps, as a crash does.
func TestARotationIsAllOrNothing(t *testing.T) {
	for name, c := range map[string]struct {
		happened bool
		steps    func(w *world, l *store.Log, r rotation)
	}{
		"the private half is written": {false, func(w *world, l *store.Log, r rotation) {
			w.ok(harness.WriteFile(w.dir.KeyFiles().NextPrivate, []byte(r.private+"\n"), 0o600))
		}},
		"the next key is written": {false, func(w *world, l *store.Log, r rotation) { w.ok(writeNext(w.dir.KeyFiles(), r.private, r.data.To)) }},
		"the event is recorded": {true, func(w *world, l *store.Log, r rotation) {
			w.ok(writeNext(w.dir.KeyFiles(), r.private, r.data.To))
			w.ok(record(w.t.Context(), l, still0, r.data))
		}},
		"the chain is written": {true, func(w *world, l *store.Log, r rotation) {
			w.ok(writeNext(w.dir.KeyFiles(), r.private, r.data.To))
			w.ok(record(w.t.Context(), l, still0, r.data))
			w.ok(harness.WriteFile(w.dir.KeyFiles().Rotations, []byte(r.data.Note+"\n"), 0o644))
		}},
		"one half is in place": {true, func(w *world, l *store.Log, r rotation) {
			w.ok(writeNext(w.dir.KeyFiles(), r.private, r.data.To))
			w.ok(record(w.t.Context(), l, still0, r.data))
			w.ok(harness.WriteFile(w.dir.KeyFiles().Rotations, []byte(r.data.Note+"\n"), 0o644))
			w.ok(copyKey(w.dir.KeyFiles().NextPrivate, w.dir.KeyFiles().Private))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, l := begun(t)
			before, err := w.dir.PublicKey()
			w.ok(err)
			r, err := prepare(w.dir, l.ID())
			w.ok(err)
			c.steps(w, l, r)
			if _, err := New(t.Context(), Config{Dir: w.dir, Log: l, Logger: w.logger()}); err != nil {
				t.Fatal(err)
			}
			after, err := w.dir.PublicKey()
			w.ok(err)
			if c.happened != checkpoint.SameKey(after, r.data.To) || c.happened == checkpoint.SameKey(after, before) {
				t.Errorf("the key is %s after %s", after, before)
			}
			for _, f := range []string{w.dir.KeyFiles().NextPrivate, w.dir.KeyFiles().NextPublic} {
				if _, err := os.Stat(f); !os.IsNotExist(err) {
					t.Errorf("%s is left: %v", f, err)
				}
			}
			if b, err := os.ReadFile(w.dir.KeyFiles().Private); err != nil || strings.Count(string(b), "PRIVATE") != 1 {
				t.Errorf("the private key: %v", err)
			}
			if info, err := os.Stat(w.dir.KeyFiles().Private); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the private key may be read by %v, %v", info.Mode(), err)
			}
			w.ok(record(t.Context(), l, still0, domain.ServiceStopped{Reason: "signal"}))
			w.sign(l)
			w.ok(l.Close())
			if _, err := w.verified(""); err != nil {
				t.Error(err)
			}
			if _, _, err := w.dir.Init("local"); err != nil {
				t.Error(err)
			}
		})
	}
}
