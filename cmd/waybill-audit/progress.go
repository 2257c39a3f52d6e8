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
	next time.Time
}

// watched returns src with its progress told. now is only for people.
func (a *app) watched(src replay.Source, verb string) replay.Source {
	return &watched{Source: src, to: a.err, verb: verb, next: time.Now().Add(progressEvery)}
}

// Records implements replay.Source.
func (w *watched) Records(ctx context.Context, after int64, max int) ([]replay.Record, error) {
	records, err := w.Source.Records(ctx, after, max)
	if now := time.Now(); len(records) > 0 && now.After(w.next) {
		fmt.Fprintf(w.to, "waybill-audit: %s %d events\n", w.verb, records[len(records)-1].Seq)
		w.next = now.Add(progressEvery)
	}
	return records, err
}
