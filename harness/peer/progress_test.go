package peer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/harness/peer/decimal"
	"waybill/harness/peer/message"
)

// toldNotes keeps what was passed on, each with the time since it was made.
type toldNotes struct {
	begun time.Time
	mu    sync.Mutex
	notes []string
}

func (l *toldNotes) tell(call string, progress jsontext.Value) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, fmt.Sprint(time.Since(l.begun).Milliseconds(), " ", call, " ", string(progress)))
}

func (l *toldNotes) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.notes)
}

// awaited is a call that was written, and waits for at most deadline, after progress idle, in all limit.
func awaited(t *table, id, deadline, idle, limit int64) *request {
	r := t.add(domain.Send{At: at1, RequestID: id, Method: domain.MethodCall, Era: domain.EraModern, Call: "h/c", Deadline: deadline, Idle: idle,
		Limit: limit, Progress: true}, nil)
	t.begin(r)
	return r
}

func note(s string) map[string]jsontext.Value { return message.Members(jsontext.Value(s)) }

func (t *table) comes(id int64, progress string) bool {
	now, ok := decimal.Read(jsontext.Value(progress))
	return ok && t.progressed(id, now, note(`{"progress":`+progress+`}`))
}

func TestProgressPutsOffTheDeadlineButNotBeyondTheLimit(t *testing.T) {
	tests := []struct {
		name                  string
		deadline, idle, limit int64
		progress              []int64 // when, in milliseconds
		ends                  int64
	}{
		{"none", 1000, 600, 5000, nil, 1000},
		{"each moves the end", 1000, 600, 5000, []int64{900, 1400, 1900}, 2500},
		{"the limit holds", 1000, 600, 2000, []int64{900, 1400, 1900}, 2000},
		{"it never brings the end nearer", 1000, 600, 5000, []int64{100, 300}, 1000},
		{"no limit", 1000, 600, 0, []int64{900}, 1000},
		{"no idle time", 1000, 0, 5000, []int64{900}, 1000},
		{"a limit below the deadline", 1000, 600, 500, []int64{900}, 1000},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			table, got := testTable()
			awaited(table, 1, test.deadline, test.idle, test.limit)
			begun := time.Now()
			for i, at := range test.progress {
				pass(time.Duration(at)*time.Millisecond - time.Since(begun))
				if !table.comes(1, fmt.Sprint(i)) {
					t.Errorf("%s: progress at %d ms was ignored", test.name, at)
				}
			}
			pass(time.Duration(test.ends-1)*time.Millisecond - time.Since(begun))
			synctest.Wait()
			if len(got.data()) != 0 {
				t.Fatalf("%s: over before %d ms", test.name, test.ends)
			}
			pass(time.Millisecond)
			synctest.Wait()
			if want := []domain.Data{domain.DeadlinePassed{At: at1, RequestID: 1, Call: "h/c", Silent: true}}; !reflect.DeepEqual(got.data(), want) {
				t.Errorf("%s: reported %v after %d ms", test.name, got.data(), test.ends)
			}
		})
	}
}

// The timer may have fired when progress takes the lock before it.
func TestADeadlineThatWasPutOffDoesNotPassWhenItsOldTimerFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, got := testTable()
		r := awaited(table, 1, 1000, 1000, 5000)
		pass(500 * time.Millisecond)
		table.comes(1, "1")
		table.expire(r)
		if len(got.data()) != 0 || table.take(1) == nil {
			t.Errorf("reported %v", got.data())
		}
	})
}

func TestProgressThatProvesNothingIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, got := testTable()
		told := &toldNotes{begun: time.Now()}
		table.tell = told.tell
		awaited(table, 1, 1000, 600, 5000)
		silent := table.add(domain.Send{At: at1, RequestID: 2, Method: domain.MethodCall, Deadline: 9000, Idle: 600, Limit: 9000}, nil)
		table.begin(silent)
		table.add(domain.Send{At: at1, RequestID: 3, Method: domain.MethodCall, Deadline: 9000, Idle: 600, Limit: 9000, Progress: true}, nil)
		awaited(table, 4, 9000, 600, 9000)
		table.take(4)
		pass(900 * time.Millisecond)
		if !table.comes(1, "9007199254740992") || !table.comes(1, "9007199254740993") {
			t.Error("progress by one was ignored")
		}
		for _, p := range []struct {
			id int64
			at string
		}{{1, "9007199254740993"}, {1, "9007199254740993.0"}, {1, "9007199254740992"}, {1, "-1"}, {1, `"9"`}, {2, "1"}, {3, "1"}, {4, "1"}, {99, "1"}} {
			if table.comes(p.id, p.at) {
				t.Errorf("progress to %s under %d counts", p.at, p.id)
			}
		}
		pass(600 * time.Millisecond)
		synctest.Wait()
		if len(got.data()) != 1 || len(told.all()) != 2 {
			t.Errorf("reported %v, told %v", got.data(), told.all())
		}
	})
}

func TestProgressIsPassedOnTenTimesASecondAndTheLastIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, _ := testTable()
		told := &toldNotes{begun: time.Now()}
		table.tell = told.tell
		awaited(table, 1, 10_000, 0, 0)
		for i := range 250 {
			table.comes(1, fmt.Sprint(i))
			pass(time.Millisecond)
		}
		pass(time.Second)
		synctest.Wait()
		table.comes(1, "999")
		want := []string{`0 h/c {"progress":0}`, `100 h/c {"progress":99}`, `200 h/c {"progress":199}`, `300 h/c {"progress":249}`, `1250 h/c {"progress":999}`}
		got := told.all()
		// At the same instant the timer and the note of that instant come in either order.
		for i, alternative := range map[int]string{1: `100 h/c {"progress":100}`, 2: `200 h/c {"progress":200}`} {
			if len(got) > i && got[i] == alternative {
				want[i] = alternative
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("told %q", got)
		}
	})
}

func TestNothingIsPassedOnAfterTheOutcome(t *testing.T) {
	ends := map[string]func(*table, *request){
		"answered":  func(t *table, _ *request) { t.take(1) },
		"withdrawn": func(t *table, _ *request) { t.withdraw(1) },
		"lost":      func(t *table, _ *request) { t.fail(domain.CodeTransportLost) },
		"oversized": func(t *table, _ *request) { t.oversized(1) },
		"late":      func(*table, *request) { pass(40 * time.Millisecond) },
	}
	for name, end := range ends {
		synctest.Test(t, func(t *testing.T) {
			table, _ := testTable()
			told := &toldNotes{begun: time.Now()}
			table.tell = told.tell
			r := awaited(table, 1, 40, 0, 0)
			table.comes(1, "1")
			table.comes(1, "2")
			end(table, r)
			synctest.Wait()
			table.passLate(r) // a timer that had fired
			pass(time.Second)
			synctest.Wait()
			if got := told.all(); !slices.Equal(got, []string{`0 h/c {"progress":1}`}) || r.progress.late != nil {
				t.Errorf("%s: told %q", name, got)
			}
		})
	}
}

func TestWhatIsPassedOnIsWhatThePeerWroteAndNoMore(t *testing.T) {
	long := `"` + strings.Repeat("x", maxProgress) + `"`
	tests := []struct{ in, want string }{
		{`{"progressToken":1,"progress":1.10,"total":1E+2,"message":"a\u00e9\/"}`, `{"progress":1.10,"total":1E+2,"message":"a\u00e9\/"}`},
		{`{"progress":1,"total":"2","message":{"a":1},"x":3,"_meta":{}}`, `{"progress":1}`},
		{`{"progress":1,"total":null,"message":null}`, `{"progress":1}`},
		{`{"message":` + long + `,"progress":1,"total":3}`, `{"progress":1,"total":3}`},
	}
	for _, test := range tests {
		if got := string(progressValue(note(test.in))); got != test.want {
			t.Errorf("%.60s: %s", test.in, got)
		}
	}
}

// A peer that plays by no rules: its connection is kept, and its calls have their answers.
func TestProgressFromAPeer(t *testing.T) {
	say := func(params string) string {
		return `say {"jsonrpc":"2.0","method":"notifications/progress","params":` + params + `}`
	}
	told := &toldNotes{begun: time.Now()}
	b := started(t, func(c *Config) { c.Progress = told.tell }, "read",
		say(`{"progressToken":1,"progress":1}`), say(`{"progressToken":"1","progress":2,"message":"m"}`),
		say(`{"progressToken":1,"progress":2}`), say(`{"progressToken":1.0,"progress":3}`), say(`{"progressToken":"01","progress":3}`),
		say(`{"progressToken":"tool-call-1","progress":0}`), say(`{"progressToken":null,"progress":3}`), say(`{"progress":3}`), say(`[]`),
		say(`{"progressToken":1,"progress":"3"}`), say(`{"progressToken":1}`), `say {"jsonrpc":"2.0","method":"notifications/progress"}`,
		"say "+answerLine("$ID", "{}"), say(`{"progressToken":1,"progress":4}`),
		"read", say(`{"progressToken":2,"progress":1}`), "say "+answerLine("$ID", "{}"), "untilEOF")
	b.modern()
	call := domain.Send{Method: domain.MethodCall, Era: domain.EraModern, Call: "h/c", Tool: "t", Progress: true}
	b.ask(call, "{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	call.Progress = false
	b.ask(call, "{}")
	await[domain.CallAnswered](t, b.ledger, 2)
	if line := b.notes(1)[0]; !strings.Contains(line, `,"progressToken":1}}}`) {
		t.Errorf("the peer read %s", line)
	}
	b.stopped()
	if n := b.noises(); n["progress_ignored"] != 12 || len(n) != 1 {
		t.Errorf("noise is %v", n)
	}
	if got := told.all(); len(got) == 0 || len(got) > 2 || !strings.HasSuffix(got[0], ` h/c {"progress":1}`) {
		t.Errorf("told %q", got)
	}
}
