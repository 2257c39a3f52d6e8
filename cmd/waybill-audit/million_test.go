package main

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/events"
	"waybill/replay"
	"waybill/replay/replaytest"
)

// million makes a long log and returns its path.
func million(t testing.TB, size int64, seed uint64) (string, replaytest.Census) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	c, err := replaytest.Million(path, size, seed)
	if err != nil {
		t.Fatal(err)
	}
	return path, c
}

// TestLongLog holds the generator to its word, and verify and replay to each other, at
// the least size; BenchmarkMillion does the same with a long one.
func TestLongLog(t *testing.T) {
	const size = replaytest.MillionLeast
	path, census := million(t, size, 1)

	out, _ := wants(t, 0, "verify", "--json", path)
	verified := document[verifyDoc](t, out)
	out, _ = wants(t, 0, "replay", "--json", path)
	replayed := document[replayDoc](t, out)
	if verified.Size != size || replayed.Size != size || replayed.Agreed != replayed.Decisions || replayed.Root != verified.Root {
		t.Errorf("verify found %+v, replay %+v", verified, replayed)
	}
	if verified.Checkpoints != census.Checkpoints || census.Checkpoints == 0 || verified.Evidence == 0 {
		t.Errorf("verify found %+v; the generator signed %d checkpoints", verified, census.Checkpoints)
	}
	allAgree(t, path)

	var promised []string
	for _, k := range events.Kinds() {
		if !slices.Contains(replaytest.MillionWithout, k) {
			promised = append(promised, k)
		}
	}
	if made := slices.Sorted(maps.Keys(census.Kinds)); !slices.Equal(made, promised) {
		t.Errorf("kinds: made %q\nwant %q", made, promised)
	}
	for _, s := range []domain.Status{domain.StatusComplete, domain.StatusToolError, domain.StatusInputRequired, domain.StatusProtocolError,
		domain.StatusRefused, domain.StatusTimedOut, domain.StatusCancelled, domain.StatusLost} {
		if census.Statuses[s] == 0 {
			t.Errorf("no call is %s", s)
		}
	}
	if got := census.Calls; got < size/10-size/100 || got > size/10 {
		t.Errorf("%d calls among %d events", got, size)
	}
	if got := census.Transactions; got < size/200 || got > size/10 {
		t.Errorf("%d transactions for %d events", got, size)
	}
}

// allAgree replays as replay --all does, and looks at the census once more in the log.
func allAgree(t *testing.T, path string) {
	t.Helper()
	l, err := logfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := replay.ReplayAll(t.Context(), l, func(d *replay.DivergedError) error { return d })
	if err != nil || r.Agreed != r.Decisions {
		t.Errorf("replay of everything: %+v, %v", r, err)
	}
	met := map[string]int{}
	for _, c := range r.State.Config.Peers {
		met[c.Transport+" "+string(r.State.Peer(c.Name).Era)]++
	}
	if len(r.State.Config.Peers) != 20 || met["stdio modern"] < 3 || met["stdio legacy"] == 0 || met["http modern"] == 0 || met["http legacy"] == 0 {
		t.Errorf("at the end of the log: %v", met)
	}
}

// TestLongLogIsTheSameTwice holds the generator to one log for one seed, to the byte,
// and to another for another.
func TestLongLogIsTheSameTwice(t *testing.T) {
	whole := func(seed uint64) string {
		path, _ := million(t, replaytest.MillionLeast, seed)
		out, _ := wants(t, 0, "export", "--whole", path)
		return out
	}
	first := whole(1)
	if whole(1) != first {
		t.Error("one seed gave two logs")
	}
	if whole(2) == first {
		t.Error("two seeds gave one log")
	}
}
