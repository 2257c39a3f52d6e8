package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"waybill/events"
	"waybill/store"
)

type eventsCmd struct {
	common
	After int64  `placeholder:"SEQ" help:"Only events after this seq."`
	Call  string `placeholder:"HOST/ID" help:"Only the events of one call."`
	Type  string `placeholder:"TYPE" help:"Only this type, or this noun: era.determined, or era."`
	Peer  string `placeholder:"NAME" help:"Only events of one peer."`
	Since string `placeholder:"TIME" help:"Only events since then: RFC 3339, or how long ago, as 1h30m."`

	Follow bool `help:"Go on as events come, until a signal."`
}

// Help is shown under the usage.
func (eventsCmd) Help() string {
	return "Example:\n  waybill events -c waybill.yaml --type era\n  waybill events --since 1h --follow --json\n\n" +
		"Reads the log itself, also while the service runs. --json prints the exact envelopes, one a line."
}

// Run prints events.
func (c eventsCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	if err := dataDir(f).Exists(); err != nil {
		return err
	}
	r, err := store.OpenReader(dataDir(f).LogFile())
	if err != nil {
		return err
	}
	defer r.Close()
	since, err := sinceWhen(c.Since, time.Now())
	if err != nil {
		return usageError(err)
	}
	found := 0
	show := func(rec store.Record) error {
		found++
		return printEvent(a, rec, c.wantJSON())
	}
	if c.Follow {
		return c.follow(a.ctx, r, since, show)
	}
	_, err = c.each(a.ctx, r, c.After, since, show)
	if err == nil && found == 0 {
		a.progress("waybill: no event of log %s matches; a call is named HOST/ID, such as %s/wb-...", r.ID(), localHost)
	}
	return err
}

// sinceWhen reads a moment, or a time before now, as Unix nanoseconds; everything is
// since "".
func sinceWhen(s string, now time.Time) (int64, error) {
	if s == "" {
		return math.MinInt64, nil
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

// follow ends well when a signal comes: that is how it is meant to end.
func (c eventsCmd) follow(ctx context.Context, r *store.Reader, since int64, f func(store.Record) error) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for after := c.After; ; {
		last, err := c.each(ctx, r, after, since, f)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		after = last
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// each calls f with every event after a seq that is wanted, and returns the last seq
// that it met.
func (c eventsCmd) each(ctx context.Context, r *store.Reader, after, since int64, f func(store.Record) error) (int64, error) {
	for {
		records, err := r.Read(ctx, after, 512)
		if err != nil || len(records) == 0 {
			return after, err
		}
		for _, rec := range records {
			after = rec.Seq
			late, err := isSince(rec, since)
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
	if since == math.MinInt64 {
		return true, nil
	}
	_, e, err := events.Open(r.Bytes)
	if err != nil {
		return false, fmt.Errorf("event %d: %w", r.Seq, err)
	}
	return e.Time >= since, nil
}

func (c eventsCmd) wants(r store.Record) bool {
	return (c.Call == "" || r.Call == c.Call) && (c.Peer == "" || r.Peer == c.Peer) &&
		(c.Type == "" || r.Type == c.Type || strings.HasPrefix(r.Type, c.Type+"."))
}

// printEvent writes the exact envelope, or a line for people.
func printEvent(a *app, r store.Record, asJSON bool) error {
	if asJSON {
		_, err := fmt.Fprintf(a.out, "%s\n", r.Bytes)
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
	_, err = fmt.Fprintf(a.out, "%6d  %-18s %-10s %s\n", e.Seq, r.Type, mark, data)
	return err
}
