package peer

import (
	"testing"
	"time"

	"waybill/harness/peer/web"
)

func TestWhenAStreamIsAskedForAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		event web.Event
		want  []time.Duration
	}{
		{"nothing said", web.Event{}, []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 30e9, 30e9}},
		{"a retry", web.Event{HasRetry: true, Retry: 500 * time.Millisecond}, []time.Duration{5e8, 1e9, 2e9, 4e9, 8e9, 16e9, 30e9}},
		{"no pause", web.Event{HasRetry: true}, []time.Duration{1e8, 2e8, 4e8}},
		{"a long pause", web.Event{HasRetry: true, Retry: time.Hour}, []time.Duration{time.Hour, time.Hour}},
		{"the longest pause", web.Event{HasRetry: true, Retry: 1<<63 - 1}, []time.Duration{1<<63 - 1, 1<<63 - 1}},
	} {
		tp := tape{}
		tp.note(c.event)
		for i, want := range c.want {
			if got := tp.wait(); got != want {
				t.Errorf("%s: pause %d is %v, want %v", c.name, i, got, want)
			}
		}
		tp.note(web.Event{HasID: true, ID: "x"})
		if got := tp.wait(); got != c.want[0] {
			t.Errorf("%s: after an event it is %v", c.name, got)
		}
	}
}

func TestAnIDIsKeptUntilItIsTakenBack(t *testing.T) {
	tp := tape{}
	for _, c := range []struct {
		event web.Event
		want  string
	}{
		{web.Event{HasID: true, ID: "1"}, "1"}, {web.Event{Data: []byte("x")}, "1"}, {web.Event{HasRetry: true}, "1"},
		{web.Event{HasID: true, ID: "2"}, "2"}, {web.Event{HasID: true}, ""},
	} {
		if tp.note(c.event); tp.last != c.want {
			t.Errorf("after %+v it is %q", c.event, tp.last)
		}
	}
}
