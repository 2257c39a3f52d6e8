package replay_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
	"waybill/events"
	"waybill/replay"
	"waybill/replay/replaytest"
)

// sized returns a log of n events of which none depends on another.
func sized(n int) *replaytest.Log {
	list := make([]domain.Event, n)
	for i := range list {
		list[i] = domain.Event{Seq: int64(i + 1), Time: 1_785_240_000_000_000_000, Mono: int64(i) * 1_000_000,
			Data: domain.IntakeShed{Count: int64(i), Code: domain.CodeOverloaded}}
	}
	return replaytest.Make(list)
}

func TestWholeLogsVerify(t *testing.T) {
	logs := []*replaytest.Log{replaytest.Small(), replaytest.Full(), replaytest.Rejected()}
	for _, n := range []int{0, 1, 2, 255, 256, 257, 511, 512, 600, 256*256 + 257} {
		logs = append(logs, sized(n))
	}
	for _, n := range []int{255, 256, 257, 600} {
		logs = append(logs, replaytest.Calls(n))
	}
	for _, l := range logs {
		v := verified(t, l)
		want := replay.Verified{Log: replaytest.ID, Size: int64(len(l.Rows)), Root: sha256.Sum256(nil), Evidence: int64(len(l.Kept)), Key: replaytest.Key}
		if n := len(l.Heads); n > 0 {
			want.Root = l.Heads[n-1].Hash // made by tlog alone
		}
		if v != want {
			t.Errorf("a log of %d events: got %+v, want %+v", len(l.Rows), v, want)
		}
	}
}

// TestAnyFlippedByteOfAnyEventIsFound goes through every byte of a whole log.
func TestAnyFlippedByteOfAnyEventIsFound(t *testing.T) {
	l := replaytest.Small()
	for i, r := range l.Rows {
		for at := range r.Bytes {
			mask := byte(1) << (at % 8)
			r.Bytes[at] ^= mask
			verifyFinds(t, l, int64(i+1))
			r.Bytes[at] ^= mask
		}
	}
	verified(t, l)
}

// TestAnyFlippedByteBesideTheEventsIsFound goes through every byte of the leaf
// hashes, the roots and the evidence.
func TestAnyFlippedByteBesideTheEventsIsFound(t *testing.T) {
	l := replaytest.Small()
	for i := range l.Rows {
		for at := range l.Rows[i].Leaf {
			l.Rows[i].Leaf[at] ^= 0x10
			verifyFinds(t, l, int64(i+1))
			l.Rows[i].Leaf[at] ^= 0x10
		}
	}
	for i := range l.Heads {
		for at := range l.Heads[i].Hash {
			l.Heads[i].Hash[at] ^= 0x10
			verifyFinds(t, l, l.Heads[i].Size)
			l.Heads[i].Hash[at] ^= 0x10
		}
	}
	for d, b := range l.Kept {
		for at := range b {
			b[at] ^= 0x10
			verifyFinds(t, l, citing(t, l, d))
			b[at] ^= 0x10
		}
		l.Kept[d] = append(b, ' ')
		verifyFinds(t, l, citing(t, l, d))
		l.Kept[d] = b
	}
	verified(t, l)
}

// citing returns the seq of the first event that cites evidence.
func citing(t *testing.T, l *replaytest.Log, d [32]byte) int64 {
	t.Helper()
	for _, e := range l.Events() {
		if ref, ok := events.EvidenceOf(e.Data); ok && ref.Digest == fmt.Sprintf("%x", d) {
			return e.Seq
		}
	}
	t.Fatalf("nothing cites %x", d)
	return 0
}

func TestFlippedByteOfATileIsFound(t *testing.T) {
	for _, n := range []int{256, 257, 600} {
		l := sized(n)
		for _, tile := range l.Full {
			for at := 0; at < len(tile.Hashes); at += 509 {
				tile.Hashes[at] ^= 0x10
				verifyFinds(t, l, 256*(tile.Index+1))
				tile.Hashes[at] ^= 0x10
			}
		}
		verified(t, l)
	}
}

func TestTileThatIsGoneOrTooMuchIsFound(t *testing.T) {
	l := sized(600)
	first, second := l.Full[0], l.Full[1]
	for _, c := range []struct {
		name  string
		tiles []replay.Tile
		seq   int64
	}{
		{"the first is gone", []replay.Tile{second}, 256},
		{"the second is gone", []replay.Tile{first}, 512},
		{"none is left", nil, 256},
		{"exchanged", []replay.Tile{{Index: 0, Hashes: second.Hashes}, {Index: 1, Hashes: first.Hashes}}, 256},
		{"cut short", []replay.Tile{{Index: 0, Hashes: first.Hashes[:255*32]}, second}, 256},
		{"one too much", []replay.Tile{first, second, {Index: 2, Hashes: first.Hashes}}, 601},
		{"one far away", []replay.Tile{first, second, {Index: 1 << 40, Hashes: first.Hashes}}, 601},
		{"one before the first", []replay.Tile{first, second, {Index: -1, Hashes: first.Hashes}}, 601},
		{"one of the next level", []replay.Tile{first, second, {Level: 1, Hashes: first.Hashes}}, 601},
		{"one of the last level", []replay.Tile{first, second, {Level: 7, Hashes: first.Hashes}}, 601},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := l.Clone()
			changed.Full = c.tiles
			verifyFinds(t, changed, c.seq)
		})
	}
}

func TestRowThatIsGoneIsFound(t *testing.T) {
	l := replaytest.Small()
	for i := range l.Rows {
		changed := l.Clone()
		changed.Rows = slices.Delete(changed.Rows, i, i+1)
		verifyFinds(t, changed, int64(i+1))
	}
}

// TestRowThatIsPutInIsFound adds a well-made event with its right leaf hash in
// each place, and numbers those behind it again.
func TestRowThatIsPutInIsFound(t *testing.T) {
	l := replaytest.Small()
	for i := range len(l.Rows) + 1 {
		seq := int64(i + 1)
		changed := l.Clone()
		for k := i; k < len(changed.Rows); k++ {
			changed.Rows[k].Seq++
		}
		changed.Rows = slices.Insert(changed.Rows, i, shedRecord(t, seq))
		if !slices.Contains(l.Sizes(), seq) && i < len(l.Rows) {
			seq++ // no root ends with the new row; the next one says that it has another number
		}
		verifyFinds(t, changed, seq)
	}
}

func shedRecord(t *testing.T, seq int64) replay.Record {
	t.Helper()
	e := domain.Event{Seq: seq, Time: 1, Mono: 1, Data: domain.IntakeShed{Count: 1, Code: domain.CodeOverloaded}}
	b, err := events.Seal(replaytest.ID, e)
	if err != nil {
		t.Fatal(err)
	}
	return replay.Record{Seq: seq, Type: "intake.shed", Bytes: b, Leaf: tlog.RecordHash(b)}
}

func TestRowBelowTheFirstIsFound(t *testing.T) {
	for _, seq := range []int64{0, -1, -1 << 62} {
		l := replaytest.Small()
		l.Rows = slices.Insert(l.Rows, 0, shedRecord(t, seq))
		verifyFinds(t, l, 1)
		_, err := replay.Replay(t.Context(), l)
		altered(t, err, 1)
	}
}

func TestRowsThatAreExchangedAreFound(t *testing.T) {
	l := replaytest.Small()
	for i := range len(l.Rows) - 1 {
		changed := l.Clone()
		a, b := changed.Rows[i], changed.Rows[i+1]
		a.Seq, b.Seq = b.Seq, a.Seq
		changed.Rows[i], changed.Rows[i+1] = b, a
		verifyFinds(t, changed, int64(i+1))
	}
}

func TestRowsThatAreRenumberedAreFound(t *testing.T) {
	l := replaytest.Small()
	for i := range l.Rows {
		changed := l.Clone()
		for k := i; k < len(changed.Rows); k++ {
			changed.Rows[k].Seq += 1000
		}
		verifyFinds(t, changed, int64(i+1))
	}
}

func TestColumnsThatDisagreeAreFound(t *testing.T) {
	l := replaytest.Small()
	for i := range l.Rows {
		for _, change := range []func(*replay.Record){
			func(r *replay.Record) { r.Type += "x" },
			func(r *replay.Record) { r.Peer += "x" },
			func(r *replay.Record) { r.Call += "x" },
		} {
			changed := l.Clone()
			change(&changed.Rows[i])
			verifyFinds(t, changed, int64(i+1))
			_, err := replay.Replay(t.Context(), changed)
			altered(t, err, int64(i+1))
		}
	}
}

// TestTailThatIsTakenOffIsFoundByWhatItLeaves takes off the last events and
// leaves their roots, or only the last tile.
func TestTailThatIsTakenOffIsFoundByWhatItLeaves(t *testing.T) {
	l := replaytest.Small()
	for n := range l.Rows {
		changed := l.Clone()
		changed.Rows = changed.Rows[:n]
		verifyFinds(t, changed, int64(n+1))
	}
	tile := sized(256).Full
	l = sized(255)
	l.Full = tile
	verifyFinds(t, l, 256)
}

func TestEventsThatNoRootCoversAreFound(t *testing.T) {
	l := replaytest.Small()
	for n := range l.Heads {
		changed := l.Clone()
		changed.Heads = changed.Heads[:n]
		covered := int64(0)
		if n > 0 {
			covered = l.Heads[n-1].Size
		}
		verifyFinds(t, changed, covered+1)
	}
}

func TestRootOfNoSizeIsFound(t *testing.T) {
	for _, size := range []int64{0, -7} {
		l := replaytest.Small()
		l.Heads = slices.Insert(l.Heads, 0, replay.Root{Size: size, Hash: sha256.Sum256(nil)})
		verifyFinds(t, l, 1)
	}
}

func TestLogOfAnotherIDIsFound(t *testing.T) {
	l := replaytest.Small()
	l.Identity = "other-00000000"
	verifyFinds(t, l, 1)
	_, err := replay.Replay(t.Context(), l)
	altered(t, err, 1)
}

// TestEvidenceThatIsGoneIsAltered holds for both questions: it was written with
// the event that cites it, and nothing removes it.
func TestEvidenceThatIsGoneIsAltered(t *testing.T) {
	l := replaytest.Small()
	for d := range l.Kept {
		changed := l.Clone()
		delete(changed.Kept, d)
		seq := citing(t, l, d)
		verifyFinds(t, changed, seq)
		_, err := replay.Replay(t.Context(), changed)
		altered(t, err, seq)
	}
}

func TestEvidenceThatNoEventCitesIsFound(t *testing.T) {
	l := replaytest.Small()
	b := []byte("planted")
	l.Kept[sha256.Sum256(b)] = b
	verifyFinds(t, l, 0)
}

// TestDigestThatIsNoneIsFound cites evidence by what would not even fit.
func TestDigestThatIsNoneIsFound(t *testing.T) {
	l := replaytest.Small()
	i := findKind(t, l, "probe.answered")
	digest := bytes.SplitN(bytes.SplitN(l.Rows[i].Bytes, []byte(`"digest":"`), 2)[1], []byte(`"`), 2)[0]
	for _, bad := range [][]byte{bytes.ToUpper(digest), digest[:62], append(bytes.Clone(digest), "0000"...), nil, []byte("none")} {
		changed := l.Rewrite(int64(i+1), bytes.Replace(l.Rows[i].Bytes, digest, bad, 1))
		verifyFinds(t, changed, int64(i+1))
		_, err := replay.Replay(t.Context(), changed)
		altered(t, err, int64(i+1))
	}
}
