package replay_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/events/checkpoint"
	"waybill/replay"
	"waybill/replay/replaytest"
)

// signedSmall is a small log with checkpoints at the ends of transactions, in
// the middle of one, and at its end.
func signedSmall() *replaytest.Log {
	l := replaytest.Small()
	return l.Sign(1, 5, 9, 20, int64(len(l.Rows)))
}

func TestSignedLogsVerify(t *testing.T) {
	small := signedSmall()
	v := verified(t, small)
	if v.Checkpoints != 5 || v.Signed != int64(len(small.Rows)) {
		t.Errorf("got %+v", v)
	}
	var all []int64
	for n := range int64(1300) { // more than are read at once
		all = append(all, n) // and one of the empty log
	}
	if v := verified(t, sized(1300).Sign(all...)); v.Checkpoints != 1300 || v.Signed != 1299 {
		t.Errorf("got %+v", v)
	}
	if v := verified(t, sized(0).Sign(0)); v.Checkpoints != 1 || v.Signed != 0 {
		t.Errorf("got %+v", v)
	}
}

// TestAnyFlippedByteOfAnyCheckpointIsFound goes through every byte.
func TestAnyFlippedByteOfAnyCheckpointIsFound(t *testing.T) {
	l := signedSmall()
	for _, c := range l.Notes {
		for at := range c.Note {
			mask := byte(1) << (at % 8)
			c.Note[at] ^= mask
			verifyFinds(t, l, c.Size)
			c.Note[at] ^= mask
		}
	}
	verified(t, l)
}

// TestCheckpointThatIsNotOfTheTreeIsFound is about notes that are signed as they
// should be, or by somebody else.
func TestCheckpointThatIsNotOfTheTreeIsFound(t *testing.T) {
	l := signedSmall()
	note := func(h checkpoint.Head) []byte { return replaytest.SignHead(replaytest.PrivateKey, h) }
	at9, forged := l.HeadAt(9), l.HeadAt(9)
	forged.Root[31] ^= 1
	elsewhere := l.HeadAt(9)
	elsewhere.Log = "other-00000000"
	for _, c := range []struct {
		name string
		note replay.Checkpoint
		seq  int64
	}{
		{"another root", replay.Checkpoint{Size: 9, Note: note(forged)}, 9},
		{"another key", replay.Checkpoint{Size: 9, Note: replaytest.SignHead(replaytest.OtherPrivateKey, at9)}, 9},
		{"another log", replay.Checkpoint{Size: 9, Note: note(elsewhere)}, 9},
		{"another size beside it", replay.Checkpoint{Size: 10, Note: note(at9)}, 10},
		{"a size beyond the log", replay.Checkpoint{Size: 900, Note: note(at9)}, 900},
		{"a size of no log", replay.Checkpoint{Size: -9, Note: note(at9)}, 0},
		{"nothing", replay.Checkpoint{Size: 9}, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := l.Clone()
			changed.Notes[2] = c.note
			slices.SortFunc(changed.Notes, func(a, b replay.Checkpoint) int { return int(a.Size - b.Size) })
			verifyFinds(t, changed, c.seq)
		})
	}
}

func TestCheckpointsThatAreExchangedAreFound(t *testing.T) {
	l := signedSmall()
	for i := range len(l.Notes) - 1 {
		changed := l.Clone()
		changed.Notes[i].Note, changed.Notes[i+1].Note = changed.Notes[i+1].Note, changed.Notes[i].Note
		verifyFinds(t, changed, l.Notes[i].Size)
	}
}

// TestTailThatIsTakenOffIsFoundByItsCheckpoint takes off whole transactions with
// their roots, so that nothing but a signature is left of them.
func TestTailThatIsTakenOffIsFoundByItsCheckpoint(t *testing.T) {
	l := signedSmall()
	kept := replay.Kept{Checkpoints: [][]byte{l.Notes[4].Note}}
	for _, h := range l.Heads[:len(l.Heads)-1] {
		cut := l.Cut(h.Size)
		if _, err := replay.VerifyAgainst(t.Context(), cut, kept); h.Size < l.Notes[4].Size {
			altered(t, err, h.Size+1)
		}
		verified(t, cut) // by itself it is whole
		cut.Notes = l.Clone().Notes
		verifyFinds(t, cut, h.Size+1)
	}
}

func TestKeptCheckpointsAreInTheLog(t *testing.T) {
	l := replaytest.Small()
	var kept replay.Kept
	for _, size := range []int64{20, 1, 28, 9, 9, 0} { // in any order
		kept.Checkpoints = append(kept.Checkpoints, replaytest.SignHead(replaytest.PrivateKey, l.HeadAt(size)))
	}
	for _, key := range []string{"", replaytest.Key, renamed(t, replaytest.Key)} {
		kept.Key = key
		if v, err := replay.VerifyAgainst(t.Context(), l, kept); err != nil || v.Size != 28 || v.Checkpoints != 0 {
			t.Errorf("key %q: %+v, %v", key, v, err)
		}
	}
}

// renamed is a key under the name of a node, as key files have it.
func renamed(t *testing.T, key string) string {
	t.Helper()
	out, err := checkpoint.PublicKey(key, "local")
	if err != nil || out == key {
		t.Fatal(out, err)
	}
	return out
}

// TestLogMadeAnewIsFoundByWhatWasKept is the forger who has the key: the log is
// as well made as the one that it replaces.
func TestLogMadeAnewIsFoundByWhatWasKept(t *testing.T) {
	l := replaytest.Small()
	forged := l.Forge(func(list []domain.Event) []domain.Event {
		list[9].Time++
		return list
	}).Sign(5, 20)
	verified(t, forged)
	for _, size := range []int64{5, 9, 10, 20, 28} {
		kept := replay.Kept{Checkpoints: [][]byte{replaytest.SignHead(replaytest.PrivateKey, l.HeadAt(size))}}
		_, err := replay.VerifyAgainst(t.Context(), forged, kept)
		if size < 10 {
			if err != nil {
				t.Errorf("the same up to %d: %v", size, err)
			}
			continue
		}
		altered(t, err, size)
	}
}

func TestWhatWasKeptOfAnotherLogIsNotOfThisOne(t *testing.T) {
	l := signedSmall()
	other := l.HeadAt(9)
	other.Log = "other-00000000"
	for name, kept := range map[string]replay.Kept{
		"another key":            {Key: replaytest.OtherKey},
		"signed by another key":  {Checkpoints: [][]byte{replaytest.SignHead(replaytest.OtherPrivateKey, l.HeadAt(9))}},
		"signed for another log": {Checkpoints: [][]byte{replaytest.SignHead(replaytest.PrivateKey, other)}},
	} {
		if _, err := replay.VerifyAgainst(t.Context(), l, kept); err == nil || !strings.Contains(err.Error(), "altered") {
			t.Errorf("%s: %v", name, err)
		} else {
			altered(t, err, 0)
		}
	}
}

func TestWhatIsNoKeyAndNoCheckpointIsNoAlteration(t *testing.T) {
	l := signedSmall()
	_, keyErr := replay.VerifyAgainst(t.Context(), l, replay.Kept{Key: "no key"})
	_, noteErr := replay.VerifyAgainst(t.Context(), l, replay.Kept{Checkpoints: [][]byte{[]byte("no checkpoint")}})
	for _, err := range []error{keyErr, noteErr} {
		var a *replay.AlteredError
		if err == nil || errors.As(err, &a) {
			t.Errorf("got %v", err)
		}
	}
	if !errors.Is(noteErr, checkpoint.ErrMalformed) {
		t.Errorf("got %v", noteErr)
	}
}

func (f failing) Checkpoints(ctx context.Context, after int64, max int) ([]replay.Checkpoint, error) {
	list, _ := f.Log.Checkpoints(ctx, after, max)
	return list, f.fail("checkpoints")
}

func TestCheckpointsThatCannotBeReadAreNotAltered(t *testing.T) {
	_, err := replay.Verify(t.Context(), failing{signedSmall(), "checkpoints"})
	notJudged(t, "verify without checkpoints", err)
}

func (g *growing) Checkpoints(ctx context.Context, after int64, max int) ([]replay.Checkpoint, error) {
	return g.read(&max).Checkpoints(ctx, after, max)
}

// TestLogThatIsSignedMeanwhileVerifies lets a signed log grow at every read, and
// hand out few checkpoints at a time.
func TestLogThatIsSignedMeanwhileVerifies(t *testing.T) {
	var sizes []int64
	for n := int64(1); n <= 280; n++ {
		sizes = append(sizes, n)
	}
	whole := sized(280).Sign(sizes...)
	for reads := range 12 {
		g := &growing{Log: sized(130).Sign(sizes[:130]...), whole: whole, reads: reads}
		if v := verified(t, g); v.Checkpoints < 100 || v.Signed > v.Size {
			t.Errorf("growing at read %d: %+v", reads, v)
		}
	}
}
