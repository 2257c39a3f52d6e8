package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var (
	crashKills = flag.Int("crash.kills", 30, "how often TestCrash kills the service; at least once at each point")
	crashCuts  = flag.Int("crash.cuts", 60, "how often TestPowerCut cuts the power")
	crashSeed  = flag.Uint64("crash.seed", 0, "what the random moments come from; 0 for the clock")
)

// cuts is how often the power is cut. What a cut takes is for the disk to say, and
// not for the race detector: a third is enough beside it.
func cuts() int {
	if raced {
		return *crashCuts / 3
	}
	return *crashCuts
}

// crashPerLog bounds how often one log is hurt, so that a long run spends its time
// on crashes and not on reading a log that grows.
const crashPerLog = 100

// totals is what a run shows.
type totals struct {
	kills                          map[string]int
	calls, acknowledged, under     int
	charged, lost, doubled, events int64
}

func (a *totals) add(b totals) {
	for name, n := range b.kills {
		a.kills[name] += n
	}
	a.calls, a.acknowledged, a.under = a.calls+b.calls, a.acknowledged+b.acknowledged, a.under+b.under
	a.charged, a.lost, a.doubled, a.events = a.charged+b.charged, a.lost+b.lost, a.doubled+b.doubled, a.events+b.events
}

func (a *totals) all() (n int) {
	for _, k := range a.kills {
		n += k
	}
	return n
}

// String is the summary line.
func (a *totals) String() string {
	var steps []string
	for _, p := range append(crashPoints[:len(crashPoints):len(crashPoints)], crashPoint{name: "at random"}) {
		if n := a.kills[p.name]; n > 0 {
			steps = append(steps, fmt.Sprintf("%s %d", p.name, n))
		}
	}
	return fmt.Sprintf("%d kills (%s); %d calls: %d acknowledged, %d ran, %d settled as lost; acknowledged and lost %d, doubled %d; "+
		"%d events verified, replayed and equal in JetStream", a.all(), strings.Join(steps, ", "), a.calls, a.acknowledged, a.charged, a.under,
		a.lost, a.doubled, a.events)
}

func crashRand(t *testing.T) *rand.Rand {
	seed := *crashSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-crash.seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// TestCrash kills the service at each point, and at random moments, while hosts
// call it; it is started again each time. At the end no call of which a host was
// told is missing, none was run twice by us, the log is whole and decides again,
// and its copy in JetStream is equal. A longer run:
//
//	go test ./cmd/waybill -run 'TestCrash$' -v -crash.kills 1000 -timeout 2h
func TestCrash(t *testing.T) {
	t.Parallel()
	sum, r := totals{kills: map[string]int{}}, crashRand(t)
	for left := max(*crashKills, len(crashPoints)+1); left > 0; {
		c := newCrasher(t, r)
		points := c.plan(min(left, crashPerLog), crashPoints)
		for _, p := range points {
			c.live(p)
		}
		sum.add(c.finish())
		left -= len(points)
	}
	t.Log(&sum)
	for _, p := range append(crashPoints[:len(crashPoints):len(crashPoints)], crashPoint{name: "at random"}) {
		if sum.kills[p.name] == 0 {
			t.Errorf("it was never killed %s", p.name)
		}
	}
	if sum.lost+sum.doubled > 0 || sum.acknowledged == 0 {
		t.Errorf("%d acknowledged, of them %d lost; %d doubled", sum.acknowledged, sum.lost, sum.doubled)
	}
}

// plan puts each of the points once, if there is room, and random moments in
// the rest, in a random order; in a longer run every second is at a point.
func (c *crasher) plan(n int, points []crashPoint) []crashPoint {
	plan := append([]crashPoint(nil), points[:min(n, len(points))]...)
	for len(plan) < n {
		p := crashPoint{}
		if len(plan) > 2*len(points) && c.rand.IntN(2) == 0 {
			p = points[c.rand.IntN(len(points))]
		}
		plan = append(plan, p)
	}
	c.rand.Shuffle(n, func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	return plan
}
