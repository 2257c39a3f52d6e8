package peer

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

func TestAKillSkipsTheLadderAndCutsOneShort(t *testing.T) {
	for _, asked := range []bool{false, true} {
		b := started(t, func(c *Config) { c.Grace = patience }, "deafTo 15", "note up", "untilEOF", "note asked", "hang")
		b.notes(1)
		begun := time.Now()
		if asked {
			b.Do(domain.Stop{At: at1}, nil)
			b.notes(2)
		}
		b.Do(domain.Stop{At: at1, Kill: true}, nil)
		if exit := b.ended(); exit.Signal != "SIGKILL" || exit.Cause != "stopped" {
			t.Errorf("%+v", exit)
		}
		if took := time.Since(begun); took > patience/2 {
			t.Errorf("it took %v", took)
		}
	}
}

// A process that would end with its input is not asked.
func TestAKillAsksForNothing(t *testing.T) {
	b := started(t, nil, "note up", "untilEOF", "note asked", "exit 0")
	b.notes(1)
	b.Do(domain.Stop{At: at1, Kill: true}, nil)
	b.Do(domain.Stop{At: at1}, nil)
	if exit := b.ended(); exit.Signal != "SIGKILL" || len(b.notes(1)) != 1 {
		t.Errorf("%+v, and the peer wrote down %q", exit, b.notes(1))
	}
	never := domain.At{Peer: "p", Incarnation: 2}
	b.Do(domain.Launch{At: never, Delay: patience.Milliseconds()}, nil)
	b.Do(domain.Stop{At: never, Kill: true}, nil)
	if got, _ := await[domain.SpawnFailed](t, b.ledger, 1); got[0].At != never {
		t.Errorf("%+v", got)
	}
}

func TestAPeerMayHaveItsOwnGrace(t *testing.T) {
	b := started(t, func(c *Config) {
		c.Grace = patience
		s := c.Specs["p"]
		s.Grace = 100 * time.Millisecond
		c.Specs["p"] = s
	}, "deafTo 15", "note up", "hang")
	b.notes(1)
	begun := time.Now()
	if exit := b.stopped(); exit.Signal != "SIGKILL" {
		t.Errorf("%+v", exit)
	}
	if took := time.Since(begun); took < 200*time.Millisecond || took > patience {
		t.Errorf("it took %v", took)
	}
}

func TestALaunchCutsThePauseOfAnOlderOneShort(t *testing.T) {
	b := newBench(t, nil, "serve {}")
	at := func(n int64) domain.At { return domain.At{Peer: "p", Incarnation: n} }
	b.Do(domain.Launch{At: at(1), Delay: patience.Milliseconds()}, nil)
	b.ask(domain.Send{At: at(1), Method: domain.MethodDiscover, Era: domain.EraUnknown}, "")
	b.Do(domain.Launch{At: at(2), Delay: patience.Milliseconds()}, nil)
	b.Do(domain.Launch{At: at(3)}, nil)
	spawned, _ := await[domain.PeerSpawned](t, b.ledger, 1)
	refused := of[domain.SpawnFailed](b.ledger)
	if spawned[0].At != at(3) || len(refused) != 2 || refused[0].At != at(1) || refused[1].At != at(2) || refused[0].Code != domain.CodeSpawnFailed {
		t.Errorf("%+v, %+v", spawned, refused)
	}
	lost := domain.ExchangeFailed{At: at(1), RequestID: 1, Written: "no", Code: domain.CodeTransportLost}
	if failed := of[domain.ExchangeFailed](b.ledger); len(failed) != 1 || failed[0] != lost {
		t.Errorf("%+v", failed)
	}
	runs := b.lane("p").incarnation(at(3))
	b.Do(domain.Launch{At: at(4)}, nil)
	select {
	case <-runs.ending:
		t.Error("what runs was touched")
	default:
	}
	b.Do(domain.Stop{At: at(3)}, nil)
	if spawned, _ := await[domain.PeerSpawned](t, b.ledger, 2); spawned[1].At != at(4) {
		t.Errorf("%+v", spawned)
	}
}

// A start without a delay is not given up for a newer one, also where it has to wait its turn.
func TestALaunchWithoutADelayIsNotCutShort(t *testing.T) {
	b := newBench(t, nil, "exit 0")
	for n := range int64(3) {
		b.Do(domain.Launch{At: domain.At{Peer: "p", Incarnation: n + 1}}, nil)
	}
	await[domain.PeerExited](t, b.ledger, 3)
	if got := b.story(); got != strings.TrimSpace(strings.Repeat("peer.spawned peer.exited ", 3)) {
		t.Errorf("reported %s", got)
	}
}

// raced reports whether the test binary, and with it every process it plays, was built for the race detector.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// A process that is built for the race detector takes some thirty milliseconds to come up: a thousand of them would take half a
// minute. What is left behind by each shows with fewer as well.
func TestAThousandRestartsLeaveNothingBehind(t *testing.T) {
	const peers = 4
	restarts := 1000
	if raced() {
		restarts = 200
	}
	goroutines := runtime.NumGoroutine()
	b := newBench(t, func(c *Config) {
		for i := range peers {
			c.Specs[fmt.Sprint("p", i)] = actor(t, "", "exit 0")
		}
	})
	launch := func(from, to int) {
		for n := from; n < to; n++ {
			b.Do(domain.Launch{At: domain.At{Peer: fmt.Sprint("p", n%peers), Incarnation: int64(n/peers + 1)}}, nil)
		}
		await[domain.PeerExited](t, b.ledger, to)
	}
	launch(0, peers) // the lanes have their goroutines then
	watchdog := guardian(b.Manager)
	fds, theirs, threads := openFiles(t, os.Getpid()), openFiles(t, watchdog), runtime.NumGoroutine()
	begun := time.Now()
	launch(peers, restarts)
	t.Logf("%d restarts took %v", restarts, time.Since(begun))
	poll(t, "as many goroutines as after the first", func() bool { return runtime.NumGoroutine() <= threads })
	poll(t, "as many descriptors as after the first", func() bool { return openFiles(t, os.Getpid()) == fds })
	poll(t, "as many descriptors in the watchdog", func() bool { return openFiles(t, watchdog) == theirs })
	if theirs, ours := childrenOf(t, watchdog), childrenOf(t, os.Getpid()); len(theirs) != 0 || len(ours) != 1 {
		t.Errorf("processes are left, dead or alive: %v below the watchdog, %v below us", theirs, ours)
	}
	exits := of[domain.PeerExited](b.ledger)
	for _, exit := range exits {
		if exit.Status != 0 || exit.Cause != "exited" {
			t.Fatalf("%+v", exit)
		}
	}
	if len(exits) != restarts || len(of[domain.PeerSpawned](b.ledger)) != restarts {
		t.Errorf("%d processes ended", len(exits))
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	poll(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
}
