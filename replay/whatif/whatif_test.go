package whatif

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/replay"
	"waybill/replay/replaytest"
)

func ask(t *testing.T, l replay.Source, settings ...string) ([]Row, Found) {
	t.Helper()
	var parsed []Setting
	for _, s := range settings {
		x, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, x)
	}
	var rows []Row
	found, err := Ask(t.Context(), l, parsed, func(r Row) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, found
}

// Where nothing is changed nothing comes out otherwise, in any good log there ever was.
func TestNothingIsOtherwiseWhereNothingIsChanged(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "good-*.jsonl"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d logs, %v", len(files), err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, l, err := replaytest.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		rows, found := ask(t, l)
		if len(rows) > 0 || found.Unheard > 0 || found.Size != int64(len(l.Rows)) {
			t.Errorf("%s: %+v, %+v", name, rows, found)
		}
	}
}

// has finds a row about a subject.
func has(rows []Row, subject, recorded, instead string) bool {
	for _, r := range rows {
		if strings.Contains(r.Subject, subject) && strings.Contains(r.Recorded, recorded) && strings.Contains(r.Instead, instead) {
			return true
		}
	}
	return false
}

func TestAnotherPolicyOfCollisions(t *testing.T) {
	l := replaytest.Small()
	rows, found := ask(t, l, "collision=prefix-always")
	if !has(rows, "call ", "to ", "refused unknown_tool") || found.Calls != 1 {
		t.Errorf("%+v, %+v", rows, found)
	}
	rows, _ = ask(t, l, "collision=reject-on-collision")
	if !has(rows, "configuration", "", "rejected collision_rejected") {
		t.Errorf("%+v", rows)
	}
}

// Names decide nothing about peers: whatever a policy of collisions makes of calls, every
// peer is what it was, also after calls that were not sent, restarts, and in other lives.
func TestAPolicyOfCollisionsChangesNoPeer(t *testing.T) {
	for name, l := range map[string]*replaytest.Log{"full": replaytest.Full(), "fire": replaytest.Fire(), "lists": replaytest.Lists(), "http": replaytest.HTTP()} {
		rows, found := ask(t, l, "collision=prefix-always")
		if found.Calls == 0 {
			t.Errorf("%s: no call is otherwise", name)
		}
		for _, r := range rows {
			if strings.HasPrefix(r.Subject, "peer ") && strings.Contains(r.Instead, "legacy ruled out") || strings.HasPrefix(r.Subject, "list of") && r.Instead == "" {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

func TestALegacyPeerThatIsAllowedOrNot(t *testing.T) {
	l := replaytest.Full()
	legacy := ""
	for _, e := range l.Events() {
		if d, ok := e.Data.(domain.EraDetermined); ok && d.Era == domain.EraLegacy {
			legacy = d.Peer
		}
	}
	rows, found := ask(t, l, "allow_legacy."+legacy+"=false")
	if legacy == "" || !has(rows, "peer "+legacy, "initialize sent by allow_legacy", "closed ambiguous") || found.Unheard == 0 {
		t.Errorf("%q: %+v, %+v", legacy, rows, found)
	}
}

func TestSettingsAreReadStrictly(t *testing.T) {
	for _, s := range []string{"", "collision", "collision=random", "collision.a=prefix-always", "allow_legacy=maybe", "nothing=1", "call_timeout=5", "resends=-1", "separator=#"} {
		if _, err := Parse(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
	for _, s := range []string{"collision=prefix-always", "allow_legacy=true", "allow_legacy.notes=false", "call_timeout.a=5s", "on_tool_change=quarantine", "stale_lists=1m"} {
		if _, err := Parse(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestASettingForNoPeerIsAMistake(t *testing.T) {
	x, err := Parse("resends.nobody=2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(t.Context(), replaytest.Small(), []Setting{x}, func(Row) error { return nil }); !errors.Is(err, ErrNoPeer) {
		t.Errorf("%v", err)
	}
}

func TestAskEndsWhenItIsToldTo(t *testing.T) {
	s, err := Parse("collision=prefix-always")
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	if _, err := Ask(t.Context(), replaytest.Small(), []Setting{s}, func(Row) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}
