package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/events"
	"waybill/harness"
	"waybill/harness/bench"
	"waybill/harness/bus"
)

type benchCmd struct {
	Callers []int         `default:"1,16,64" placeholder:"N,..." help:"How many callers call at once (1,16,64)."`
	For     time.Duration `default:"10s" placeholder:"D" help:"How long each is measured (10s); in the first seconds the files still grow."`
	Rounds  int           `default:"3" placeholder:"N" help:"How often, in turn; the middle one of each counts (3)."`
	Dir     string        `placeholder:"DIR" help:"On which disk: a new directory is made in it, and removed (the system's for temporary files)."`
	Profile string        `placeholder:"FILE" help:"Write a CPU profile of the calls in the process, for go tool pprof."`
	JSON    bool          `name:"json" help:"Print pure JSON on standard output."`
}

// Help is shown under the usage.
func (benchCmd) Help() string {
	return "Example:\n  waybill bench --callers 1,64 --for 5s --dir /var/lib\n\n" +
		"Measures calls to an echo server in a process of its own, each durable before its effect and before its reply: bare is the least that any " +
		"service must do for that, with as many events and a copy in JetStream; then Waybill over NATS in the process, and over TCP on this machine. " +
		"The times of the steps are those of a call in the process: NATS and waiting, deciding, making durable, the peer. " +
		"It needs no configuration and touches no log."
}

// check refuses what measures nothing.
func (c benchCmd) check() error {
	if c.For < 10*time.Millisecond || c.For > time.Hour {
		return errors.New("--for must be 10ms to 1h")
	}
	if c.Rounds < 1 || c.Rounds > 1000 {
		return errors.New("--rounds must be 1 to 1000")
	}
	for _, n := range c.Callers {
		if n < 1 || n > 1024 {
			return fmt.Errorf("--callers %d: must be 1 to 1024", n)
		}
	}
	return nil
}

// benchRow is what was measured with one number of callers.
type benchRow struct {
	Callers   int            `json:"callers"`
	Bare      bench.Measured `json:"bare"`
	InProcess bench.Measured `json:"in_process"`
	OverTCP   bench.Measured `json:"over_tcp"`
	Ratio     float64        `json:"in_process_to_bare"`
	RatioTCP  float64        `json:"over_tcp_to_bare"`
	Steps     benchSteps     `json:"steps"`

	rounds [3][]benchRound // bare, in the process, over TCP
}

// benchRound is one time of calling.
type benchRound struct {
	bench.Measured
	steps benchSteps
}

// settle takes the middle round of each way: machines drift, and the best of one way need
// not have been possible for another.
func (r *benchRow) settle() {
	for i, to := range []*bench.Measured{&r.Bare, &r.InProcess, &r.OverTCP} {
		list := r.rounds[i]
		slices.SortFunc(list, func(a, b benchRound) int { return cmp.Compare(a.Rate, b.Rate) })
		middle := list[(len(list)-1)/2]
		if *to = middle.Measured; i == 1 {
			r.Steps = middle.steps
		}
	}
	r.Ratio, r.RatioTCP = r.InProcess.Rate/r.Bare.Rate, r.OverTCP.Rate/r.Bare.Rate
}

// benchSteps are the means of what a call in the process spends its time with.
type benchSteps struct {
	NATS   float64 `json:"nats_and_waiting_ms"`
	Decide float64 `json:"decide_ms"`
	Append float64 `json:"append_ms"`
	Peer   float64 `json:"peer_ms"`
	Commit float64 `json:"events_per_commit"`
}

// Run measures and prints a row for each number of callers.
func (c benchCmd) Run(a *app) (err error) {
	if err := c.check(); err != nil {
		return usageError(err)
	}
	dir, err := os.MkdirTemp(c.Dir, "waybill-bench-")
	if err != nil {
		return usageError(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	rows := make([]benchRow, 0, len(c.Callers))
	for _, n := range c.Callers {
		row := benchRow{Callers: n}
		for i := range c.Rounds {
			a.progress("waybill: %d callers, round %d of %d, %s each way", n, i+1, c.Rounds, c.For)
			if err := c.round(a, filepath.Join(dir, fmt.Sprintf("%d-%d", n, i)), &row); err != nil {
				return err
			}
		}
		row.settle()
		rows = append(rows, row)
	}
	if c.JSON {
		return a.printJSON(struct {
			Rows []benchRow `json:"rows"`
		}{rows})
	}
	printBench(a.out, rows)
	return nil
}

// round measures all three ways once, each on files of its own.
func (c benchCmd) round(a *app, dir string, row *benchRow) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	m, err := c.bare(a.ctx, filepath.Join(dir, "bare"), self, row.Callers)
	if err != nil {
		return fmt.Errorf("bare pipeline: %w", err)
	}
	row.rounds[0] = append(row.rounds[0], benchRound{Measured: m})
	for i, tcp := range []bool{false, true} {
		m, steps, err := c.service(a, filepath.Join(dir, fmt.Sprint("service-", tcp)), self, row.Callers, tcp)
		if err != nil {
			return err
		}
		row.rounds[i+1] = append(row.rounds[i+1], benchRound{m, steps})
	}
	return os.RemoveAll(dir)
}

func (c benchCmd) bare(ctx context.Context, dir, self string, callers int) (bench.Measured, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return bench.Measured{}, err
	}
	b, err := bench.StartBare(dir, self, "bench-peer")
	if err != nil {
		return bench.Measured{}, err
	}
	m, err := bench.Call(ctx, callers, c.For, b.Call)
	return m, errors.Join(err, b.Close())
}

// service measures calls to a service with a log of its own.
func (c benchCmd) service(a *app, dir, self string, callers int, tcp bool) (m bench.Measured, steps benchSteps, err error) {
	quiet := *a
	quiet.out = io.Discard
	file, err := benchConfig(dir, self)
	if err != nil {
		return m, steps, err
	}
	for _, step := range []interface{ Run(*app) error }{initCmd{common{Config: file}}, pinCmd{common{Config: file}}} {
		if err := step.Run(&quiet); err != nil {
			return m, steps, err
		}
	}
	f, err := config.Load(file)
	if err != nil {
		return m, steps, err
	}
	n, err := quiet.openNode(f)
	if err != nil {
		return m, steps, err
	}
	s := newServer(n)
	if err = s.start(); err == nil {
		if err = s.engine.WaitSettled(a.ctx); err == nil {
			m, steps, err = c.calls(s, callers, tcp)
		}
	}
	return m, steps, errors.Join(err, s.stop())
}

func benchConfig(dir, self string) (string, error) {
	file := filepath.Join(dir, "waybill.yaml")
	yaml := fmt.Sprintf("nats: {listen: \"127.0.0.1:0\"}\nlimits: {host_inflight: 1024}\npeers:\n  echo:\n    command: %q\n    args: [bench-peer]\n", self)
	return file, errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte(yaml), 0o600))
}

func (c benchCmd) calls(s *server, callers int, tcp bool) (m bench.Measured, steps benchSteps, err error) {
	id, err := bus.LoadHost(credentialsDir(s.file), localHost)
	if err != nil {
		return m, steps, err
	}
	target := bus.Target{Server: s.nats}
	if tcp {
		target = bus.Target{URL: s.url()}
	}
	client, err := bus.DialAs(s.app.ctx, id, target, prefix)
	if err != nil {
		return m, steps, err
	}
	defer client.Close()
	stop, err := c.profile(tcp)
	if err != nil {
		return m, steps, err
	}
	before, head := s.engine.Loop.Busy(), s.log.Head().Size
	m, err = bench.Call(s.app.ctx, callers, c.For, benchCall(client))
	after := s.engine.Loop.Busy()
	if err = errors.Join(err, stop()); err != nil {
		return m, steps, err
	}
	steps, err = stepsOf(s, m, before, after, head)
	return m, steps, err
}

// profile begins a CPU profile, where one is wanted and this is the way to profile.
func (c benchCmd) profile(tcp bool) (stop func() error, err error) {
	if c.Profile == "" || tcp {
		return func() error { return nil }, nil
	}
	f, err := os.Create(c.Profile)
	if err != nil {
		return nil, usageError(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

var benchRequest = []byte(`{"tool":"` + bench.Tool + `","arguments":` + bench.Arguments + `}`)

func benchCall(client *bus.Client) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		reply, code, err := client.Request(ctx, bus.CallVerb, benchRequest)
		if err != nil {
			return err
		}
		if code != "" {
			return fmt.Errorf("a call ended with %s: %s", code, reply)
		}
		return nil
	}
}

// stepsOf divides the mean time of a call: the loop says what deciding and appending take
// of each batch, a call is in two of them, and the log says how long it was between what
// the host submitted and what the peer answered. The rest is NATS and waiting.
func stepsOf(s *server, m bench.Measured, before, after harness.Busy, head int64) (steps benchSteps, err error) {
	batches := after.Batches - before.Batches
	if batches == 0 || m.Calls == 0 {
		return steps, nil
	}
	decide, appending := bench.MS(after.Decide-before.Decide)/float64(batches), bench.MS(after.Append-before.Append)/float64(batches)
	between, err := untilAnswered(s, head)
	if err != nil {
		return steps, err
	}
	steps = benchSteps{Decide: 2 * decide, Append: 2 * appending, Commit: float64(after.Events-before.Events) / float64(batches)}
	steps.Peer = max(0, bench.MS(between)-decide-appending)
	steps.NATS = max(0, m.Mean-steps.Decide-steps.Append-steps.Peer)
	return steps, nil
}

// untilAnswered is the mean time from the submission of a call to the peer's answer.
func untilAnswered(s *server, head int64) (time.Duration, error) {
	received, sum, n := map[string]int64{}, int64(0), int64(0)
	for after := head; ; {
		records, err := s.log.Reader().Read(s.app.ctx, after, 1024)
		if err != nil || len(records) == 0 {
			return time.Duration(sum / max(1, n)), err
		}
		for _, r := range records {
			after = r.Seq
			_, e, err := events.Open(r.Bytes)
			if err != nil {
				return 0, err
			}
			switch e.Data.(type) {
			case domain.CallReceived:
				received[e.Call()] = e.Mono
			case domain.CallAnswered:
				sum, n = sum+e.Mono-received[e.Call()], n+1
				delete(received, e.Call())
			}
		}
	}
}

func printBench(to io.Writer, rows []benchRow) {
	fmt.Fprintln(to, "callers   bare/s  in process/s  ratio  over TCP/s  ratio    p50 ms   p99 ms   NATS+wait  decide  append    peer  events/commit")
	for _, r := range rows {
		total := r.Steps.NATS + r.Steps.Decide + r.Steps.Append + r.Steps.Peer
		share := func(ms float64) string { return fmt.Sprintf("%.0f%%", 100*ms/max(total, 1e-9)) }
		fmt.Fprintf(to, "%7d  %7.0f  %12.0f  %5.2f  %10.0f  %5.2f  %8.2f %8.2f  %10s %7s %7s %7s  %13.1f\n", r.Callers, r.Bare.Rate, r.InProcess.Rate, r.Ratio,
			r.OverTCP.Rate, r.RatioTCP, r.InProcess.P50, r.InProcess.P99, share(r.Steps.NATS), share(r.Steps.Decide), share(r.Steps.Append),
			share(r.Steps.Peer), r.Steps.Commit)
	}
	fmt.Fprintln(to, strings.TrimSpace(`
bare: the least any service must do that records a call before it makes it and its outcome before it answers, with as many events.
p50, p99 and the shares are of calls in the process.`))
}

type benchPeerCmd struct{}

// Run serves the echo server of waybill bench on standard input and output.
func (benchPeerCmd) Run(*app) error { return bench.Echo(os.Stdin, os.Stdout) }
