package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/replay"
)

// world is peers that do what a random source says, and hosts that ask for it.
type world struct {
	*service
	rnd     *rand.Rand
	mu      sync.Mutex
	pending []domain.Send
	ended   []domain.Send // answered, or given up
	gone    map[domain.At]bool
	up      map[string]domain.At
	replies []<-chan Reply
}

func newWorld(t *testing.T, disk diskLog, rnd *rand.Rand) *world {
	w := &world{rnd: rnd, gone: map[domain.At]bool{}, up: map[string]domain.At{}}
	c := testConfig("books", "notes", "sums")
	c.Inflight = 12
	for i := range c.Peers {
		c.Peers[i].Resends = i // 0, 1 and 2
	}
	c.Peers[1].Repeatable = []string{"notes"}
	w.service = startService(t, disk, c, func(r *rig, e domain.Effect, _ []byte) {
		w.note(e)
		r.probes(e)
	})
	noErr(t, w.engine.WaitSettled(within(t)))
	return w
}

// note keeps what was sent. A call sent to a peer that has gone fails at once,
// as the peers' rooms make it.
func (w *world) note(e domain.Effect) {
	if x, ok := e.(domain.Launch); ok {
		w.mu.Lock()
		w.up[x.Peer] = x.At
		w.mu.Unlock()
	}
	s, ok := e.(domain.Send)
	if !ok || s.Method != "tools/call" {
		return
	}
	w.mu.Lock()
	gone := w.gone[s.At]
	if !gone {
		w.pending = append(w.pending, s)
	}
	w.mu.Unlock()
	if gone {
		w.fail(s, "no")
	}
}

func (w *world) fail(s domain.Send, written string) {
	w.tell(domain.ExchangeFailed{At: s.At, RequestID: s.RequestID, Call: s.Call, Written: written, Code: domain.CodeTransportLost}, nil, nil)
}

// take removes one of the requests that wait, at random.
func (w *world) take() (s domain.Send, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) == 0 {
		return s, false
	}
	i := w.rnd.IntN(len(w.pending))
	s = w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	w.ended = append(w.ended, s)
	return s, true
}

// step does one thing at random.
func (w *world) step() {
	switch n := w.rnd.IntN(100); {
	case n < 40:
		w.call()
	case n < 70:
		if s, ok := w.take(); ok {
			w.anyAnswer(s)
		}
	case n < 78:
		if s, ok := w.take(); ok {
			w.tell(domain.DeadlinePassed{At: s.At, RequestID: s.RequestID}, nil, nil)
		}
	case n < 84 && len(w.ended) > 0: // late, or twice
		w.anyAnswer(w.ended[w.rnd.IntN(len(w.ended))])
	case n == 84:
		w.exit([]string{"books", "notes"}[w.rnd.IntN(2)])
	case n < 95: // let everything that was handed over be done
		if err := w.loop.Ask(context.Background(), func(*domain.State) {}); err != nil {
			w.t.Error(err)
		}
	default:
		w.tell(domain.NoiseCounted{At: domain.At{Peer: "sums", Incarnation: 1}, Kinds: []domain.NoiseCount{}}, nil, nil)
	}
}

func (w *world) call() {
	request := fmt.Sprintf(`{"tool":%q`, []string{"books", "notes", "sums", "none"}[w.rnd.IntN(4)])
	if w.rnd.IntN(2) == 0 {
		request += fmt.Sprintf(`,"call_id":"c%d"`, w.rnd.IntN(60))
	}
	if w.rnd.IntN(10) == 0 {
		request += fmt.Sprintf(`,"generation":%d`, 1+w.rnd.IntN(3))
	}
	if w.rnd.IntN(20) == 0 {
		request += `,"what":1`
	}
	if w.rnd.IntN(3) == 0 {
		request += fmt.Sprintf(`,"wait_ms":%d,"progress":true`, 1+w.rnd.IntN(20))
	}
	w.replies = append(w.replies, w.submit([]string{"local", "other"}[w.rnd.IntN(2)], request+"}"))
}

func (w *world) anyAnswer(s domain.Send) {
	facts := []domain.Facts{
		{Kind: domain.FactResult, ResultType: "complete"},
		{Kind: domain.FactResult, ResultType: "complete", IsError: true},
		{Kind: domain.FactResult, ResultType: "input_required"},
		{Kind: domain.FactResult},
		{Kind: domain.FactError, ErrorCode: -32000},
		{Kind: domain.FactBroken},
	}
	w.report(s, facts[w.rnd.IntN(len(facts))], []byte(fmt.Sprintf(`{"request":%d}`, s.RequestID)))
}

// exit ends a peer: what waits for it fails, and then its end is told.
func (w *world) exit(peer string) {
	w.mu.Lock()
	at := w.up[peer]
	if w.gone[at] {
		w.mu.Unlock()
		return
	}
	w.gone[at] = true
	var lost []domain.Send
	w.pending = slices.DeleteFunc(w.pending, func(s domain.Send) bool {
		if s.At == at {
			lost = append(lost, s)
		}
		return s.At == at
	})
	w.mu.Unlock()
	for i, s := range lost {
		w.fail(s, []string{"maybe", "no"}[i%2])
	}
	w.tell(domain.PeerExited{At: at, Status: 1, Cause: "exited"}, nil, nil)
}

// story is how one call went, by the log.
type story struct {
	seqs   []int64
	status domain.Status
	code   domain.Code
	ran    domain.Ran
	ends   int
	routed int
}

func stories(list []domain.Event) map[string]*story {
	out := map[string]*story{}
	for _, e := range list {
		if e.Call() == "" {
			continue
		}
		s := out[e.Call()]
		if _, ok := e.Data.(domain.CallReceived); ok && (s == nil || s.status == domain.StatusRefused) {
			s = &story{} // an id that was refused may be used again
			out[e.Call()] = s
		}
		if s.ends == 0 {
			s.seqs = append(s.seqs, e.Seq)
		}
		switch d := e.Data.(type) {
		case domain.CallRouted:
			s.routed++
		case domain.CallRefused:
			s.status, s.code, s.ran, s.ends = domain.StatusRefused, d.Code, domain.RanNo, s.ends+1
		case domain.CallSettled:
			s.status, s.code, s.ran, s.ends = d.Status, d.Code, d.Ran, s.ends+1
		}
	}
	return out
}

func TestEveryCallEndsOnceAsTheLogSaysWhateverTheOrder(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			disk := openDisk(t, newLogFile(t))
			rnd := rand.New(rand.NewPCG(seed, 42))
			for range 3 {
				before := disk.Log.Head().Size
				w := newWorld(t, disk, rnd)
				for range 400 {
					w.step()
				}
				w.quit()
				sameReport(t, disk, w.loop.state.Report(testLog)) // nobody else owns it any more
				w.wantReplies(t, readAll(t, disk, before))
			}
			audit(t, disk)
		})
	}
}

// wantReplies checks that each submission had one reply, and that it is the end
// that the log has for the call.
func (w *world) wantReplies(t *testing.T, list []domain.Event) {
	t.Helper()
	ends := map[int64]*domain.Event{}
	for i, e := range list {
		switch e.Data.(type) {
		case domain.CallRefused, domain.CallSettled:
			ends[e.Seq] = &list[i]
		}
	}
	used := map[int64]bool{}
	for _, got := range w.replies {
		reply := w.reply(got)
		last := reply.Seqs[len(reply.Seqs)-1]
		end := ends[last]
		if end == nil || used[last] {
			t.Errorf("reply %s has no end of its own in the log", reply.Encode())
			continue
		}
		used[last] = true
		w.wantEnd(t, reply, *end, list)
	}
	if len(w.replies) < 100 || len(used) != len(ends) {
		t.Errorf("%d submissions, %d ends in the log, %d of them replied", len(w.replies), len(ends), len(used))
	}
	for key, s := range stories(list) {
		if s.ends != 1 || s.routed > 1 {
			t.Errorf("call %s was routed %d times and ended %d times: %+v", key, s.routed, s.ends, s)
		}
	}
}

func (w *world) wantEnd(t *testing.T, reply Reply, end domain.Event, list []domain.Event) {
	t.Helper()
	var want Reply
	switch d := end.Data.(type) {
	case domain.CallRefused:
		want = Reply{Status: domain.StatusRefused, Code: d.Code, Ran: domain.RanNo}
	case domain.CallSettled:
		want = Reply{Status: d.Status, Code: d.Code, Ran: d.Ran}
	}
	if reply.Status != want.Status || reply.Code != want.Code || reply.Ran != want.Ran {
		t.Errorf("reply %s, but the log ended it with %+v", reply.Encode(), end)
	}
	first := list[0].Seq
	var last domain.At
	for i, seq := range reply.Seqs {
		e := list[seq-first]
		if e.Call() != end.Call() {
			t.Errorf("reply %s names event %d, which is of %q", reply.Encode(), seq, e.Call())
		}
		if _, ok := e.Data.(domain.CallReceived); ok != (i == 0) {
			t.Errorf("reply %s does not begin with its call.received", reply.Encode())
		}
		switch d := e.Data.(type) {
		case domain.CallRouted:
			last = d.At
		case domain.CallResent:
			last = d.At
		}
	}
	if route := reply.Route; (route == nil) != (last == domain.At{}) || route != nil && (domain.At{Peer: route.Peer, Incarnation: route.Incarnation} != last) {
		t.Errorf("reply %s, but it was last sent to %+v", reply.Encode(), last)
	}
	answered := reply.Result != nil || reply.Error != nil
	if byPeer := reply.Status != domain.StatusRefused && reply.Status != domain.StatusLost && reply.Status != domain.StatusTimedOut &&
		reply.Status != domain.StatusCancelled; answered != byPeer {
		t.Errorf("reply %s has the peer's bytes: %v", reply.Encode(), answered)
	}
}

// sameReport checks that a fold of the log comes to what the live state says.
func sameReport(t *testing.T, disk diskLog, live domain.Report) {
	t.Helper()
	s := domain.NewState()
	noErr(t, Fold(context.Background(), disk, testLog, s))
	if got := s.Report(testLog); !reflect.DeepEqual(got, live) {
		t.Errorf("the fold says %+v, live is %+v", got, live)
	}
}

// audit verifies and replays the log.
func audit(t *testing.T, disk diskLog) {
	t.Helper()
	verified, err := replay.Verify(context.Background(), logfile.Log{Reader: disk.Reader})
	noErr(t, err)
	replayed, err := replay.Replay(context.Background(), logfile.Log{Reader: disk.Reader})
	noErr(t, err)
	head := disk.Log.Head()
	if verified.Size != head.Size || verified.Root != head.Root || replayed.Size != head.Size || replayed.Agreed != replayed.Decisions {
		t.Errorf("head %d, verified %d, replayed %d: %d of %d decisions agree", head.Size, verified.Size, replayed.Size, replayed.Agreed, replayed.Decisions)
	}
}
