package stream

import "testing"

// The gate shuts above its limit and opens a tenth below it, not before.
func TestTheGateDoesNotSwing(t *testing.T) {
	var lag int64
	g := NewGate(100, func() int64 { return lag })
	for _, step := range []struct {
		lag  int64
		shut bool
	}{{0, false}, {100, false}, {101, true}, {100, true}, {91, true}, {90, false}, {95, false}, {101, true}, {5000, true}, {0, false}} {
		lag = step.lag
		if got, shut := g.Shut(); shut != step.shut || got != step.lag {
			t.Errorf("at %d: %d, %v", step.lag, got, shut)
		}
	}
	if _, shut := NewGate(0, func() int64 { return 1 << 40 }).Shut(); shut {
		t.Error("a gate without a limit shut")
	}
	one := NewGate(1, func() int64 { return lag })
	for _, step := range []struct {
		lag  int64
		shut bool
	}{{1, false}, {2, true}, {1, false}} {
		lag = step.lag
		if _, shut := one.Shut(); shut != step.shut {
			t.Errorf("limit 1 at %d: %v", step.lag, shut)
		}
	}
}
