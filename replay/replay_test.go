package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/replay"
	"waybill/replay/replaytest"
)

func TestWholeLogsReplay(t *testing.T) {
	for _, l := range []*replaytest.Log{replaytest.Small(), replaytest.Full(), replaytest.Rejected(), replaytest.Calls(600), sized(0)} {
		r, v := replayed(t, l), verified(t, l)
		if r.Log != v.Log || r.Size != v.Size || r.Root != v.Root {
			t.Errorf("replay came to %s at %d with root %x, verify to %s at %d with root %x", r.Log, r.Size, r.Root, v.Log, v.Size, v.Root)
		}
		decisions := int64(0)
		for _, e := range l.Events() {
			if e.IsDecision() {
				decisions++
			}
		}
		if r.Decisions != decisions {
			t.Errorf("replay counts %d decisions of %d", r.Decisions, decisions)
		}
	}
}

// TestReplayComesToTheStateOfTheService compares what people can see of both.
func TestReplayComesToTheStateOfTheService(t *testing.T) {
	r := replayed(t, replaytest.Full()).State.Report(replaytest.ID)
	if n := len(r.Peers); n != 4 || r.Namespaces[0].Generation != 2 || r.Collisions[0].Winner.Peer != "atlas" {
		t.Errorf("%d peers, namespaces %+v, collisions %+v", n, r.Namespaces, r.Collisions)
	}
}

// reworded replaces evidence, and its digest and size wherever they are cited,
// in a log whose tree is made anew: every byte hashes to what is cited.
func reworded(t *testing.T, l *replaytest.Log, i int, change func(string) string) *replaytest.Log {
	t.Helper()
	list := l.Events()
	old := list[i].Evidence
	now := []byte(change(string(old)))
	if bytes.Equal(old, now) {
		t.Fatalf("nothing changed in %s", old)
	}
	was, is := domain.RefTo(old), domain.RefTo(now)
	return l.Forge(func(list []domain.Event) []domain.Event {
		for k := range list {
			switch d := list[k].Data.(type) {
			case domain.ProbeAnswered:
				if d.Frame == was {
					list[k].Data, list[k].Evidence = domain.ProbeAnswered{At: d.At, Frame: is}, now
				}
			case domain.CatalogListed:
				if d.Frame == was {
					list[k].Data, list[k].Evidence = domain.CatalogListed{At: d.At, RequestID: d.RequestID, Frame: is}, now
				}
			case domain.ConfigLoaded:
				if d.Config == was {
					list[k].Data, list[k].Evidence = domain.ConfigLoaded{Config: is, Peers: d.Peers}, now
				}
			case domain.EraDetermined:
				d.Evidence = strings.Replace(d.Evidence, was.Digest, is.Digest, 1)
				list[k].Data = d
			case domain.CatalogAccepted:
				for n := range d.Pages {
					d.Pages[n] = strings.Replace(d.Pages[n], was.Digest, is.Digest, 1)
				}
			}
		}
		return list
	})
}

// TestSwappedEvidenceIsFound swaps evidence for other evidence, well hashed and
// cited throughout: the decision that stood on it does not follow any more.
func TestSwappedEvidenceIsFound(t *testing.T) {
	good := replaytest.Small()
	for _, c := range []struct {
		cited, decision string
		change          func(string) string
		again           string
	}{
		{"probe.answered", "era.determined", func(s string) string {
			return s[:strings.Index(s, `"result"`)] + `"error":{"code":-32601,"message":"Method not found"}}`
		}, `"type":"era.refused"`},
		{"probe.answered", "era.determined", func(s string) string {
			return strings.Replace(s, "2026-07-28", "2027-01-01", 1)
		}, `"code":"no_common_version"`},
		{"catalog.listed", "catalog.accepted", func(s string) string {
			return strings.Replace(s, `"name":"search"`, `"name":"delete"`, 1)
		}, `"type":"catalog.accepted"`},
		{"config.loaded", "peer.admitted", func(s string) string {
			return regexp.MustCompile(`"pin":"[0-9a-f]+"`).ReplaceAllString(s, `"pin":"`+strings.Repeat("0", 64)+`"`)
		}, strings.Repeat("0", 64)},
	} {
		forged := reworded(t, good, findKind(t, good, c.cited), c.change)
		d := diverged(t, forged, replay.Different, int64(findKind(t, good, c.decision)+1))
		if !strings.Contains(string(d.Redecided), c.again) || !strings.Contains(string(d.Recorded), c.decision) {
			t.Errorf("recorded %s\ndecided again %s", d.Recorded, d.Redecided)
		}
	}
}

// TestDecisionThatPassesForAnObservationIsAltered strips a forged decision of
// its cause: it would be folded and never decided again.
func TestDecisionThatPassesForAnObservationIsAltered(t *testing.T) {
	l := replaytest.Full()
	for _, kind := range []string{"call.settled", "era.determined", "namespace.merged"} {
		i := findKind(t, l, kind)
		stripped := regexp.MustCompile(`"cause":"\d+","rules":"1",`).ReplaceAll(l.Rows[i].Bytes, nil)
		forged := l.Rewrite(int64(i+1), stripped)
		verifyFinds(t, forged, int64(i+1))
		_, err := replay.Replay(t.Context(), forged)
		altered(t, err, int64(i+1))
	}
}

func TestEnvelopeThatNoWaybillWritesIsAltered(t *testing.T) {
	l := replaytest.Small()
	for seq, row := range l.Rows {
		forged := l.Rewrite(int64(seq+1), append(bytes.Clone(row.Bytes), '\n'))
		verifyFinds(t, forged, int64(seq+1))
		_, err := replay.Replay(t.Context(), forged)
		altered(t, err, int64(seq+1))
	}
}

// TestWhatANewerWaybillWroteIsUndecidable says so at the event, and nothing of
// what stands before it is in doubt.
func TestWhatANewerWaybillWroteIsUndecidable(t *testing.T) {
	l := replaytest.Full()
	for _, c := range []struct{ kind, from, to, what string }{
		{"call.routed", `"type":"call.routed"`, `"type":"call.teleported"`, `"call.teleported"`},
		{"call.routed", `"rules":"1"`, `"rules":"2"`, "rules 2"},
		{"call.routed", `"dataversion":"1"`, `"dataversion":"2"`, "data version"},
		{"probe.answered", `"dataversion":"1"`, `"dataversion":"2"`, "data version"},
		{"service.started", `"specversion":"1.0"`, `"specversion":"1.1"`, "CloudEvents"},
	} {
		i := findKind(t, l, c.kind)
		newer := l.Rewrite(int64(i+1), bytes.Replace(l.Rows[i].Bytes, []byte(c.from), []byte(c.to), 1))
		_, verifyErr := replay.Verify(t.Context(), newer)
		r, replayErr := replay.Replay(t.Context(), newer)
		for _, err := range []error{verifyErr, replayErr} {
			var u *replay.UndecidableError
			if !errors.As(err, &u) || u.Seq != int64(i+1) || !strings.Contains(u.What, c.what) {
				t.Errorf("%s: got %v", c.to, err)
			}
		}
		if r.Size != int64(i) || r.Agreed != r.Decisions {
			t.Errorf("%s: replay came to %d events of %d, %d of %d agree", c.to, r.Size, i, r.Agreed, r.Decisions)
		}
	}
}

// failing is a log of which one kind of row cannot be read.
type failing struct {
	*replaytest.Log
	what string
}

var errRead = errors.New("the disk is on fire")

func (f failing) fail(what string) error {
	if what == f.what {
		return errRead
	}
	return nil
}

func (f failing) Records(ctx context.Context, after int64, max int) ([]replay.Record, error) {
	list, _ := f.Log.Records(ctx, after, max)
	return list, f.fail("records")
}

func (f failing) Roots(ctx context.Context, after int64, max int) ([]replay.Root, error) {
	list, _ := f.Log.Roots(ctx, after, max)
	return list, f.fail("roots")
}

func (f failing) Tiles(ctx context.Context, level int, after int64, max int) ([]replay.Tile, error) {
	list, _ := f.Log.Tiles(ctx, level, after, max)
	return list, f.fail("tiles")
}

func (f failing) Evidence(ctx context.Context, digest [32]byte) ([]byte, error) {
	b, _ := f.Log.Evidence(ctx, digest)
	return b, f.fail("evidence")
}

func (f failing) Digests(ctx context.Context, after [32]byte, max int) ([][32]byte, error) {
	list, _ := f.Log.Digests(ctx, after, max)
	return list, f.fail("digests")
}

// TestLogThatCannotBeReadIsNotAltered keeps a disk error from being taken for
// an alteration, and from being taken for a whole log.
func TestLogThatCannotBeReadIsNotAltered(t *testing.T) {
	l := replaytest.Calls(300)
	for _, what := range []string{"records", "roots", "tiles", "evidence", "digests"} {
		_, err := replay.Verify(t.Context(), failing{l, what})
		notJudged(t, "verify without "+what, err)
	}
	for _, what := range []string{"records", "evidence"} {
		_, err := replay.Replay(t.Context(), failing{l, what})
		notJudged(t, "replay without "+what, err)
	}
}

func notJudged(t *testing.T, what string, err error) {
	t.Helper()
	var a *replay.AlteredError
	var u *replay.UndecidableError
	if !errors.Is(err, errRead) || errors.As(err, &a) || errors.As(err, &u) {
		t.Errorf("%s: got %v", what, err)
	}
}

// growing is a log that grows from one transaction to the whole at the n-th
// read, and gives few rows at a time.
type growing struct {
	*replaytest.Log
	whole *replaytest.Log
	reads int
}

func (g *growing) read(max *int) *replaytest.Log {
	*max = min(*max, 100)
	if g.reads--; g.reads < 0 {
		g.Log = g.whole
	}
	return g.Log
}

func (g *growing) Records(ctx context.Context, after int64, max int) ([]replay.Record, error) {
	return g.read(&max).Records(ctx, after, max)
}

func (g *growing) Roots(ctx context.Context, after int64, max int) ([]replay.Root, error) {
	return g.read(&max).Roots(ctx, after, max)
}

func (g *growing) Tiles(ctx context.Context, level int, after int64, max int) ([]replay.Tile, error) {
	return g.read(&max).Tiles(ctx, level, after, max)
}

func (g *growing) Evidence(ctx context.Context, digest [32]byte) ([]byte, error) {
	most := 0
	return g.read(&most).Evidence(ctx, digest)
}

func (g *growing) Digests(ctx context.Context, after [32]byte, max int) ([][32]byte, error) {
	return g.read(&max).Digests(ctx, after, max)
}

// TestLogThatGrowsMeanwhileIsWhole lets a writer append at every moment at which
// the log is read.
func TestLogThatGrowsMeanwhileIsWhole(t *testing.T) {
	whole := replaytest.Calls(300)
	roots := map[int64][32]byte{0: verified(t, sized(0)).Root}
	for _, h := range whole.Heads {
		roots[h.Size] = h.Hash
	}
	for _, part := range []*replaytest.Log{sized(0), whole.Cut(9), whole.Cut(254), whole.Cut(299)} {
		for reads := range 40 {
			v := verified(t, &growing{Log: part, whole: whole, reads: reads})
			r := replayed(t, &growing{Log: part, whole: whole, reads: reads})
			for _, got := range []struct {
				size int64
				root [32]byte
			}{{v.Size, v.Root}, {r.Size, r.Root}} {
				if root, ok := roots[got.size]; !ok || root != got.root || got.size < int64(len(part.Rows)) {
					t.Fatalf("grown from %d at read %d: came to %d with root %x, want %x", len(part.Rows), reads, got.size, got.root, root)
				}
			}
		}
	}
}

func TestErrorsNameTheEvent(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&replay.AlteredError{Seq: 9, What: "x"}, "altered at event 9: x"},
		{&replay.AlteredError{What: "x"}, "altered: x"},
		{&replay.UndecidableError{Seq: 9, What: "x"}, "undecidable at event 9: x"},
	} {
		if got := fmt.Sprint(c.err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
