package eventlist

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"waybill/events"
	"waybill/harness"
	"waybill/store"
)

// Filter says which events pass. Its zero value lets all pass.
type Filter struct {
	Call  string // key, host/call_id; "" for all, as with the others
	Type  string // whole, or the noun before its point
	Peer  string
	Since int64 // Unix nanoseconds; 0 for all
}

// When reads a moment in RFC 3339, or how long before now it was, as Unix nanoseconds;
// 0 for "".
func When(s string, now time.Time) (int64, error) {
	if s == "" {
		return 0, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d).UnixNano(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, fmt.Errorf("--since takes a time, as 2026-11-30T12:00:00Z, or how long ago, as 1h30m, not %q", s)
	}
	return t.UnixNano(), nil
}

// followEvery is how often the log is asked for what is new.
const followEvery = 200 * time.Millisecond

// Follow is Each that goes on as events come, each once and in order, until ctx ends,
// which is no error: that is how it is meant to end.
func (c Filter) Follow(ctx context.Context, r *store.Reader, after int64, f func(store.Record) error) error {
	return harness.Repeat(ctx, followEvery, func() (err error) {
		after, err = c.Each(ctx, r, after, f)
		return err
	})
}

// Each calls f with every event after a seq that passes, in order, and returns the last
// seq that it met. It ends at the first error of f and returns it.
func (c Filter) Each(ctx context.Context, r *store.Reader, after int64, f func(store.Record) error) (int64, error) {
	for {
		records, err := r.Read(ctx, after, 512)
		if err != nil || len(records) == 0 {
			return after, err
		}
		for _, rec := range records {
			after = rec.Seq
			late, err := isSince(rec, c.Since)
			if err == nil && late && c.wants(rec) {
				err = f(rec)
			}
			if err != nil {
				return after, err
			}
		}
	}
}

func isSince(r store.Record, since int64) (bool, error) {
	if since == 0 {
		return true, nil
	}
	_, e, err := events.Open(r.Bytes)
	if err != nil {
		return false, fmt.Errorf("event %d: %w", r.Seq, err)
	}
	return e.Time >= since, nil
}

func (c Filter) wants(r store.Record) bool {
	return (c.Call == "" || r.Call == c.Call) && (c.Peer == "" || r.Peer == c.Peer) &&
		(c.Type == "" || r.Type == c.Type || strings.HasPrefix(r.Type, c.Type+"."))
}

// Print writes the exact envelope, or a line for people.
func Print(w io.Writer, r store.Record, asJSON bool) error {
	if asJSON {
		_, err := fmt.Fprintf(w, "%s\n", r.Bytes)
		return err
	}
	_, e, err := events.Open(r.Bytes)
	if err != nil {
		return fmt.Errorf("event %d: %w", r.Seq, err)
	}
	data, err := json.Marshal(e.Data)
	if err != nil {
		return err
	}
	mark := "observed"
	if e.IsDecision() {
		mark = fmt.Sprintf("from %d", e.Cause)
	}
	_, err = fmt.Fprintf(w, "%6d  %-18s %-10s %s\n", e.Seq, r.Type, mark, data)
	return err
}
