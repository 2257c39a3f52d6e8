package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
	"waybill/events"
)

// crashEnv has the service kill itself where it is told: "POINT:N:MS" is the Nth
// time that it comes to a point, and so many milliseconds later, in which whoever
// is there goes no further and everything else goes on: what was let out too early
// gets out. Only the test binary looks at it.
const crashEnv = "WAYBILL_TEST_CRASH"

// crashPoint is a place in the program. The first word says which: before and
// after the append of an event, and when the payloads it cites are saved; wrote and
// read, a request and its answer; the rest are what they say.
type crashPoint struct {
	name   string
	within int // it is killed there the first to so-manieth time
}

var crashPoints = []crashPoint{
	{"before service.started", 1}, {"after service.started", 1}, // start

	{"before probe.issued", 2}, {"after probe.issued", 2}, // probe
	{"wrote server/discover", 2}, {"read server/discover", 2}, {"after era.determined", 2},

	{"after list.requested", 2}, {"wrote tools/list", 2}, {"read tools/list", 2}, {"after catalog.accepted", 2}, // list

	{"before call.received", 20}, // a call: it was taken,
	{"saved call.received", 20},  // its arguments are kept,
	{"after call.routed", 20},    // where it goes is durable,
	{"wrote tools/call", 20},     // the request was written,
	{"read tools/call", 20},      // the answer was read,
	{"before call.settled", 20},  // it has been decided how it ended,
	{"saved call.answered", 20},  // the result is kept,
	{"after call.settled", 20},   // that is durable,
	{"replied", 20},              // the host was told

	{"sent batch", 4}, {"acknowledged batch", 4}, // publish
	{"stored checkpoint", 1}, {"kept checkpoint", 1}, // checkpoint
}

// crashNote begins the last line of a service that killed itself.
const crashNote = "killed itself: "

// armCrash sets the mark that the environment asks for.
func armCrash() {
	spec := strings.Split(os.Getenv(crashEnv), ":")
	if len(spec) != 3 {
		return
	}
	point := spec[0]
	n, err := strconv.ParseInt(spec[1], 10, 64)
	ms, err2 := strconv.Atoi(spec[2])
	if err = errors.Join(err, err2); err != nil {
		panic(err)
	}
	var left atomic.Int64
	left.Store(n)
	mark = func(at string) {
		if at != point || left.Add(-1) != 0 {
			return
		}
		<-time.After(time.Duration(ms) * time.Millisecond)
		fmt.Fprintln(os.Stderr, crashNote+at)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // not a step further
	}
}

// The list and the program name the same points. That each is reached, TestCrash
// shows.
func TestCrashPointsAreThoseOfTheProgram(t *testing.T) {
	listed := map[string]bool{}
	for _, p := range crashPoints {
		name, of, _ := strings.Cut(p.name, " ")
		switch name {
		case "before", "saved", "after":
			if !slices.Contains(events.Kinds(), of) {
				t.Errorf("%s: there is no such event", p.name)
			}
		case "wrote", "read":
			if !slices.Contains([]string{domain.MethodDiscover, domain.MethodList, domain.MethodCall}, of) {
				t.Errorf("%s: there is no such request", p.name)
			}
		default:
			name = p.name
		}
		listed[name] = true
	}
	marked := map[string]bool{}
	hook := regexp.MustCompile(`\.[mM]ark\("([^"]*)"`)
	err := filepath.WalkDir(filepath.Join("..", "..", "harness"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range hook.FindAllSubmatch(b, -1) {
			marked[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(listed, marked) {
		t.Errorf("listed are %q, and the program marks %q", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(marked)))
	}
}
