package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill/config"
	"waybill/harness"
	"waybill/harness/care"
	"waybill/store"
)

// Status says how large a log is and how long it can go on.
type Status struct {
	Log  string `json:"log"`
	Head int64  `json:"head"`
	PID  int    `json:"pid,omitzero"` // of the service; 0 where none runs
	care.Measures
	Service jsontext.Value `json:"service"` // its answer to the verb status; null where none runs
}

// Measure looks at the log and the files around it, beside a service or not. PID
// and Service are for the caller to set.
func Measure(ctx context.Context, f *config.File) (s Status, err error) {
	dir := harness.DataDir(f.Data)
	r, err := store.OpenReader(dir.LogFile())
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	head, err := r.Head(ctx)
	if err != nil {
		return s, err
	}
	m, err := care.Measure(ctx, dir, r, f.Limits.LogSize, time.Now())
	return Status{Log: r.ID(), Head: head.Size, Measures: m, Service: jsontext.Value("null")}, err
}

// Warning is what should be said of a log that is nearly as large as it may be;
// "" for nothing.
func Warning(m care.Measures) string {
	if m.Share() <= care.WarnShare {
		return ""
	}
	return fmt.Sprintf("the log has %s of limits.log_size %s (%.0f %%); calls go on", Bytes(m.LogSize), Bytes(m.Limit), m.Share()*100)
}

// Print writes it for people.
func (s Status) Print(w io.Writer) error {
	runs := "not running"
	if s.PID > 0 {
		runs = fmt.Sprintf("running (pid %d)", s.PID)
	}
	fmt.Fprintf(w, "log %s, head %d, %s\n", s.Log, s.Head, runs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range s.Files {
		fmt.Fprintf(t, "%s\t%s\n", f.Name, Bytes(f.Bytes))
	}
	_ = t.Flush()
	limit := "no limit"
	if s.Limit > 0 {
		limit = fmt.Sprintf("%.0f %% of limits.log_size %s", s.Share()*100, Bytes(s.Limit))
	}
	fmt.Fprintf(w, "the log has %s, %s; %s free on the disk\n", Bytes(s.LogSize), limit, Bytes(s.DiskFree))
	growth := "not known before an hour of events"
	switch {
	case s.DaysLeft != nil:
		growth = fmt.Sprintf("%s a day; %.1f days left until the %s is reached", Bytes(*s.BytesADay), *s.DaysLeft, s.Bound)
	case s.BytesADay != nil:
		growth = "none in the last days"
	}
	_, err := fmt.Fprintf(w, "growth: %s\n", growth)
	return err
}

// Bytes is a size for people.
func Bytes(n int64) string {
	const names = "kMGTP"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1000, 0
	for ; v >= 1000 && i < len(names)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.1f %cB", v, names[i])
}
