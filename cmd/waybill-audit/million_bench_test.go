package main

import (
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"waybill/events"
	"waybill/migrations"
	"waybill/replay/replaytest"
)

var millionEvents = flag.Int64("million.events", 100_000, "events in the log of BenchmarkMillion")

// auditChild names the file into which a child writes how much memory it took.
const auditChild = "WAYBILL_AUDIT_CHILD"

// TestMain lets the test binary be the program.
func TestMain(m *testing.M) {
	to, child := os.LookupEnv(auditChild)
	if !child {
		os.Exit(m.Run())
	}
	exit := run(os.Args[1:], os.Stdout, os.Stderr)
	peak, err := peakMemory()
	if err == nil {
		err = os.WriteFile(to, strconv.AppendInt(nil, peak, 10), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		exit = 1
	}
	os.Exit(exit)
}

// peakMemory is the most memory that this process has had, in kB. What wait4 tells of a
// child counts its parent in, up to the exec.
func peakMemory() (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kB, _, _ := strings.Cut(rest, "kB")
	return strconv.ParseInt(strings.TrimSpace(kB), 10, 64)
}

// memoryOf runs the program as a process of its own and returns its peak, in MB.
func memoryOf(b *testing.B, args ...string) float64 {
	b.Helper()
	to := b.TempDir() + "/peak"
	c := exec.CommandContext(b.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), auditChild+"="+to)
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%q: %v\n%s", args, err, out)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		b.Fatal(err)
	}
	kB, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return float64(kB) / 1024
}

// BenchmarkMillion measures the auditor's commands over a long log against the least
// that any program must do that reads one: scan, decode, fold. With
// -million.events=1000000 the log has a million. Metrics ending in /ceiling are ratios
// of rates in this run; those in MB are peaks of processes of their own.
func BenchmarkMillion(b *testing.B) {
	size := *millionEvents
	begun := time.Now()
	path, census := million(b, size, 1)
	b.Logf("made %d events, %d calls, %d transactions in %.1f s", size, census.Calls, census.Transactions, time.Since(begun).Seconds())
	if len(census.Kinds) != len(events.Kinds())-len(replaytest.MillionWithout) {
		b.Fatalf("not all kinds of events are in it: %v", census.Kinds)
	}
	took := map[string]time.Duration{}
	half := strconv.FormatInt(size/2, 10)
	for b.Loop() {
		took["ceiling"] += timed(func() { ceiling(b, path, size) })
		took["verify"] += timed(func() { runs(b, "verify", path) })
		took["replay"] += timed(func() { runs(b, "replay", path) })
		took["ceiling"] += timed(func() { ceiling(b, path, size) }) // what else the machine does bears on all alike
		took["peers"] += timed(func() { runs(b, "peers", "--at", half, path) })
		took["explain"] += timed(func() { runs(b, "explain", census.Told, path) })
	}
	rate := func(n int64, d time.Duration) float64 { return float64(n) * float64(b.N) / d.Seconds() }
	best := rate(2*size, took["ceiling"])
	b.ReportMetric(best, "ceiling-events/s")
	for verb, n := range map[string]int64{"verify": size, "replay": size, "peers": size / 2} {
		b.ReportMetric(rate(n, took[verb]), verb+"-events/s")
		b.ReportMetric(rate(n, took[verb])/best, verb+"/ceiling")
	}
	b.ReportMetric(float64(took["explain"].Milliseconds())/float64(b.N), "explain-ms")
	b.ReportMetric(memoryOf(b, "verify", path), "verify-MB")
	b.ReportMetric(memoryOf(b, "replay", path), "replay-MB")
	b.ReportMetric(0, "ns/op") // of all together
}

func timed(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}

func runs(b *testing.B, args ...string) {
	b.Helper()
	var out, errs bytes.Buffer
	if exit := run(args, &out, &errs); exit != 0 {
		b.Fatalf("%q: exit %d\n%s%s", args, exit, &out, &errs)
	}
}

// ceiling is a short program over the same file that promises nothing.
func ceiling(b *testing.B, path string, size int64) {
	b.Helper()
	db, err := sql.Open("sqlite3", migrations.DSN(path, "mode=ro", "immutable=1"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT bytes FROM events ORDER BY seq`)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	n, peers := int64(0), map[string]int{}
	for rows.Next() {
		var raw sql.RawBytes
		if err := rows.Scan(&raw); err != nil {
			b.Fatal(err)
		}
		_, e, err := events.Open(raw)
		if err != nil {
			b.Fatal(err)
		}
		peers[e.Peer()]++
		n++
	}
	if err := rows.Err(); err != nil || n != size {
		b.Fatalf("%d events of %d, error %v", n, size, err)
	}
}
