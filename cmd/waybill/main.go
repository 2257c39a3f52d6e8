package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"waybill/cmd/waybill/demo"
	"waybill/harness/peer/watchdog"
)

// version is what service.started and serverInfo carry.
const version = "0.1.0"

type cli struct {
	Version kong.VersionFlag `help:"Print the version."`

	Init      initCmd      `cmd:"" help:"Make the log, its keys and the NATS credentials; again: add what is missing."`
	Pin       pinCmd       `cmd:"" help:"Write waybill.lock: what each peer runs, by hash."`
	Check     checkCmd     `cmd:"" help:"Probe and list all peers, and print the report."`
	Host      hostCmd      `cmd:"" help:"Make the credentials of hosts; print who has some."`
	Auditor   auditorCmd   `cmd:"" help:"Make the credentials of auditors, who read everything; print who has some."`
	Dashboard dashboardCmd `cmd:"" help:"Make the credentials of dashboards, which read what is public; print which there are."`

	Serve   serveCmd   `cmd:"" help:"Run the service until a signal comes."`
	Call    callCmd    `cmd:"" help:"Call a tool and print the reply."`
	Calls   callsCmd   `cmd:"" help:"What became of a call; give one up; send one again."`
	Erase   eraseCmd   `cmd:"" help:"Erase what is kept of calls: an operator's decision, on record."`
	Tools   toolsCmd   `cmd:"" help:"Print the tools that can be called; approve one that has changed."`
	Peers   peersCmd   `cmd:"" help:"Print the peer table; start a peer again that is down."`
	Events  eventsCmd  `cmd:"" help:"Print events of the log."`
	Export  exportCmd  `cmd:"" help:"Write what the JetStream stream holds, to compare it with the log."`
	Rotate  rotateCmd  `cmd:"" name:"rotate-key" help:"Leave the log's signing key for a new one; no service may run."`
	Status  statusCmd  `cmd:"" help:"Print how large the log is, and how long it can go on."`
	Backup  backupCmd  `cmd:"" help:"Copy the log into one file that verifies by itself, also while the service runs."`
	Restore restoreCmd `cmd:"" help:"Begin a new log that cites the one in a backup."`
	Doctor  doctorCmd  `cmd:"" help:"Say what is wrong with the data directory and what to do; change nothing."`
	Demo    demoCmd    `cmd:"" help:"Run the whole job on three real peers in a temporary directory."`

	Bench benchCmd `cmd:"" help:"Measure how many calls this machine can do, beside the least that any service must do."`

	Watchdog  watchdogCmd  `cmd:"" hidden:""`
	DemoPeer  demoPeerCmd  `cmd:"" hidden:""`
	BenchPeer benchPeerCmd `cmd:"" hidden:""`
}

// common are the flags of every command that reads a configuration.
type common struct {
	Config string `short:"c" default:"waybill.yaml" placeholder:"FILE" help:"The configuration (waybill.yaml)."`
	JSON   bool   `name:"json" help:"Print pure JSON on standard output."`
}

func (c common) file() string   { return c.Config }
func (c common) wantJSON() bool { return c.JSON }

// app is what commands print to and run with.
type app struct {
	ctx    context.Context
	out    io.Writer
	err    *cleaning
	logger *slog.Logger
}

// newApp makes the app of a command with this configuration.
func newApp(ctx context.Context, out, errs io.Writer, file string) *app {
	said := &cleaning{to: errs, file: file}
	return &app{ctx: ctx, out: out, err: said, logger: slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelWarn}))}
}

// progress tells a person what is going on; never on standard output.
func (a *app) progress(format string, v ...any) { fmt.Fprintf(a.err, format+"\n", v...) }

func main() {
	gentler()
	log.SetOutput(io.Discard) // net/http says there what a peer writes unasked, which may be anything
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its ends in the hands of a test.
func run(args []string, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := newApp(ctx, out, errs, configIn(args))
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("waybill"), kong.Writers(out, a.err), kong.UsageOnError(), kong.Vars{"version": version},
		kong.Description("Waybill routes tool calls to MCP servers and records every decision.\nBegin with: waybill demo, or waybill init, waybill pin, waybill check."),
		kong.Exit(func(code int) { exited = code }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}))
	if err != nil {
		return a.fail(slices.Contains(args, "--json"), err)
	}
	if i := slices.IndexFunc(args, func(s string) bool { return !utf8.ValidString(s) }); i >= 0 { // the parser would replace what is none
		return a.fail(slices.Contains(args, "--json"), usageError(fmt.Errorf("argument %d is not UTF-8", i+1)))
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help was printed
	}
	if err != nil {
		return a.fail(slices.Contains(args, "--json"), usageError(err))
	}
	return a.fail(slices.Contains(args, "--json"), k.Run(a))
}

type watchdogCmd struct{}

// Run is the body of the watchdog process.
func (watchdogCmd) Run(*app) error {
	watchdog.Main()
	return nil
}

type demoPeerCmd struct {
	Kind string `arg:""`
}

// Run serves one demo peer on standard input and output.
func (c demoPeerCmd) Run(a *app) error { return demo.Serve(a.ctx, c.Kind) }

// gcPercent is how much a process that serves lets its small heap grow before it is
// collected: at the default a tenth of the processors' time went there.
const gcPercent = 400

// gentler sets it, unless whoever starts the program has.
func gentler() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
}
