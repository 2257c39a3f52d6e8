package watchdog

import (
	"testing"
	"time"
)

func TestPaceOfReplacement(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPace(time.Second, now)
	for _, c := range []struct{ after, wait time.Duration }{
		{time.Hour, 0},             // the first one lasted
		{time.Millisecond, 1999e6}, // the second one did not
		{0, 4 * time.Second},       // and later each time
		{3 * time.Second, 5e9},     // from one start to the next
		{0, 16 * time.Second},      //
		{0, 30 * time.Second},      // but not ever later
		{0, 30 * time.Second},      //
		{59 * time.Second, 0},      // not long enough to begin anew
		{0, 30 * time.Second},      //
		{time.Minute, 0},           // long enough
		{time.Second, time.Second}, //
		{0, 4 * time.Second},       //
	} {
		now = now.Add(c.after)
		if got := p.next(now); got != c.wait {
			t.Errorf("%v after the last start it waits %v, want %v", c.after, got, c.wait)
		}
		now = now.Add(c.wait)
	}
	if p := newPace(time.Second, now); p.next(now) != time.Second {
		t.Error("a second start within the first second")
	}
	if p := newPace(time.Hour, now); p.next(now) != time.Hour || p.next(now.Add(time.Hour)) != time.Hour {
		t.Error("a longer pause than the longest is not kept")
	}
}
