package harness

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestAWaiterWakesWhenThereIsAnEventAfterItsPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFeed(5)
		if err := f.Wait(context.Background(), 4); err != nil {
			t.Error(err)
		}
		woken := make(chan int64, 3)
		for _, after := range []int64{5, 6, 9} {
			go func() {
				if err := f.Wait(context.Background(), after); err != nil {
					t.Error(err)
				}
				woken <- after
			}()
		}
		for _, step := range []struct {
			head int64
			want []int64
		}{{5, nil}, {3, nil}, {6, []int64{5}}, {9, []int64{6}}, {10, []int64{9}}} {
			f.Advance(step.head)
			synctest.Wait()
			var got []int64
			for len(woken) > 0 {
				got = append(got, <-woken)
			}
			if !slices.Equal(got, step.want) {
				t.Errorf("head %d woke %v, want %v", step.head, got, step.want)
			}
			if want := max(step.head, 5); f.Head() != want {
				t.Errorf("told head %d, the feed is at %d, want %d", step.head, f.Head(), want)
			}
		}
	})
}

func TestAWaiterEndsWithItsContextOrWithWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFeed(0)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.Wait(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: %v", err)
		}
		done := make(chan struct{})
		close(done)
		if err := f.wait(context.Background(), 0, done); !errors.Is(err, errStopping) {
			t.Errorf("wait: %v", err)
		}
		f.Advance(1)
		if err := f.wait(context.Background(), 0, done); err != nil {
			t.Errorf("there is an event, but wait says %v", err)
		}
	})
}

func TestALaneRunsAllInOrderAndEndsWhenItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if the goroutine is left
		l := startLane()
		var got []int
		blocked := make(chan struct{})
		l.put(func() { <-blocked })
		for i := range 1000 {
			l.put(func() { got = append(got, i) })
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		stopped := make(chan struct{})
		go func() { l.stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("stop did not wait for what was put")
		default:
		}
		close(blocked)
		<-stopped
		if len(got) != 1000 || !slices.IsSorted(got) {
			t.Errorf("%d functions ran, in the order %v", len(got), got)
		}
	})
}

func TestAnIdleLaneRunsWhatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLane()
		synctest.Wait()
		n := 0
		for range 3 {
			l.put(func() { n++ })
			synctest.Wait()
		}
		l.stop()
		if n != 3 {
			t.Errorf("%d functions ran, want 3", n)
		}
	})
}
