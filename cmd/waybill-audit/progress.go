package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"waybill/replay"
)

// progressEvery is the least time between two lines of progress.
const progressEvery = 2 * time.Second

// watched is a source that says on standard error how far it was read, where that takes
// long.
type watched struct {
	replay.Source
	to   io.Writer
	verb string
	told int64 // the seq of the last line
	next time.Time
}

// watched returns src with its progress told. now is only for people.
func (a *app) watched(src replay.Source, verb string) replay.Source {
	return &watched{Source: src, to: a.err, verb: verb, next: time.Now().Add(progressEvery)}
}

// Records implements replay.Source.
func (w *watched) Records(ctx context.Context, after int64, max int) ([]replay.Record, error) {
	records, err := w.Source.Records(ctx, after, max)
	if len(records) == 0 || time.Now().Before(w.next) {
		return records, err
	}
	if last := records[len(records)-1].Seq; last > w.told { // single events are read again
		fmt.Fprintf(w.to, "waybill-audit: %s %d events\n", w.verb, last)
		w.told, w.next = last, time.Now().Add(progressEvery)
	}
	return records, err
}
