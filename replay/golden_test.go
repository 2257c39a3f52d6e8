package replay_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"waybill/domain"
	"waybill/replay"
	"waybill/replay/replaytest"
)

var record = flag.Bool("record", false, "write the log files of testdata that are missing; none is ever written again")

// made is a log file of testdata as it was first made. Its like are kept for
// ever: logs from any release must verify and replay as they did.
type made struct {
	name  string
	about string
	log   func(t *testing.T) *replaytest.Log
	want  *replaytest.Want
}

var goodLogs = []made{
	{"good-empty", "a log in which nothing has happened", func(t *testing.T) *replaytest.Log { return sized(0) }, nil},
	{"good-small", "two modern peers that share a tool, and two calls", func(t *testing.T) *replaytest.Log { return replaytest.Small() }, nil},
	{"good-rejected", "a configuration that is rejected for a collision", func(t *testing.T) *replaytest.Log { return replaytest.Rejected() }, nil},
	{"good-full", "two lives, a crash between them, and every kind of decision but config.rejected", func(t *testing.T) *replaytest.Log { return replaytest.Full() }, nil},
	{"good-fire", "calls and peers under fire: sent again, held, given up, and an operator's commands", func(t *testing.T) *replaytest.Log { return replaytest.Fire() }, nil},
	{"good-kept", "calls whose payloads are kept, and erased in each way", func(t *testing.T) *replaytest.Log { return replaytest.Kept() }, nil},
	{"good-lists", "lists that change, in several authorization contexts, with subscriptions and tools in quarantine", func(t *testing.T) *replaytest.Log { return replaytest.Lists() }, nil},
	{"good-http", "endpoints: modern, legacy with sessions that are gone, unauthorized, unavailable, ambiguous, elsewhere; and hosts", func(t *testing.T) *replaytest.Log { return replaytest.HTTP() }, nil},
	{"good-keys", "calls under idempotency keys: repeated, refused, held, lost, erased, expired; and traces", func(t *testing.T) *replaytest.Log { return replaytest.Keys() }, nil},
	{"good-tile", "one complete tile, and one event more", func(t *testing.T) *replaytest.Log { return sized(257) }, nil},
}

var badLogs = []made{
	forgedLog("era.determined", 23),
	forgedLog("era.refused", 26),
	forgedLog("collision.decided", 45),
	forgedLog("namespace.merged", 46),
	forgedLog("call.routed", 48),
	forgedLog("call.settled", 52),
	forgedLog("peer.admitted", 3),
	forgedLog("peer.refused", 5),
	forgedLog("peer.launched", 4),
	forgedLog("peer.restarted", 71),
	forgedLog("peer.quarantined", 162),
	forgedLog("probe.issued", 13),
	forgedLog("legacy.excluded", 114),
	forgedLog("list.requested", 24),
	forgedLog("catalog.accepted", 39),
	forgedLog("catalog.refused", 121),
	forgedLog("tool.rejected", 43),
	forgedLog("name.moved", 125),
	forgedLog("call.refused", 56),
	forgedLog("call.abandoned", 62),
	forgedLog("answer.dropped", 65),
	forgedLog("peer.abandoned", 97),
	forgedLog("health.requested", 90),
	forgedLog("command.refused", 93),
	forgedLog("call.resent", 29),
	forgedLog("call.held", 60),
	forgedLog("payloads.erased", 38),
	forgedLog("subscription.requested", 19),
	forgedLog("subscription.opened", 31),
	forgedLog("subscription.closed", 38),
	forgedLog("list.deferred", 53),
	forgedLog("cache.decided", 108),
	forgedLog("tool.changed", 67),
	forgedLog("tool.flagged", 34),
	forgedLog("name.flagged", 47),
	forgedLog("tool.approved", 78),
	forgedLog("call.joined", 27),
	{"bad-evidence-swapped", "the era rests on an answer that was swapped for another, well hashed", swappedLog, &replaytest.Want{By: "replay", Code: replay.Different, Seq: 12}},
	{"bad-decision-gone", "the end of a call was taken out", func(t *testing.T) *replaytest.Log {
		return editedSmall(t, "call.settled", func(list []domain.Event, i int) []domain.Event { return slices.Delete(list, i, i+1) })
	}, &replaytest.Want{By: "replay", Code: replay.Missing, Seq: 26}},
	{"bad-decision-added", "a call was refused once more than it was", func(t *testing.T) *replaytest.Log {
		return editedSmall(t, "call.refused", func(list []domain.Event, i int) []domain.Event {
			again := list[i]
			again.Seq = 0
			return slices.Insert(list, i+1, again)
		})
	}, &replaytest.Want{By: "replay", Code: replay.Extra, Seq: 29}},
	{"bad-decisions-exchanged", "a collision was decided after the merge that rests on it", func(t *testing.T) *replaytest.Log {
		return editedSmall(t, "collision.decided", func(list []domain.Event, i int) []domain.Event {
			list[i], list[i+1] = list[i+1], list[i]
			return list
		})
	}, &replaytest.Want{By: "replay", Code: replay.Different, Seq: 21}},
	{"bad-decision-disguised", "an era passes for an observation", func(t *testing.T) *replaytest.Log {
		return rewrittenSmall(t, "era.determined", `"cause":"\d+","rules":"1",`, ``)
	}, &replaytest.Want{By: "verify", Code: "altered", Seq: 12}},
	{"bad-kind", "an event of a kind that does not exist", func(t *testing.T) *replaytest.Log {
		return rewrittenSmall(t, "call.routed", `"type":"call.routed"`, `"type":"call.teleported"`)
	}, &replaytest.Want{By: "verify", Code: "undecidable", Seq: 24}},
	{"bad-rules", "a decision by rules that do not exist", func(t *testing.T) *replaytest.Log {
		return rewrittenSmall(t, "call.routed", `"rules":"1"`, `"rules":"2"`)
	}, &replaytest.Want{By: "verify", Code: "undecidable", Seq: 24}},
	{"bad-byte", "one letter of an event was changed", func(t *testing.T) *replaytest.Log {
		l := replaytest.Small()
		i := findKind(t, l, "call.settled")
		l.Rows[i].Bytes = bytes.Replace(l.Rows[i].Bytes, []byte(`"yes"`), []byte(`"yet"`), 1)
		return l
	}, &replaytest.Want{By: "verify", Code: "altered", Seq: 26}},
	{"bad-row-gone", "an event is gone", func(t *testing.T) *replaytest.Log {
		l := replaytest.Small()
		l.Rows = slices.Delete(l.Rows, 22, 23)
		return l
	}, &replaytest.Want{By: "verify", Code: "altered", Seq: 23}},
	{"bad-tail-gone", "the last transaction is gone, its root is left", func(t *testing.T) *replaytest.Log {
		l := replaytest.Small()
		l.Rows = l.Rows[:26]
		return l
	}, &replaytest.Want{By: "verify", Code: "altered", Seq: 27}},
	{"bad-evidence-gone", "a list that an event cites is gone", func(t *testing.T) *replaytest.Log {
		l := replaytest.Small()
		for d := range l.Kept {
			if citing(t, l, d) == 17 {
				delete(l.Kept, d)
				break
			}
		}
		return l
	}, &replaytest.Want{By: "verify", Code: "altered", Seq: 17}},
}

// forgedLog is a log that has the kind, up to the transaction with a forged decision.
func forgedLog(kind string, seq int64) made {
	return made{"bad-forged-" + kind, "a forged " + kind + " in a well-made log", func(t *testing.T) *replaytest.Log {
		i := slices.IndexFunc(forgeries, func(f forgery) bool { return f.kind == kind })
		l := logWith(kind)
		at := findKind(t, l, kind)
		return l.Forge(func(list []domain.Event) []domain.Event {
			list[at].Data = forgeries[i].change(list[at].Data)
			return list
		}).Cut(int64(at + 1))
	}, &replaytest.Want{By: "replay", Code: replay.Different, Seq: seq}}
}

func swappedLog(t *testing.T) *replaytest.Log {
	l := replaytest.Small()
	return reworded(t, l, findKind(t, l, "probe.answered"), func(s string) string {
		return string(regexp.MustCompile(`"result":.*`).ReplaceAll([]byte(s), []byte(`"error":{"code":-32601,"message":"Method not found"}}`)))
	})
}

func editedSmall(t *testing.T, kind string, edit func(list []domain.Event, i int) []domain.Event) *replaytest.Log {
	l := replaytest.Small()
	i := findKind(t, l, kind)
	return l.Forge(func(list []domain.Event) []domain.Event { return edit(list, i) })
}

func rewrittenSmall(t *testing.T, kind, from, to string) *replaytest.Log {
	l := replaytest.Small()
	i := findKind(t, l, kind)
	return l.Rewrite(int64(i+1), regexp.MustCompile(from).ReplaceAll(l.Rows[i].Bytes, []byte(to)))
}

func logFile(name string) string { return filepath.Join("testdata", name+".jsonl") }

func TestLogFilesOfTestdataAreAllThere(t *testing.T) {
	for _, m := range slices.Concat(goodLogs, badLogs, httpLogs) {
		if *record {
			m.record(t)
		}
		if _, err := os.Stat(logFile(m.name)); err != nil {
			t.Errorf("run this test with -record: %v", err)
		}
	}
}

func (m made) record(t *testing.T) {
	b, err := m.log(t).Encode(replaytest.Header{About: m.about, Want: m.want})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(logFile(m.name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	t.Logf("wrote %s", f.Name())
}

// TestLogFilesOfTestdataAreJudgedAsEver examines every log file there is, those
// of earlier releases included.
func TestLogFilesOfTestdataAreJudgedAsEver(t *testing.T) {
	files, err := filepath.Glob(logFile("*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < len(goodLogs)+len(badLogs)+len(httpLogs) {
		t.Errorf("testdata has %d log files", len(files))
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			h, l, err := replaytest.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := l.Encode(h); err != nil || !bytes.Equal(again, b) {
				t.Errorf("the file is written otherwise than it was read, error %v", err)
			}
			judge(t, filepath.Base(name), h.Want, l)
		})
	}
}

func judge(t *testing.T, name string, want *replaytest.Want, l *replaytest.Log) {
	t.Helper()
	var u *replay.UndecidableError
	_, err := replay.Verify(t.Context(), l)
	switch {
	case (want == nil) != bytes.HasPrefix([]byte(name), []byte("good-")):
		t.Fatalf("the first line wants %+v", want)
	case want == nil:
		verified(t, l)
		replayed(t, l)
	case want.By == "replay":
		diverged(t, l, want.Code, want.Seq)
	case want.Code == "altered":
		altered(t, err, want.Seq)
	case want.Code != "undecidable" || !errors.As(err, &u) || u.Seq != want.Seq:
		t.Errorf("verify says %v, want %+v", err, want)
	}
}
