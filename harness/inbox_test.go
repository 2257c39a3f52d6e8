package harness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

// queued returns an input that waits in the queue of a host, as calls do.
func queued(host string, n int) input {
	return input{host: host, reply: func(Reply) {}, data: domain.CallReceived{CallID: domain.CallID{Host: host, ID: fmt.Sprint(n)}}}
}

// taken says what was taken: the key of a call, the type of an observation.
func taken(list []input) (out []string) {
	for _, in := range list {
		if d, ok := in.data.(domain.CallReceived); ok {
			out = append(out, d.CallKey())
			continue
		}
		out = append(out, in.data.Kind())
	}
	return out
}

func TestHostsTakeTurns(t *testing.T) {
	b := newInbox(100)
	for i := range 6 {
		b.offer(queued("flood", i))
	}
	b.offer(queued("quiet", 0))
	b.offer(queued("third", 0))
	b.offer(queued("third", 1))
	b.offer(queued("third", 2))
	for i, want := range []string{"flood/0 flood/1 quiet/0 third/0", "flood/2 flood/3 third/1 third/2", "flood/4 flood/5"} {
		if got := strings.Join(taken(b.take(10, 4, 100)), " "); got != want {
			t.Errorf("batch %d: %s, want %s", i, got, want)
		}
	}
	if b.calls != 0 || len(b.queues) != 0 || len(b.turns) != 0 {
		t.Errorf("left: %d calls, %d queues, %d turns", b.calls, len(b.queues), len(b.turns))
	}
}

func TestAHostThatComesLateWaitsForNoMoreThanATurn(t *testing.T) {
	b := newInbox(10_000)
	for i := range 5000 {
		b.offer(queued("flood", i))
	}
	b.take(10, 100, 100)
	b.offer(queued("quiet", 0))
	if got := taken(b.take(10, 2, 100)); !slices.Equal(got, []string{"flood/100", "quiet/0"}) {
		t.Errorf("taken: %v", got)
	}
}

func TestAHostHasItsShareOfABatchAndKeepsItsTurn(t *testing.T) {
	b := newInbox(100)
	for i := range 7 {
		b.offer(queued("flood", i))
	}
	b.offer(queued("quiet", 0))
	for i, want := range []string{"flood/0 flood/1 quiet/0", "flood/2 flood/3", "flood/4 flood/5", "flood/6"} {
		if got := strings.Join(taken(b.take(10, 5, 2)), " "); got != want {
			t.Errorf("batch %d: %s, want %s", i, got, want)
		}
	}
}

func TestNothingElseWaitsBehindCallsOrIsRefused(t *testing.T) {
	b := newInbox(2)
	for i := range 3 {
		code := b.offer(queued("flood", i))
		if want := map[bool]domain.Code{true: domain.CodeOverloaded}[i == 2]; code != want {
			t.Errorf("call %d: %q, want %q", i, code, want)
		}
	}
	b.put(input{data: domain.WaitPassed{}})
	b.put(input{data: domain.HealthDue{}})
	if got := taken(b.take(10, 1, 100)); !slices.Equal(got, []string{"flood/0", "wait.passed", "health.due"}) {
		t.Errorf("taken: %v", got)
	}
	b.put(input{data: domain.WaitPassed{}})
	b.put(input{data: domain.HealthDue{}})
	if got := taken(b.take(1, 1, 100)); !slices.Equal(got, []string{"flood/1", "wait.passed"}) {
		t.Errorf("taken: %v", got)
	}
	b.offer(queued("flood", 3))
	if got := taken(b.close()); !slices.Equal(got, []string{"health.due", "flood/3"}) {
		t.Errorf("left: %v", got)
	}
}

func TestAHostIsTurnedAwayAtItsLimitOfCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log, func(c *Config) { c.HostInflight = 2 }).start("notes")
		r.setAnswer(r.silent)
		one, two := r.submit("local", `{"tool":"notes","call_id":"a"}`), r.submit("local", `{"tool":"notes","call_id":"b"}`)
		reply := r.wantReply(r.submit("local", `{"tool":"notes","call_id":"c"}`), domain.StatusRefused, domain.CodeOverloaded, domain.RanNo)
		if !strings.Contains(reply.Reason, "2 calls of this host are under way (limits.host_inflight)") || reply.CallID != "c" || len(reply.Seqs) != 0 {
			t.Errorf("reply: %s", reply.Encode())
		}
		r.submit("other", `{"tool":"notes","call_id":"a"}`)
		synctest.Wait()
		r.answer(r.peers.sends()[0], "complete", []byte(`{}`))
		r.wantReply(one, domain.StatusComplete, "", domain.RanYes)
		three := r.submit("local", `{"tool":"notes","call_id":"d"}`)
		synctest.Wait()
		r.stop()
		r.wantReply(two, domain.StatusCancelled, domain.CodeShuttingDown, domain.RanMaybe)
		r.wantReply(three, domain.StatusCancelled, domain.CodeShuttingDown, domain.RanMaybe)
		if got := find[domain.IntakeShed](readAll(t, log, 0)); !slices.Equal(got, []domain.IntakeShed{{Count: 1, Code: domain.CodeOverloaded}}) {
			t.Errorf("shed: %+v", got)
		}
		if len(r.loop.pressure.hosts) != 0 {
			t.Errorf("hosts without calls are remembered: %v", r.loop.pressure.hosts)
		}
	})
}

func TestAHostIsHeldToItsRate(t *testing.T) {
	now := int64(0)
	p := newPressure(1, 2.5, func() int64 { return now })
	var turned []int
	for i := range 6 {
		if reason := p.enter("local"); reason == "" {
			p.leave("local")
		} else if turned = append(turned, i); !strings.Contains(reason, "2.5 calls a second (limits.host_rate)") {
			t.Errorf("reason: %s", reason)
		}
	}
	if !slices.Equal(turned, []int{3, 4, 5}) {
		t.Errorf("turned away: %v, want those after the first three", turned)
	}
	if p.enter("other") != "" {
		t.Error("another host pays for it")
	}
	now += int64(400 * time.Millisecond) // one more
	if p.enter("local") != "" {
		t.Error("no call after the time of one")
	}
	if !p.shared() {
		t.Error("two hosts have calls under way, and that is not known")
	}
	p.leave("other")
	if p.shared() {
		t.Error("one host has calls under way, and is held to a share")
	}
	if !strings.Contains(p.enter("local"), "host_inflight") {
		t.Error("two calls under way at once")
	}
	p.leave("local")
	now += int64(400 * time.Millisecond)
	if reason := p.enter("local"); reason != "" {
		t.Errorf("a call that found no place cost its rate: %s", reason)
	}
}

func TestATransactionHoldsABoundedNumberOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log, func(c *Config) { c.Calls = 8 }).start("notes")
		log.hold()
		for i := range 50 {
			r.submit("local", fmt.Sprintf(`{"tool":"none","call_id":"c%d"}`, i))
		}
		synctest.Wait()
		log.pass()
		synctest.Wait()
		_, batches := log.appends()
		if m := slices.Max(batches); m != 16 {
			t.Errorf("a transaction has %d events, want those of 8 calls that were refused", m)
		}
		r.stop()
	})
}

func TestAHostHasAShareOfATransactionWhileAnotherHasCallsUnderWay(t *testing.T) {
	for _, others := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			log := newMemLog(t)
			r := newRig(t, log, func(c *Config) { c.Calls, c.Share = 8, 2 }).start("notes")
			r.setAnswer(r.silent)
			for range others {
				r.submit("other", `{"tool":"notes"}`)
			}
			synctest.Wait()
			_, before := log.appends()
			log.hold()
			for range 20 {
				r.submit("local", `{"tool":"none"}`)
			}
			synctest.Wait()
			log.pass()
			synctest.Wait()
			_, batches := log.appends()
			if got, want := slices.Max(batches[len(before):]), []int{16, 4}[others]; got != want {
				t.Errorf("beside %d other hosts a transaction has %d events, want %d: two a call", others, got, want)
			}
			r.stop()
		})
	}
}

func TestACancellationFindsACallThatStillWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog(t)
		r := newRig(t, log, func(c *Config) { c.Calls = 1 }).start("notes")
		r.setAnswer(r.silent)
		log.hold()
		for range 5 {
			r.submit("local", `{"tool":"none"}`)
		}
		got := r.submit("local", `{"tool":"notes","call_id":"a"}`)
		found := make(chan bool, 1)
		go func() {
			ok, err := r.loop.Cancel(t.Context(), domain.CallID{Host: "local", ID: "a"})
			found <- ok && err == nil
		}()
		synctest.Wait()
		log.pass()
		if !<-found {
			t.Error("the call was not found")
		}
		r.wantReply(got, domain.StatusCancelled, domain.CodeCancelled, domain.RanMaybe)
		r.stop()
	})
}
