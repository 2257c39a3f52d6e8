package peer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

func TestAProcessGetsItsArgumentsEnvironmentAndDirectoryAsGiven(t *testing.T) {
	args := []string{"$HOME", "*", "a b", `"q"`, "; exit 1", "", "\n", "-x=`id`"}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("WAYBILL_OF_THE_SERVICE", "not for peers")
	b := newBench(t, nil, "environ", "untilEOF")
	spec := b.cfg.Specs["p"]
	spec.Argv0, spec.Args, spec.Dir = "another name", args, dir
	spec.Env = append(spec.Env, "EMPTY=", "BYTES=\xff\xfe", "WITH=a=b\nc")
	b.cfg.Specs["p"] = spec
	b.Do(domain.Launch{At: at1}, nil)
	var got surroundings
	if err := json.Unmarshal([]byte(b.notes(1)[0]), &got); err != nil {
		t.Fatal(err)
	}
	want := surroundings{Args: append([]string{"another name"}, args...), Dir: dir}
	for _, e := range spec.Env {
		want.Env = append(want.Env, strings.ToValidUTF8(strings.ReplaceAll(e, "\xff\xfe", "\ufffd\ufffd"), ""))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the process saw\n%q, want\n%q", got, want)
	}
}

func TestAnEmptyEnvironmentIsEmptyAndThePathIsTheName(t *testing.T) {
	dir := t.TempDir()
	b := newBench(t, func(c *Config) {
		c.Specs["p"] = Spec{Name: "p", Path: "/bin/sh", Args: []string{"-c", "echo $0 > name; cat /proc/$$/environ | /usr/bin/wc -c > size"}, Dir: dir}
	})
	b.Do(domain.Launch{At: at1}, nil)
	b.ended()
	if size := notes(t, filepath.Join(dir, "size"), 1)[0]; strings.TrimSpace(size) != "0" {
		t.Errorf("an empty environment has %s bytes", size)
	}
	if name := notes(t, filepath.Join(dir, "name"), 1)[0]; name != "/bin/sh" {
		t.Errorf("argv[0] is %q", name)
	}
}

func TestAPeerHasNoDescriptorButItsPipesAndIsDeafToNoSignal(t *testing.T) {
	dir := t.TempDir()
	b := newBench(t, func(c *Config) {
		c.Specs["p"] = Spec{Name: "p", Path: "/bin/sh", Dir: dir, Env: []string{"PATH=/usr/bin:/bin"},
			Args: []string{"-c", "ls /proc/$$/fd > fds; grep SigIgn /proc/$$/status > ignored; grep -h flags /proc/$$/fdinfo/[012] > flags; read x"}}
	})
	b.Do(domain.Launch{At: at1}, nil)
	flags := notes(t, filepath.Join(dir, "flags"), 3)
	fds := notes(t, filepath.Join(dir, "fds"), 3)
	fds = slices.DeleteFunc(fds, func(fd string) bool { return fd == "10" }) // where a shell keeps what it redirects
	if !slices.Equal(fds, []string{"0", "1", "2"}) {
		t.Errorf("descriptors are %q", fds)
	}
	if ignored := strings.Fields(notes(t, filepath.Join(dir, "ignored"), 1)[0])[1]; strings.Trim(ignored, "0") != "" {
		t.Errorf("ignored signals are %s", ignored)
	}
	for _, f := range flags {
		if mode := strings.Fields(f)[1]; strings.Contains(mode, "4000") {
			t.Errorf("a pipe does not block: flags %s", mode)
		}
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mismatch := func() (domain.Code, string) { return domain.CodePinMismatch, "it has changed" }
	specs := map[string]Spec{
		"absent":   {Path: filepath.Join(dir, "absent")},
		"below":    {Path: file("plain", "", 0o700) + "/below"},
		"locked":   {Path: file("locked", "#!/bin/sh\n", 0o600)},
		"orphan":   {Path: file("orphan", "#!"+dir+"/absent\n", 0o700)},
		"dir":      {Path: dir},
		"nonsense": {Path: file("nonsense", "nonsense", 0o700)},
		"nowhere":  {Path: "/bin/sh", Dir: filepath.Join(dir, "absent")},
		"nodir":    {Path: "/bin/sh", Dir: file("nodir", "", 0o700)},
		"changed":  {Path: "/bin/sh", Verify: mismatch},
		"long":     {Path: "/bin/sh", Args: []string{strings.Repeat("x", 1<<20)}},
		"nul":      {Path: "/bin/sh", Args: []string{"a\x00b"}},
	}
	want := map[string]domain.Code{"absent": domain.CodeCommandMissing, "below": domain.CodeCommandMissing, "locked": domain.CodeCommandMissing,
		"orphan": domain.CodeCommandMissing, "dir": domain.CodeCommandMissing, "nonsense": domain.CodeSpawnFailed, "nowhere": domain.CodeDirMissing,
		"nodir": domain.CodeDirMissing, "changed": domain.CodePinMismatch, "long": domain.CodeSpawnFailed, "nul": domain.CodeSpawnFailed}
	b := newBench(t, func(c *Config) { c.Specs = specs })
	for name := range specs {
		at := domain.At{Peer: name, Incarnation: 1}
		b.Do(domain.Launch{At: at}, nil)
		b.ask(domain.Send{At: at, Method: domain.MethodDiscover, Era: domain.EraUnknown}, "")
	}
	failed, _ := await[domain.SpawnFailed](t, b.ledger, len(specs))
	for _, f := range failed {
		if f.Code != want[f.Peer] || f.Reason == "" {
			t.Errorf("%s: %s, %s", f.Peer, f.Code, f.Reason)
		}
	}
	lost, _ := await[domain.ExchangeFailed](t, b.ledger, len(specs))
	for _, l := range lost {
		if l.Written != "no" || l.Code != domain.CodeTransportLost {
			t.Errorf("%+v", l)
		}
	}
	if n := len(of[domain.PeerSpawned](b.ledger)) + len(of[domain.PeerExited](b.ledger)); n != 0 {
		t.Errorf("%d reports of processes that never ran", n)
	}
}

func TestVerifyIsAskedBeforeEachStart(t *testing.T) {
	asked := 0
	b := newBench(t, nil, "exit 4")
	spec := b.cfg.Specs["p"]
	spec.Verify = func() (domain.Code, string) { asked++; return "", "" }
	b.cfg.Specs["p"] = spec
	for i := range 3 {
		b.Do(domain.Launch{At: domain.At{Peer: "p", Incarnation: int64(i + 1)}}, nil)
	}
	exits, _ := await[domain.PeerExited](t, b.ledger, 3)
	for i, e := range exits {
		if e.Incarnation != int64(i+1) || e.Status != 4 || e.Signal != "" || e.Cause != "exited" {
			t.Errorf("%+v", e)
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
	reports, _ := b.all()
	if got := kinds(reports); got != strings.TrimSpace(strings.Repeat("peer.spawned peer.exited ", 3)) {
		t.Errorf("reported %s", got)
	}
}

func TestAnExitDuringCallsFailsThemInOrderAndThenSaysSo(t *testing.T) {
	b := started(t, nil, "say noise", "skip 3", "say "+answerLine("2", "{}"), "exit 7")
	b.modern()
	for range 3 {
		b.call("{}")
	}
	exit := b.ended()
	if exit.Status != 7 || exit.Cause != "exited" {
		t.Errorf("%+v", exit)
	}
	reports, _ := b.all()
	if got := kinds(reports); got != "peer.spawned call.answered exchange.failed exchange.failed noise.counted peer.exited" {
		t.Errorf("reported %s", got)
	}
	lost := func(id int64) domain.ExchangeFailed {
		return domain.ExchangeFailed{At: at1, RequestID: id, Call: "host/a/b", Written: "maybe", Code: domain.CodeTransportLost}
	}
	if failed := of[domain.ExchangeFailed](b.ledger); failed[0] != lost(1) || failed[1] != lost(3) {
		t.Errorf("%+v", failed)
	}
	if b.call("{}"); len(of[domain.ExchangeFailed](b.ledger)) != 3 {
		t.Error("a call after the end did not fail at once")
	}
}

func TestAnAnswerBeforeAnExitIsNeverLost(t *testing.T) {
	const runs = 30
	b := newBench(t, nil, "read", "big 100000", "die 9")
	for i := range runs {
		at := domain.At{Peer: "p", Incarnation: int64(i + 1)}
		b.Do(domain.Launch{At: at}, nil)
		b.ask(domain.Send{At: at, Method: domain.MethodCall, Era: domain.EraModern, Call: "h/c", Tool: "t"}, "{}")
	}
	await[domain.PeerExited](t, b.ledger, runs)
	if answers, lost := of[domain.CallAnswered](b.ledger), of[domain.ExchangeFailed](b.ledger); len(answers) != runs {
		t.Errorf("%d answers, lost %v", len(answers), lost)
	}
}

func TestADeathBySignalIsNamed(t *testing.T) {
	b := started(t, nil, "die 9")
	if exit := b.ended(); exit.Status != -1 || exit.Signal != "SIGKILL" || exit.Cause != "exited" {
		t.Errorf("%+v", exit)
	}
}

func TestAClosedOutputEndsTheIncarnation(t *testing.T) {
	b := started(t, quick, "read", "closeout", "hang")
	b.modern()
	b.call("{}")
	if exit := b.ended(); exit.Cause != "stdout_closed" || exit.Signal != "SIGTERM" {
		t.Errorf("%+v", exit)
	}
	if failed := of[domain.ExchangeFailed](b.ledger); len(failed) != 1 || failed[0].Written != "maybe" {
		t.Errorf("%+v", failed)
	}
}

func TestAClosedInputEndsTheIncarnation(t *testing.T) {
	b := started(t, quick, "closein", "note closed", "hang")
	b.notes(1)
	b.modern()
	b.call("{}")
	if exit := b.ended(); exit.Cause != "write_failed" {
		t.Errorf("%+v", exit)
	}
	if failed := of[domain.ExchangeFailed](b.ledger); len(failed) != 1 || failed[0].Written != "no" {
		t.Errorf("%+v", failed)
	}
}

func TestStandardErrorIsDrainedCountedAndKeptInPart(t *testing.T) {
	b := started(t, nil, "stderr 1048576", "serve {}")
	b.modern()
	b.call("{}")
	await[domain.CallAnswered](t, b.ledger, 1)
	poll(t, "the end of standard error", func() bool { return strings.HasSuffix(string(b.StderrTail("p")), " the end") })
	if n := len(b.StderrTail("p")); n != tailSize {
		t.Errorf("the tail has %d bytes", n)
	}
	if exit := b.stopped(); exit.StderrSize != 1<<20+8 || exit.Cause != "stopped" {
		t.Errorf("%+v", exit)
	}
	if got := b.StderrTail("nobody"); got != nil {
		t.Errorf("the tail of a peer that never ran is %q", got)
	}
}

func TestTheLadderTakesNoMoreRungsThanItNeeds(t *testing.T) {
	tests := []struct {
		name   string
		steps  []string
		status int
		signal string
		least  time.Duration
	}{
		{"ends with its input", []string{"note up", "untilEOF", "exit 5"}, 5, "", 0},
		{"ignores the end of its input", []string{"note up", "hang"}, -1, "SIGTERM", 100 * time.Millisecond},
		{"ignores the request, too", []string{"deafTo 15", "note up", "hang"}, -1, "SIGKILL", 200 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := started(t, func(c *Config) {
				if c.Grace = 100 * time.Millisecond; test.least == 0 {
					c.Grace = patience
				}
			}, test.steps...)
			b.notes(1)
			begun := time.Now()
			if exit := b.stopped(); exit.Status != test.status || exit.Signal != test.signal || exit.Cause != "stopped" {
				t.Errorf("%+v", exit)
			}
			if took := time.Since(begun); took < test.least {
				t.Errorf("it was over after %v", took)
			}
		})
	}
}

func TestAPeerIsStoppedWhileItsLaneIsStuck(t *testing.T) {
	b := started(t, quick, "taste", "note tasted", "hang")
	b.modern()
	big := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	b.call(big)
	b.notes(1)
	b.call(big)
	if exit := b.stopped(); exit.Cause != "stopped" {
		t.Errorf("%+v", exit)
	}
	failed := of[domain.ExchangeFailed](b.ledger)
	if len(failed) != 2 || failed[0].Written != "maybe" || failed[1].Written != "no" {
		t.Errorf("%+v", failed)
	}
}

func TestANewIncarnationWaitsForTheEndOfTheOld(t *testing.T) {
	b := started(t, quick, "deafTo 15", "note up", "skip 1", "hang")
	b.notes(1)
	at2 := domain.At{Peer: "p", Incarnation: 2}
	b.Do(domain.Stop{At: at1}, nil)
	b.Do(domain.Launch{At: at2}, nil)
	b.ask(domain.Send{At: at2, Method: domain.MethodDiscover, Era: domain.EraUnknown}, "")
	await[domain.PeerSpawned](t, b.ledger, 2)
	reports, _ := b.all()
	if got := kinds(reports); got != "peer.spawned peer.exited peer.spawned" {
		t.Errorf("reported %s", got)
	}
	if lines := b.notes(3); !strings.Contains(lines[2], "server/discover") {
		t.Errorf("the second incarnation read %s", lines[2])
	}
}

func TestAnIncarnationStoppedBeforeItsStartNeverRuns(t *testing.T) {
	b := started(t, quick, "deafTo 15", "note up", "hang")
	b.notes(1)
	at2 := domain.At{Peer: "p", Incarnation: 2}
	b.Do(domain.Launch{At: at2}, nil)
	b.ask(domain.Send{At: at2, Method: domain.MethodDiscover, Era: domain.EraUnknown}, "")
	b.Do(domain.Stop{At: at2}, nil)
	b.Do(domain.Stop{At: at1}, nil)
	failed, _ := await[domain.SpawnFailed](t, b.ledger, 1)
	if failed[0].At != at2 || failed[0].Code != domain.CodeSpawnFailed {
		t.Errorf("%+v", failed)
	}
	if lost := of[domain.ExchangeFailed](b.ledger); len(lost) != 1 || lost[0].At != at2 || lost[0].Written != "no" {
		t.Errorf("%+v", lost)
	}
}

func TestCloseEndsAllPeersAtOnceAndNothingIsStartedAfterwards(t *testing.T) {
	const peers = 8
	b := newBench(t, func(c *Config) {
		c.Grace = 200 * time.Millisecond
		for i := range peers {
			name := fmt.Sprint("p", i)
			c.Specs[name] = actor(t, "", "deafTo 15", "say ready", "hang")
		}
	})
	for i := range peers {
		b.Do(domain.Launch{At: domain.At{Peer: fmt.Sprint("p", i), Incarnation: 1}}, nil)
	}
	await[domain.PeerSpawned](t, b.ledger, peers)
	begun := time.Now()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > peers*b.cfg.Grace*2 {
		t.Errorf("one after the other: %v", took)
	}
	if exits := of[domain.PeerExited](b.ledger); len(exits) != peers {
		t.Errorf("%d exits", len(exits))
	}
	b.Do(domain.Launch{At: domain.At{Peer: "p0", Incarnation: 2}}, nil)
	b.Do(domain.Launch{At: at1}, nil)
	b.call("{}")
	if n := len(of[domain.SpawnFailed](b.ledger)); n != 2 {
		t.Errorf("%d starts were refused", n)
	}
	if n := len(of[domain.ExchangeFailed](b.ledger)); n != 1 {
		t.Errorf("%d sends failed", n)
	}
}

func TestFiftyIncarnationsLeaveNothingBehind(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	b := newBench(t, nil, "read", "say "+answerLine("$ID", "{}"), "untilEOF")
	b.Do(domain.Launch{At: domain.At{Peer: "p", Incarnation: 1}}, nil)
	await[domain.PeerSpawned](t, b.ledger, 1)
	fds, threads := openFiles(t, os.Getpid()), runtime.NumGoroutine()
	watchdog := guardian(b.Manager)
	for i := range 50 {
		at := domain.At{Peer: "p", Incarnation: int64(i + 1)}
		b.Do(domain.Launch{At: at}, nil)
		b.ask(domain.Send{At: at, Method: domain.MethodDiscover, Era: domain.EraUnknown}, "")
		await[domain.ProbeAnswered](t, b.ledger, i+1)
		b.Do(domain.Stop{At: at}, nil)
	}
	await[domain.PeerExited](t, b.ledger, 50)
	poll(t, "as many goroutines as with one peer", func() bool { return runtime.NumGoroutine() <= threads })
	if n := openFiles(t, os.Getpid()); n > fds {
		t.Errorf("%d descriptors are open, with one peer there were %d", n, fds)
	}
	if n := openFiles(t, watchdog); n > 12 {
		t.Errorf("the watchdog has %d descriptors", n)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	poll(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
}

func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("/proc", fmt.Sprint(pid), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
