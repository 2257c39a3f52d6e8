package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

// reading is what came of one host's reading of the tools.
type reading struct {
	list domain.ToolList
	err  error
	took time.Duration
}

// canonical are the names of a list.
func (r reading) canonical() []string {
	var out []string
	for _, e := range r.list.Tools {
		out = append(out, e.Canonical)
	}
	return out
}

// want checks what was read, and which peers' lists were stale by then.
func (r reading) want(t testing.TB, names, stale []string) {
	t.Helper()
	if r.err != nil || !slices.Equal(r.canonical(), names) || !slices.Equal(r.list.Stale, stale) {
		t.Errorf("read %v, stale %v, %v after %v; want %v, stale %v", r.canonical(), r.list.Stale, r.err, r.took, names, stale)
	}
}

// read has n hosts read all tools of a context, and returns what they got, in no
// order, once all of them have.
func (s *listSim) read(n int, context string) []reading {
	return readAllAtOnce(s.t, s.engine, n, context)
}

func readAllAtOnce(t testing.TB, e *Engine, n int, context string) []reading {
	out := make(chan reading, n)
	for range n {
		go func() { out <- readOnce(t.Context(), e, context) }()
	}
	return collect(out, n)
}

func collect(out <-chan reading, n int) (all []reading) {
	for range n {
		all = append(all, <-out)
	}
	return all
}

func readOnce(ctx context.Context, e *Engine, context string) reading {
	begun := time.Now()
	list, err := e.ReadTools(ctx, context, "", 0)
	return reading{list, err, time.Since(begun)}
}

// stall keeps the loop busy until the returned function is called.
func (s *listSim) stall() (release func()) { return stall(s.t, s.loop) }

func stall(t testing.TB, l *Loop) (release func()) {
	held := make(chan struct{})
	go func() { _ = l.Ask(t.Context(), func(*domain.State) { <-held }) }()
	synctest.Wait()
	return func() { close(held) }
}

// after is what has been recorded after an event.
func (s *listSim) after(seq int64) []domain.Event {
	synctest.Wait()
	return readAll(s.t, s.disk, seq)
}

func (s *listSim) head() int64 {
	synctest.Wait()
	return s.engine.Feed.Head()
}

// stale lets time pass until every list is stale and may be read again.
func (s *listSim) stale() int64 {
	s.pass(2 * time.Second)
	return s.head()
}

// put changes what a peer lists in the default context.
func (p *listers) put(peer string, on shelf) { p.putFor(peer, "", on) }

func (p *listers) putFor(peer, context string, on shelf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shelves[peer+"/"+context] = on
}

func one(peer string, on shelf) *listers {
	return &listers{shelves: map[string]shelf{peer + "/": on}}
}

// A thousand hosts at once: one need, one decision, one reading (design: Lists,
// "one flight for all").
func TestHostsThatReadAtTheSameTimeShareOneReading(t *testing.T) {
	inLists(t, listConfig(rules(), nil, "notes"), one("notes", shelf{tools: tool("a")}), func(s *listSim) {
		head := s.stale()
		s.listers.put("notes", shelf{tools: tool("a") + "," + tool("b"), after: 200 * time.Millisecond, ttl: 60_000})
		release := s.stall()
		out := make(chan reading, 1000)
		for range 1000 {
			go func() { out <- readOnce(s.t.Context(), s.engine, "") }()
		}
		synctest.Wait()
		release()
		for _, r := range collect(out, 1000) {
			r.want(s.t, []string{"a", "b"}, []string{})
			if r.took != 200*time.Millisecond {
				s.t.Errorf("it took %v", r.took)
			}
		}
		list := s.after(head)
		if got := find[domain.ToolsRead](list); !slices.Equal(got, []domain.ToolsRead{{Reads: 1000}}) {
			s.t.Errorf("read: %+v", got)
		}
		if got := find[domain.CacheDecided](list); len(got) != 1 || len(got[0].Uses) != 1 || got[0].Uses[0].Act != domain.ActRead {
			s.t.Errorf("decided: %+v", got)
		}
		if got := find[domain.ListRequested](list); len(got) != 1 || got[0].Why != domain.WhyRead {
			s.t.Errorf("requested: %+v", got)
		}
		// It is fresh now: nothing is read again, and nobody waits.
		for _, r := range s.read(10, "") {
			r.want(s.t, []string{"a", "b"}, []string{})
		}
		if n := len(find[domain.ListRequested](s.after(head))); n != 1 {
			s.t.Errorf("a fresh list was read again: %d", n)
		}
	})
}

// Hosts that come while the last decision is less than readPause ago share the
// next one, whatever they call the default context.
func TestHostsThatComeWithinThePauseShareTheNextReading(t *testing.T) {
	inLists(t, listConfig(rules(), nil, "notes"), one("notes", shelf{tools: tool("a"), ttl: 60_000}), func(s *listSim) {
		s.pass(time.Second)
		head := s.head()
		if r := s.read(1, "")[0]; r.took != 0 {
			s.t.Errorf("the first waited %v", r.took)
		}
		out := make(chan reading, 5)
		for i, context := range []string{"", "default", "", "default", ""} {
			go func() {
				<-time.After(time.Duration(i*20) * time.Millisecond)
				out <- readOnce(s.t.Context(), s.engine, context)
			}()
		}
		for i, r := range collect(out, 5) {
			r.want(s.t, []string{"a"}, []string{})
			if r.took > readPause {
				s.t.Errorf("the %d. waited %v", i, r.took)
			}
		}
		if got := find[domain.ToolsRead](s.after(head)); !slices.Equal(got, []domain.ToolsRead{{Reads: 1}, {Reads: 5}}) {
			s.t.Errorf("read: %+v", got)
		}
		s.pass(readPause)
		if r := s.read(1, "default")[0]; r.took != 0 {
			s.t.Errorf("after the pause, one waited %v", r.took)
		}
	})
}

// One context does not use up the pause of another, however often it is read.
func TestEachContextHasAPauseOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		put := map[string][]time.Time{}
		var r *reads
		r = newReads(func(f *flight) bool {
			put[f.context] = append(put[f.context], time.Now())
			go r.take(f)
			return true
		})
		begun := time.Now()
		for range 20 {
			for _, context := range []string{"alice", "bob"} {
				r.join(context)
				<-time.After(readPause / 8)
			}
		}
		synctest.Wait()
		for i, context := range []string{"alice", "bob"} {
			for n, at := range put[context][:5] { // one at once, and then each as its own pause is over
				if took := at.Sub(begun) - time.Duration(i)*readPause/8; took != time.Duration(n)*readPause {
					t.Errorf("%s: the %d. came after %v", context, n, took)
				}
			}
		}
		r.close()
		if r.join("alice") != nil || len(r.last) > 2 {
			t.Errorf("after the end, or kept: %v", r.last)
		}
	})
}

// Nobody waits for a peer that does not answer for longer than the pause and the
// patience; what it listed last is served, and it is named.
func TestAPeerThatDoesNotAnswerHoldsUpReadersForAMomentOnly(t *testing.T) {
	p := &listers{shelves: map[string]shelf{"notes/": {tools: tool("a")}, "sums/": {tools: tool("x")}}}
	inLists(t, listConfig(rules(), nil, "notes", "sums"), p, func(s *listSim) {
		s.stale()
		s.listers.put("notes", shelf{tools: tool("never seen"), silent: true})
		s.listers.put("sums", shelf{tools: tool("x") + "," + tool("y"), ttl: 3_600_000, after: 300 * time.Millisecond})
		out := make(chan reading, 40)
		for i := range 40 {
			go func() {
				<-time.After(time.Duration(i*33) * time.Millisecond)
				out <- readOnce(s.t.Context(), s.engine, "")
			}()
		}
		longest := time.Duration(0)
		for _, r := range collect(out, 40) {
			r.want(s.t, []string{"a", "x", "y"}, []string{"notes"})
			longest = max(longest, r.took)
		}
		if longest > readPause+readPatience || longest < readPatience {
			s.t.Errorf("the longest wait was %v", longest)
		}
		if n := len(s.asks()); n != 4 {
			s.t.Errorf("%d lists were asked for: two at the start, two again", n)
		}
		// When it is given up, it is asked again later each time, and nobody waits for that.
		s.pass(15 * time.Second)
		if got := find[domain.CatalogRefused](s.events()); len(got) != 1 || got[0].Code != domain.CodeListTimeout {
			s.t.Errorf("refused: %+v", got)
		}
	})
}

// Hosts that ask for the same at the same moment are given the same, and what comes
// next is never kept from anybody.
func TestWhatIsSharedIsWhatEachHadBeenGivenAlone(t *testing.T) {
	p := one("notes", shelf{tools: tool("a") + "," + tool("b") + "," + tool("c"), ttl: 1000})
	r := rules()
	r.Listen = 1000
	p.notices = true
	inLists(t, listConfig(r, []string{"alice", domain.DefaultContext}, "notes"), p, func(s *listSim) {
		s.pass(time.Second - 3*time.Millisecond)
		for round := range 2 {
			stale := []string{}
			if round == 1 {
				stale = []string{"notes"} // its ttl has passed
			}
			for _, c := range []struct {
				context, after string
				most           int
				want           []string
			}{
				{"", "0", 0, []string{"a", "b", "c"}}, {"", "0", 2, []string{"a", "b"}}, {"", "a", 2, []string{"b", "c"}},
				{"", "a", 2, []string{"b", "c"}}, {"", "c", 2, nil},
			} {
				list, err := s.engine.ReadTools(s.t.Context(), c.context, c.after, c.most)
				reading{list: list, err: err}.want(s.t, c.want, stale)
			}
			other, err := s.engine.ReadTools(s.t.Context(), "alice", "c", 2)
			if err != nil || other.Context != "alice" || len(other.Tools) != 0 {
				s.t.Errorf("another context: %+v, %v", other, err)
			}
			s.pass(sameMoment)
		}
		p.put("notes", shelf{tools: tool("b") + "," + tool("d"), ttl: 60_000})
		ask := func() reading {
			list, err := s.engine.ReadTools(s.t.Context(), "", "0", 0)
			return reading{list: list, err: err}
		}
		ask().want(s.t, []string{"a", "b", "c"}, []string{"notes"})
		s.changes("notes", "", 1) // and it is read at once
		ask().want(s.t, []string{"b", "d"}, []string{})
	})
}

// A host that gives up costs the others nothing, and learns why it has nothing.
func TestAReaderWhoseContextEndsGoesAndTheOthersGoOn(t *testing.T) {
	inLists(t, listConfig(rules(), nil, "notes"), one("notes", shelf{tools: tool("a")}), func(s *listSim) {
		head := s.stale()
		s.listers.put("notes", shelf{tools: tool("b"), ttl: 60_000, after: 200 * time.Millisecond})
		release := s.stall() // undecided
		out := make(chan reading, 2)
		for _, patience := range []time.Duration{50 * time.Millisecond, time.Hour} {
			go func() {
				ctx, cancel := context.WithTimeout(s.t.Context(), patience)
				defer cancel()
				out <- readOnce(ctx, s.engine, "")
			}()
		}
		if r := <-out; !errors.Is(r.err, context.DeadlineExceeded) || r.took != 50*time.Millisecond || r.list.Tools != nil {
			s.t.Errorf("undecided: %+v", r)
		}
		release()
		synctest.Wait() // decided on, and being read
		ctx, cancel := context.WithTimeout(s.t.Context(), 150*time.Millisecond)
		defer cancel()
		if r := readOnce(ctx, s.engine, ""); !errors.Is(r.err, context.DeadlineExceeded) || r.took != 150*time.Millisecond {
			s.t.Errorf("being read: %+v", r)
		}
		(<-out).want(s.t, []string{"b"}, []string{})
		if got := find[domain.ToolsRead](s.after(head)); !slices.Equal(got, []domain.ToolsRead{{Reads: 2}, {Reads: 1}}) {
			s.t.Errorf("read: %+v", got)
		}
	})
}

// Hosts at random, of peers that answer at random: everybody is served or told why
// in time, every host is counted once, nothing is read too often, and what a host is
// given is something that the peer had listed.
func TestReadersAtRandomAreServedInTimeAndCountedOnce(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 6))
			p := &listers{shelves: map[string]shelf{"notes/": {tools: tool("v0")}, "sums/": {tools: tool("x")}}}
			inLists(t, listConfig(rules(), nil, "notes", "sums"), p, func(s *listSim) { randomReaders(s, rnd) })
		})
	}
}

func randomReaders(s *listSim, rnd *rand.Rand) {
	var wait sync.WaitGroup
	hosts, gone := 0, 0
	var mu sync.Mutex
	for step := range 200 {
		for range rnd.IntN(4) {
			patience := time.Hour
			if rnd.IntN(5) == 0 {
				patience = time.Duration(1+rnd.IntN(400)) * time.Millisecond
			}
			hosts++
			wait.Go(func() {
				ctx, cancel := context.WithTimeout(s.t.Context(), patience)
				defer cancel()
				r := readOnce(ctx, s.engine, "")
				mu.Lock()
				defer mu.Unlock()
				if r.err != nil {
					gone++
				}
				if r.took > readPause+readPatience || (r.err != nil) != (r.took == patience && errors.Is(r.err, context.DeadlineExceeded)) ||
					r.err == nil && (len(r.list.Tools) != 2 || r.list.Tools[1].Canonical != "x" || len(r.list.Missing) != 0) {
					s.t.Errorf("step %d: %v, stale %v, %v after %v of %v", step, r.canonical(), r.list.Stale, r.err, r.took, patience)
				}
			})
		}
		s.listers.put("notes", shelf{tools: tool(fmt.Sprint("v", step)), ttl: int64(rnd.IntN(3) * 300), silent: rnd.IntN(8) == 0,
			fails: rnd.IntN(8) == 0, after: time.Duration(rnd.IntN(900)) * time.Millisecond})
		s.pass(time.Duration(rnd.IntN(200)) * time.Millisecond)
	}
	wait.Wait()
	reads := int64(0)
	for _, d := range find[domain.ToolsRead](s.events()) {
		reads += d.Reads
	}
	if reads != int64(hosts) || gone == 0 || gone == hosts {
		s.t.Errorf("%d hosts read, of which %d gave up; the log counts %d", hosts, gone, reads)
	}
	last := map[string]time.Duration{}
	for _, a := range s.asks() {
		if before, ok := last[a.Peer]; ok && a.at-before < time.Second {
			s.t.Errorf("a list of %s was asked for at %v and at %v", a.Peer, before, a.at)
		}
		last[a.Peer] = a.at
	}
}
