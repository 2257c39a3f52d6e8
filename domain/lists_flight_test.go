package domain

import (
	"strconv"
	"strings"
	"testing"
)

// flights looks at every reading of a list, apart from the state: there is one at
// a time, with a pause between two, and none that is needed is lost.
type flights struct {
	s     *sim
	lines map[string]*flight
	seen  map[string]int
}

// A flight is one list of one incarnation.
type flight struct {
	at       At
	reading  bool
	begun    int64
	failures int
	wants    int   // the version that a notice spoke of, 0 for none
	since    int64 // when it was wanted, or failed last
}

func watchFlights(s *sim) *flights {
	f := &flights{s: s, lines: map[string]*flight{}, seen: map[string]int{}}
	s.watch = f.step
	return f
}

func (f *flights) of(at At, context string) *flight {
	key := at.Peer + " " + contextKey(context)
	l := f.lines[key]
	if l == nil || l.at != at {
		l = &flight{at: at}
		f.lines[key] = l
	}
	return l
}

func (f *flights) step(events []Event) {
	for _, e := range events {
		f.seen[e.Data.Kind()]++
		switch d := e.Data.(type) {
		case ServiceStarted:
			clear(f.lines)
		case PeerExited:
			for key, l := range f.lines { // order-free: each is looked at alone
				if l.at == d.At {
					delete(f.lines, key)
				}
			}
		case ListChanged:
			l := f.of(d.At, d.Context)
			if l.wants == 0 {
				l.since = f.s.now
			}
			l.wants = f.s.servers[d.Peer].lists[contextKey(d.Context)].version
		case ListRequested:
			f.requested(e, d)
		case CatalogAccepted:
			f.accepted(d)
		case CatalogRefused:
			l := f.of(d.At, d.Context)
			l.reading, l.since = false, f.s.now
			l.failures++
		}
	}
	f.wait()
}

func (f *flights) requested(e Event, d ListRequested) {
	l := f.of(d.At, d.Context)
	if d.Page > 1 {
		if !l.reading {
			f.s.t.Fatalf("event %d: page %d of a list that is not read", e.Seq, d.Page)
		}
		return
	}
	if l.reading {
		f.s.t.Fatalf("event %d: a list of %s is read twice at once: %+v", e.Seq, d.Peer, d)
	}
	pause := f.s.s.Peer(d.Peer).Config.Lists.Interval
	if l.failures > 0 {
		pause = grow(pause, l.failures, longestAgain)
	}
	if l.begun != 0 && f.s.now-l.begun < pause*ms {
		f.s.t.Fatalf("event %d: a list of %s is read again after %d µs, after %d failures: %+v", e.Seq, d.Peer, (f.s.now-l.begun)/1000, l.failures, d)
	}
	l.reading, l.begun = true, f.s.now
}

func (f *flights) accepted(d CatalogAccepted) {
	l := f.of(d.At, d.Context)
	l.reading, l.failures = false, 0
	if f.s.version(d.Peer, d.Context) >= l.wants {
		l.wants = 0
	}
}

// version is that of the list which a peer's line holds; 0 for none.
func (k *keeper) version(peer, context string) int {
	l := k.s.Peer(peer).line(context)
	if l.catalog == nil || len(l.catalog.Tools) == 0 {
		return 0
	}
	for _, part := range strings.Split(l.catalog.Tools[0].Local, ".") {
		if n, err := strconv.Atoi(strings.TrimPrefix(part, "v")); err == nil && strings.HasPrefix(part, "v") {
			return n
		}
	}
	return 0
}

// wait holds between any two steps: what was announced is read within the longest
// interval, or the delay after failures, and the time that reading takes.
func (f *flights) wait() {
	for key, l := range f.lines { // order-free: each is looked at alone
		delay := longestInterval + 1_000
		if l.failures > 0 {
			delay += int(grow(1_000, l.failures, longestAgain))
		}
		if l.reading { // its deadlines, of three pages
			delay += 3 * 10_000
		}
		if l.wants != 0 && f.s.now-l.since > int64(delay)*ms {
			f.s.t.Fatalf("%s: version %d was announced %d ms ago and is not read: %+v", key, l.wants, (f.s.now-l.since)/ms, l)
		}
	}
}

// flightSim is a sim of a modern peer of two contexts, one without notices, and a
// legacy one.
func flightSim(t testing.TB, seed uint64) (*sim, Config) {
	s := newSim(t, seed)
	for _, x := range []*server{s.server("p", "alice", "bob"), s.server("q", DefaultContext), s.server("r", DefaultContext)} {
		for _, l := range x.lists { // order-free: each alike
			l.ttl, l.pages = 86_400_000, 1+int(seed%3)
		}
	}
	s.servers["q"].quiet, s.servers["r"].legacy = true, true
	c := ruled(testConfig(PrefixOnCollision, "p", "q", "r"), onlyPeer("p", inContexts("alice", "bob")))
	c.Peers[1].Lists.Refresh, c.Peers[2].AllowLegacy = 20_000, true
	if seed%4 == 0 {
		for i := range c.Peers {
			c.Peers[i].Lists.Interval = 10
		}
	}
	return s, c
}

// bother does one thing at random that makes somebody need a list, or keeps it from
// being read.
func (s *sim) bother(c Config) {
	x := s.servers[[]string{"p", "p", "q", "r"}[s.r.IntN(4)]]
	context := x.contexts()[s.r.IntN(len(x.lists))]
	switch n := s.r.IntN(40); {
	case n < 10:
		x.changes(context)
	case n < 12:
		for range 1 + s.r.IntN(30) {
			x.changes(context)
		}
	case n < 20:
		s.feed(ToolsRead{Context: []string{"", "alice", "bob", "mallory"}[s.r.IntN(4)], Reads: 1})
	case n < 24:
		s.calls("", "nobody has it")
	case n < 28:
		x.unheard++
		if list := s.s.Tools(context, "", 0, s.mono()).Tools; len(list) > 0 {
			s.calls(context, list[s.r.IntN(len(list))].Canonical)
		}
	case n < 31:
		x.fails += 1 + s.r.IntN(4)
	case n < 32:
		x.mute++
	case n < 35:
		x.ends(context, []string{EndedAnswered, EndedError, EndedCancelled}[s.r.IntN(3)])
	case n < 36:
		x.deaf++
	case n < 37:
		s.crash(x.up)
	case n < 38 && s.r.IntN(4) == 0:
		s.begin(c)
	}
}

func (s *sim) calls(context, tool string) {
	s.made++
	s.feed(CallReceived{CallID: CallID{Host: "local", ID: "c" + strconv.Itoa(s.made)}, Context: context, Tool: tool, Arguments: Payload{Size: 2}})
}

// TestOneReadingForEverybody (design, "Lists": one flight for all, with a minimum
// interval; storms are folded), under random needs, failures and outages: never two
// readings of a list at once, never two too soon after each other, and none lost.
// Where a subscription is open at the end, the list is that of its server.
func TestOneReadingForEverybody(t *testing.T) {
	seen := map[string]int{}
	active := 0
	for seed := range walks(uint64(40)) {
		s, c := flightSim(t, seed)
		f := watchFlights(s)
		s.begin(c)
		for range 120 {
			s.run(s.r.Int64N([]int64{50, 3_000, 20_000}[s.r.IntN(3)]))
			s.bother(c)
		}
		for _, x := range s.servers { // order-free: each alike
			x.fails, x.mute, x.deaf = 0, 0, 0
		}
		s.run(1_000_000)
		f.wait()
		s.onceEach()
		for kind, n := range f.seen { // order-free: sums
			seen[kind] += n
		}
		active += s.settledDown(seed)
		if seed%10 == 0 {
			s.refolds()
		}
	}
	for _, kind := range []string{"list.deferred", "cache.decided", "catalog.refused", "subscription.closed", "subscription.opened", "list.due", "peer.restarted", "deadline.passed"} {
		if seen[kind] < walks(100) {
			t.Errorf("%s came %d times: the walks do not go where they should", kind, seen[kind])
		}
	}
	t.Logf("%d readings for %d notices, %d needs of hosts and %d calls; %d subscriptions open at the end",
		seen["list.requested"], seen["list.changed"], seen["tools.read"], seen["call.received"], active)
	if active < walks(80) {
		t.Errorf("%d subscriptions are open at the end", active)
	}
}

// settledDown checks what holds when nothing has happened for long, and returns how
// many lists are listened for.
func (s *sim) settledDown(seed uint64) int {
	n := 0
	for _, peer := range []string{"p", "q", "r"} {
		s.s.Peer(peer).each(func(l *line) {
			if l.sub.acked || s.servers[peer].legacy && l.peer.Era == EraLegacy {
				n++
				if has, want := s.version(peer, l.context), s.servers[peer].lists[l.context].version; has != want || s.verdict(peer, l.context) != CacheFresh {
					s.t.Fatalf("seed %d: %s %s is %s in version %d, its server is at %d", seed, peer, l.context, s.verdict(peer, l.context), has, want)
				}
			}
		})
	}
	return n
}

// TestAThousandNeedsGiveOneReading of each list: while it is read, and while it is
// about to be.
func TestAThousandNeedsGiveOneReading(t *testing.T) {
	k := noticed(t)
	k.pass(700_000)
	before := k.count(MethodList)
	for i := range 1_000 {
		switch i % 4 {
		case 0:
			k.changes("p", "")
		case 1:
			k.reads("")
		case 2:
			k.refusal("", "nobody")
		case 3:
			r := must[CallRouted](t, k.submit("", "x"))
			k.answersCall(r, Facts{Kind: FactError, ErrorCode: -32602})
		}
	}
	if n := k.count(MethodList) - before; n != 1 {
		t.Errorf("%d readings", n)
	}
	k.answered("p", "", listPage(cached(0, ScopePublic), "x"))
	for range 1_000 {
		k.changes("p", "")
		k.reads("")
	}
	if n, due := k.count(MethodList)-before, len(k.dues); n != 1 || due != 2 { // readers do not wait as long as notices
		t.Errorf("%d readings, %d put off", n, due)
	}
}

// TestAStormOfNoticesCostsLess each time nothing is found to have changed, up to
// half a minute; a change brings the interval back.
func TestAStormOfNoticesCostsLess(t *testing.T) {
	k := noticed(t)
	k.pass(60_000)
	k.changes("p", "")
	var delays []int64
	for range 8 {
		k.changes("p", "") // while it is read
		d := must[ListDeferred](t, k.answered("p", "", listPage(cached(600_000, ScopePublic), "x")))
		delays = append(delays, d.Delay)
		k.pass(d.Delay)
		must[ListRequested](t, k.isDue("p", "", DueList))
	}
	for i, want := range []int64{2_000, 4_000, 8_000, 16_000, 30_000, 30_000} {
		if delays[i] != want {
			t.Fatalf("read again after %v", delays)
		}
	}
	k.changes("p", "")
	if d := must[ListDeferred](t, k.answered("p", "", listPage(cached(600_000, ScopePublic), "x", "y"))); d.Delay != 1_000 {
		t.Errorf("after a change, read again after %d", d.Delay)
	}
}
