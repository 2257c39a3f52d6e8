package doctor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"waybill/cmd/waybill/config"
	"waybill/harness"
	"waybill/store"
)

// How much a finding matters.
const (
	Error   = "error"   // something does not work, or may be lost
	Warning = "warning" // somebody should act before it is an error
	Note    = "note"    // good to know: it mends itself, or was meant
)

// A Finding is one thing that is not as it should be.
type Finding struct {
	Severity string `json:"severity"`
	Code     string `json:"code"` // short and stable
	Where    string `json:"where"`
	What     string `json:"what"`
	Do       string `json:"do"`
}

// Findings are what was found, in the order in which it was looked.
type Findings struct {
	List []Finding `json:"findings"`
}

// Worst returns the highest severity among them; "" where there are none.
func (f Findings) Worst() string {
	for _, severity := range []string{Error, Warning, Note} {
		if slices.ContainsFunc(f.List, func(one Finding) bool { return one.Severity == severity }) {
			return severity
		}
	}
	return ""
}

// Print writes them for people.
func (f Findings) Print(w io.Writer) error {
	for _, one := range f.List {
		fmt.Fprintf(w, "%s %s: %s\n  %s\n  do: %s\n", one.Severity, one.Code, one.Where, one.What, one.Do)
	}
	if len(f.List) > 0 {
		return nil
	}
	_, err := fmt.Fprintln(w, "nothing is wrong")
	return err
}

// Service is what a running service says of itself.
type Service struct {
	Head      int64
	Published int64
	Stream    string // why nothing is published any more; "" where nothing is wrong
}

// Patient is what is looked at.
type Patient struct {
	File        *config.File
	Lookup      func(string) (string, bool) // the environment
	Credentials string                      // folder of the NATS keys
	Prefix      string                      // of NATS subjects
	Now         time.Time

	// Ask asks the running service; it is called only where one runs.
	Ask func(ctx context.Context) (Service, error)
	// Verify reads the whole log and says what is altered; nil leaves that out.
	Verify func(ctx context.Context, path string) error
	// Replay decides the whole log again and says which decision does not follow; nil leaves
	// that out.
	Replay func(ctx context.Context, path string) error
}

// Examine looks at everything and returns what it found, in the order in which it
// looked: what comes first may be the cause of what follows. It fails only when
// ctx ends.
func Examine(ctx context.Context, p Patient) (Findings, error) {
	c := &checkup{ctx: ctx, Patient: p, dir: harness.DataDir(p.File.Data), found: []Finding{}}
	for _, look := range []func(){c.directory, c.marks, c.permissions, c.keys, c.lock, c.log, c.views, c.service, c.size, c.pins, c.tokens, c.nats} {
		if look(); ctx.Err() != nil {
			break
		}
	}
	if c.reader != nil {
		_ = c.reader.Close() // it was only read from
	}
	return Findings{c.found}, ctx.Err()
}

// checkup is one look at a patient.
type checkup struct {
	Patient
	ctx   context.Context // of the one Examine
	dir   harness.DataDir
	found []Finding

	absent bool          // there is no directory to look at
	run    *harness.Run  // of a running service, else nil
	reader *store.Reader // nil where the log cannot be read
	head   store.Head
}

func (c *checkup) add(severity, code, where, do, what string, args ...any) {
	c.found = append(c.found, Finding{severity, code, where, fmt.Sprintf(what, args...), do})
}
