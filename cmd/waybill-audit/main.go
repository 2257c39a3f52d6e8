package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/events/checkpoint"
	"waybill/replay"
	"waybill/store"
)

// Exit codes. They are a contract.
const (
	exitInternal    = 1
	exitUsage       = 2
	exitNoLog       = 9
	exitAltered     = 20
	exitDiverged    = 21
	exitUndecidable = 22
)

type cli struct {
	Verify verifyCmd `cmd:"" help:"Is the log whole and unaltered?"`
	Replay replayCmd `cmd:"" help:"Does every decision follow from what was recorded before it?"`
	Show   showCmd   `cmd:"" help:"Print events of the log, with the evidence they cite."`
	Export exportCmd `cmd:"" help:"Print the exact bytes of all events, one a line."`

	Peers     peersCmd     `cmd:"" help:"Which peers were there, and how did they stand, at a moment?"`
	Namespace namespaceCmd `cmd:"" help:"Who held which name at a moment?"`
	Calls     callsCmd     `cmd:"" help:"Which calls were under way at a moment?"`
	Diff      diffCmd      `cmd:"" help:"What changed between two moments?"`
	Explain   explainCmd   `cmd:"" help:"Why did a call go where it went, and end as it did?"`
	WhyNot    whyNotCmd    `cmd:"" help:"Why could a name not be called at a moment?"`

	Prove      proveCmd      `cmd:"" help:"Write a proof that a stranger can check: that an event is in the log, or that one checkpoint continues another."`
	Checkproof checkproofCmd `cmd:"" help:"Does a proof hold, under a public key?"`
}

// target is the log file every command takes.
type target struct {
	JSON bool   `name:"json" help:"Print pure JSON on standard output."`
	Log  string `arg:"" placeholder:"LOG" help:"The log file: log.db of a data directory, or a copy."`
}

type app struct {
	ctx context.Context
	out io.Writer
	err io.Writer
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its ends in the hands of a test.
func run(args []string, out, errs io.Writer) int {
	a := &app{ctx: context.Background(), out: out, err: errs}
	asJSON := slices.Contains(args, "--json")
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("waybill-audit"), kong.Writers(out, errs), kong.UsageOnError(),
		kong.Description("Answers about a log from the log alone. It cannot spawn a process or open a connection."),
		kong.Exit(func(code int) { exited = code }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}))
	if err != nil {
		return a.fail(asJSON, err)
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		return a.fail(asJSON, usageError{err})
	}
	return a.fail(asJSON, k.Run(a))
}

// quietError keeps the exit code of an error that has been printed.
type quietError struct{ error }

func (e quietError) Unwrap() error { return e.error }

func quiet(err error) error {
	if err == nil {
		return nil
	}
	return quietError{err}
}

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// fail prints an error where there is one and returns the exit code.
func (a *app) fail(asJSON bool, err error) int {
	if err == nil {
		return 0
	}
	code, exit := classify(err)
	var said quietError
	if errors.As(err, &said) {
		return exit
	}
	if !asJSON {
		fmt.Fprintf(a.err, "waybill-audit: %v\n", err)
		return exit
	}
	b, encodeErr := json.Marshal(errorDoc(code, err), json.Deterministic(true))
	if encodeErr != nil {
		fmt.Fprintf(a.err, "waybill-audit: %v\n", encodeErr)
		return exitInternal
	}
	fmt.Fprintf(a.out, "%s\n", b)
	return exit
}

type failure struct {
	Error struct {
		Code    string  `json:"code"`
		Message string  `json:"message"`
		Where   *string `json:"where"`
	} `json:"error"`
}

type divergence struct {
	Kind        string         `json:"kind"`
	Seq         int64          `json:"seq"`
	Recorded    jsontext.Value `json:"recorded"`
	Redecided   jsontext.Value `json:"redecided"`
	Observation jsontext.Value `json:"observation"`
}

func errorDoc(code string, err error) failure {
	var doc failure
	doc.Error.Code, doc.Error.Message = code, err.Error()
	var altered *replay.AlteredError
	var undecidable *replay.UndecidableError
	seq := int64(0)
	switch {
	case errors.As(err, &altered):
		seq = altered.Seq
	case errors.As(err, &undecidable):
		seq = undecidable.Seq
	}
	if seq != 0 {
		where := fmt.Sprintf("event %d", seq)
		doc.Error.Where = &where
	}
	return doc
}

func classify(err error) (code string, exit int) {
	var altered *replay.AlteredError
	var diverged *replay.DivergedError
	var undecidable *replay.UndecidableError
	var usage usageError
	switch {
	case errors.As(err, &altered) || errors.Is(err, store.ErrAltered) || errors.Is(err, replay.ErrNoEvidence):
		return "altered", exitAltered
	case errors.As(err, &diverged):
		return "diverged", exitDiverged
	case errors.As(err, &undecidable) || errors.Is(err, store.ErrNewerSchema):
		return "undecidable", exitUndecidable
	case errors.Is(err, store.ErrMissing):
		return "not_initialised", exitNoLog
	case errors.Is(err, store.ErrNotLog), errors.Is(err, logfile.ErrBadExport):
		return "not_a_log", exitUsage
	case errors.Is(err, checkpoint.ErrMalformed):
		return "usage", exitUsage
	case errors.As(err, &usage):
		return "usage", exitUsage
	}
	return "internal", exitInternal
}

func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", b)
	return err
}
