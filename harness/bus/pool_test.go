package bus

import (
	"context"
	"testing"
	"time"
)

// A host has a quarter of the places, so that others find one whatever it does.
func TestAHostDoesNotTakeThePlacesOfOthers(t *testing.T) {
	p := newPool(4, 12, time.Minute)
	hold, held := make(chan struct{}), 0
	wait := func(context.Context, *Request) { <-hold }
	for range 100 {
		if p.offer(&Request{Host: "greedy"}, wait) {
			held++
		}
	}
	if held != 4 {
		t.Errorf("one host has %d places of 16", held)
	}
	for _, host := range []string{"b", "c"} {
		if !p.offer(&Request{Host: host}, wait) {
			t.Errorf("there is no place for host %s", host)
		}
	}
	close(hold)
	p.stop()
	if len(p.taken) != 0 {
		t.Errorf("places are still taken: %v", p.taken)
	}
}
