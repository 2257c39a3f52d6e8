package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"waybill/domain"
	"waybill/projections"
	"waybill/store"
)

const million = 1_000_000

// BenchmarkMillion makes a log of a million events, four to each call, as the loop
// writes it, and measures what a start does with it: opening the file, the fold,
// and views that are made for the first time or are there already. one-by-one is
// the fold without anything beside it: read, decode, apply. Of both the best of three
// runs in turn counts, and ratio-fold is what the fold takes of the plain one. It needs
// a second processor that is free.
func BenchmarkMillion(b *testing.B) {
	path := millionEvents(b)
	for b.Loop() {
		opened := timed(b, func() error {
			l, err := store.Open(path)
			if err != nil {
				return err
			}
			return l.Close()
		})
		b.ReportMetric(float64(opened.Microseconds())/1000, "ms-open")
		measureFolds(b, openDisk(b, path))
		b.ReportMetric(0, "ns/op") // most of it is making the log
	}
}

func timed(b *testing.B, f func() error) time.Duration {
	b.Helper()
	begun := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}

// millionEvents returns a closed log.
func millionEvents(b *testing.B) string {
	b.Helper()
	path := newLogFile(b)
	log := openDisk(b, path)
	r := newRig(b, log)
	r.peers.quiet = true
	r.start("notes")
	var all sync.WaitGroup
	for range 256 {
		all.Go(func() { callUntil(b, r, log, million) })
	}
	all.Wait()
	r.stop()
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// callUntil makes one call after the other until the log has a size.
func callUntil(b *testing.B, r *rig, log diskLog, size int64) {
	request := []byte(`{"tool":"notes","arguments":{"query":"tea","limit":10}}`)
	got := make(chan domain.Status, 1)
	for log.Log.Head().Size < size {
		r.loop.Submit("local", request, func(reply Reply) { got <- reply.Status })
		if s := <-got; s != domain.StatusComplete {
			b.Errorf("a call ended as %s", s)
			return
		}
	}
}

// measureFolds reports the time of each way through a log, in turn.
func measureFolds(b *testing.B, log diskLog) {
	// As at a start, the context can end.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	bare, fold := time.Hour, time.Hour
	for range 3 {
		bare = min(bare, timed(b, func() error { return foldOneByOne(ctx, log, domain.NewState()) }))
		fold = min(fold, timed(b, func() error { return Fold(ctx, log, log.ID(), domain.NewState()) }))
	}
	file := filepath.Join(b.TempDir(), "views.db")
	made := timed(b, func() error { return catchUpViews(ctx, log, file) })
	there := timed(b, func() error { return catchUpViews(ctx, log, file) })
	b.ReportMetric(bare.Seconds(), "s-one-by-one")
	b.ReportMetric(fold.Seconds(), "s-fold")
	b.ReportMetric(fold.Seconds()/bare.Seconds(), "ratio-fold")
	b.ReportMetric(made.Seconds(), "s-views-made")
	b.ReportMetric(there.Seconds(), "s-views-there")
	b.ReportMetric(float64(log.Log.Head().Size), "events")
}

// foldOneByOne is a fold in its plainest form.
func foldOneByOne(ctx context.Context, log diskLog, s *domain.State) error {
	for s.Head < log.Log.Head().Size {
		records, err := log.Read(ctx, s.Head, foldBatch)
		if err != nil {
			return err
		}
		for _, r := range records {
			e, err := Decode(ctx, log, log.ID(), r)
			if err != nil {
				return err
			}
			s.Apply(e)
		}
	}
	return nil
}

func catchUpViews(ctx context.Context, log diskLog, file string) error {
	v, err := projections.Open(ctx, file, log.ID(), log.Log.Head().Size)
	if err != nil {
		return err
	}
	if err := CatchUp(ctx, log, log.ID(), v); err != nil {
		return err
	}
	if v.Position() != log.Log.Head().Size {
		return fmt.Errorf("the views are at %d of %d", v.Position(), log.Log.Head().Size)
	}
	return v.Close()
}
