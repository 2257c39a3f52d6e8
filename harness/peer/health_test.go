package peer

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

func TestAnyAnswerToARequestForASignOfLifeIsOne(t *testing.T) {
	answers := []string{answerLine("$ID", discoverResult), answerLine("$ID", "null"), `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"no"}}`,
		`{"id":$ID}`, `{"jsonrpc":"2.0","id":$ID,"result":{"x":"` + strings.Repeat("x", 5000) + `"}}`}
	for _, era := range []domain.Era{domain.EraModern, domain.EraLegacy} {
		method := domain.MethodDiscover
		if era == domain.EraLegacy {
			method = domain.MethodPing
		}
		var steps []string
		for _, a := range answers {
			steps = append(steps, "read", "say "+a)
		}
		b := started(t, func(c *Config) { c.FrameLimit = 4000 }, append(steps, "untilEOF")...)
		b.Do(domain.SelectEra{At: at1, Era: era, Version: "x"}, nil)
		if era == domain.EraLegacy {
			b.notes(1) // initialized; it has the first answer, under no id
		}
		var want []domain.HealthAnswered
		for range answers {
			want = append(want, domain.HealthAnswered{At: at1, RequestID: b.askWith(domain.Send{Method: method, Era: era}, nil)})
		}
		if era == domain.EraLegacy {
			want = want[:len(want)-1]
		}
		if got, _ := await[domain.HealthAnswered](t, b.ledger, len(want)); !slices.Equal(got, want) {
			t.Errorf("%s era: %v", era, got)
		}
		if n := len(of[domain.ProbeAnswered](b.ledger)); n != 0 {
			t.Errorf("%s era: %d answers to a probe were reported", era, n)
		}
	}
}

func TestASignOfLifeThatDoesNotComeIsADeadlineAndCancelsNothing(t *testing.T) {
	b := started(t, nil, "skip 2", "say "+answerLine("1", discoverResult), "say "+answerLine("$ID", "{}"), "untilEOF")
	b.modern()
	b.ask(domain.Send{Method: domain.MethodDiscover, Era: domain.EraModern, Deadline: 300}, "")
	passed, _ := await[domain.DeadlinePassed](t, b.ledger, 1)
	b.Do(domain.Withdraw{At: at1, RequestID: 1, Reason: "x"}, nil)
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	b.stopped()
	if lines := b.notes(2); !strings.Contains(lines[1], "tools/call") || passed[0].RequestID != 1 {
		t.Errorf("the peer read %q after %+v", lines, passed[0])
	}
	if n := b.noises(); n["late_answer"] != 1 || len(of[domain.ProbeAnswered](b.ledger))+len(of[domain.HealthAnswered](b.ledger)) != 0 {
		t.Errorf("noise is %v, reported %s", n, b.story())
	}
}

func TestAPeerIsSilentThatWritesNothingFromTheRequestOn(t *testing.T) {
	tests := []struct {
		name                 string
		began, before, after bool
		want                 bool
	}{
		{"nothing at all", true, false, false, true},
		{"only before", true, true, false, true},
		{"a byte since", true, false, true, false},
		{"never written", false, false, false, false},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			table, got := testTable()
			r := table.add(send(1, domain.MethodCall, 10), nil)
			if test.before {
				table.heard.Add(1)
			}
			if test.began {
				table.begin(r)
			}
			if test.after {
				table.heard.Add(1)
			}
			pass(time.Second)
			synctest.Wait()
			if d := of[domain.DeadlinePassed](got); len(d) != 1 || d[0].Silent != test.want {
				t.Errorf("%s: %+v", test.name, d)
			}
		})
	}
}

// standsStill reports whether a process has been stopped, which is not over when the signal has been sent.
func standsStill(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat"))
	if err != nil || len(threads) == 0 {
		t.Fatalf("%d threads of %d, %v", len(threads), pid, err)
	}
	return !slices.ContainsFunc(threads, func(stat string) bool {
		b, err := os.ReadFile(stat)
		return err != nil || !strings.HasPrefix(string(b[strings.LastIndexByte(string(b), ')')+1:]), " T")
	})
}

// A stopped process hears no signal but one, and its successor does not wait for the ladder.
func TestAPeerThatWasStoppedIsKilledAndReplaced(t *testing.T) {
	b := started(t, func(c *Config) { c.Grace = patience }, "say hello", "serve {}")
	b.modern()
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	spawned := of[domain.PeerSpawned](b.ledger)[0]
	if err := syscall.Kill(spawned.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	poll(t, "every thread of the peer stands still", func() bool { return standsStill(t, spawned.PID) })
	b.ask(domain.Send{Method: domain.MethodCall, Era: domain.EraModern, Call: "h/c", Tool: "t", Deadline: 200}, "{}")
	want := domain.DeadlinePassed{At: at1, RequestID: 2, Call: "h/c", Silent: true}
	if passed, _ := await[domain.DeadlinePassed](t, b.ledger, 1); passed[0] != want {
		t.Errorf("%+v", passed[0])
	}
	begun := time.Now()
	b.Do(domain.Stop{At: at1, Kill: true}, nil)
	at2 := domain.At{Peer: "p", Incarnation: 2}
	b.Do(domain.Launch{At: at2}, nil)
	b.ask(domain.Send{At: at2, Method: domain.MethodDiscover, Era: domain.EraUnknown}, "")
	await[domain.ProbeAnswered](t, b.ledger, 1)
	if exit := of[domain.PeerExited](b.ledger)[0]; exit.Signal != "SIGKILL" || exit.Cause != "stopped" {
		t.Errorf("%+v", exit)
	}
	if took := time.Since(begun); took > patience/2 || alive(spawned.PID) {
		t.Errorf("it took %v; alive: %v", took, alive(spawned.PID))
	}
}
