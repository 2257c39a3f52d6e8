package credential

import (
	"testing"
	"time"
)

func TestTheRunsOfATokenCommandAreSpaced(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		name string
		runs string // r: a run, f: one that failed, a: accepted
		want []time.Duration
	}{
		{"each is refused", "rrrrrrrrr", []time.Duration{0, 1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 60e9, 60e9}},
		{"each fails", "fffffffff", []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 60e9, 60e9, 60e9}},
		{"accepted now and then", "rarararr", []time.Duration{0, 1e9, 1e9, 1e9, 2e9}},
		{"one fails", "rafr", []time.Duration{0, 1e9, 2e9}},
	} {
		var p renewals
		var got []time.Duration
		for _, run := range c.runs {
			if run == 'a' {
				p.accepted()
				continue
			}
			p.ran(now, run == 'f')
			got = append(got, p.after.Sub(now))
		}
		for i, want := range c.want {
			if len(got) != len(c.want) || got[i] != want {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}
