package peer

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

func listenFor(id int64, context string, deadline int64) domain.Send {
	return domain.Send{At: at1, RequestID: id, Method: domain.MethodListen, Era: domain.EraModern, Version: "2026-07-28", Context: context,
		Types: []string{domain.TypeToolsChanged}, Deadline: deadline}
}

// subscribed is a subscription that was written, and waits for its acknowledgement for ten seconds.
func subscribed(t *table, id int64, context string) *request {
	r := t.add(listenFor(id, context, 10_000), nil)
	t.begin(r)
	return r
}

func modernTable() (*table, *ledger) {
	t, l := testTable()
	t.selectEra(domain.EraModern)
	return t, l
}

func changedOn(id int64, context string, count int64) domain.Data {
	return domain.ListChanged{At: at1, Context: context, Subscription: id, Count: count}
}

func endedAs(id int64, context, how string) domain.Data {
	return domain.SubscriptionEnded{At: at1, Context: context, RequestID: id, How: how}
}

func lostListen(id int64, written string, code domain.Code) domain.Data {
	return domain.ExchangeFailed{At: at1, RequestID: id, Written: written, Code: code}
}

func TestTheDeadlineOfASubscriptionIsForItsAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, got := modernTable()
		r := subscribed(table, 1, "c")
		late := subscribed(table, 2, "d")
		unwritten := table.add(listenFor(3, "", 10_000), nil)
		pass(9999 * time.Millisecond)
		synctest.Wait()
		if context, ok := table.acknowledge(1); !ok || context != "c" {
			t.Errorf("acknowledged %q, %v", context, ok)
		}
		if _, ok := table.acknowledge(3); ok {
			t.Error("a subscription was acknowledged that the peer cannot know of")
		}
		pass(time.Second)
		table.expire(r) // a timer that had fired
		synctest.Wait()
		want := []domain.Data{domain.DeadlinePassed{At: at1, RequestID: 2, Silent: true}, domain.DeadlinePassed{At: at1, RequestID: 3, Written: writtenNo}}
		if !reflect.DeepEqual(got.data(), want) && !reflect.DeepEqual(got.data(), []domain.Data{want[1], want[0]}) {
			t.Errorf("reported %+v", got.data())
		}
		for id := range int64(4) {
			if _, ok := table.acknowledge(id); ok {
				t.Errorf("subscription %d was acknowledged", id)
			}
		}
		if !table.cancellable(late) || table.cancellable(unwritten) {
			t.Error("the peer is not told of what it may be at work on, or is told of what it does not know")
		}
		pass(1000 * time.Hour)
		synctest.Wait()
		table.fail(domain.CodeTransportLost)
		if data := got.data(); len(data) != 3 || data[2] != lostListen(1, writtenMaybe, domain.CodeTransportLost) {
			t.Errorf("reported %+v", data)
		}
	})
}

func TestWhatIsNoSubscriptionIsNoneForANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, got := modernTable()
		for id, method := range map[int64]string{1: domain.MethodCall, 2: domain.MethodList, 3: domain.MethodDiscover} {
			table.begin(table.add(domain.Send{At: at1, RequestID: id, Method: method, Era: domain.EraModern, Deadline: 9000}, nil))
		}
		table.add(listenFor(4, "", 9000), nil)
		over := subscribed(table, 5, "")
		table.withdraw(5)
		if !table.cancellable(over) {
			t.Error("a subscription that was withdrawn cannot be cancelled")
		}
		for id := range int64(8) {
			_, acknowledged := table.acknowledge(id)
			if acknowledged || table.changed(id) || table.cancelled(id) {
				t.Errorf("a notice that names %d was taken", id)
			}
		}
		subscribed(table, 9, "")
		table.selectEra(domain.EraUnknown)
		if table.changed(0) || table.changed(9) {
			t.Error("a notice was taken before the era was known")
		}
		if len(got.data()) != 0 || len(table.waiting) != 5 {
			t.Errorf("reported %+v, %d wait", got.data(), len(table.waiting))
		}
		table.fail(domain.CodeTransportLost)
	})
}

func TestAStormOfNoticesIsFoldedIntoOneReportASecond(t *testing.T) {
	for _, era := range []domain.Era{domain.EraModern, domain.EraLegacy} {
		synctest.Test(t, func(t *testing.T) {
			table, got := testTable()
			table.selectEra(era)
			id, context := int64(1), "c"
			subscribed(table, 1, context)
			table.acknowledge(1)
			if era == domain.EraLegacy {
				id, context = 0, ""
			}
			times := func(n int) {
				for range n {
					if !table.changed(1) {
						t.Fatal("a notice was not taken")
					}
				}
			}
			want := []domain.Data{changedOn(id, context, 1)}
			expect := func(when string) {
				t.Helper()
				synctest.Wait()
				if !reflect.DeepEqual(got.data(), want) {
					t.Fatalf("%s era, %s: reported %+v", era, when, got.data())
				}
			}
			times(1)
			expect("at once")
			pass(400 * time.Millisecond)
			times(100)
			pass(599 * time.Millisecond)
			times(50)
			expect("before the second is over")
			pass(time.Millisecond)
			want = append(want, changedOn(id, context, 150))
			expect("when it is over")
			times(7)
			pass(999 * time.Millisecond)
			expect("before the next is over")
			pass(time.Millisecond)
			want = append(want, changedOn(id, context, 7))
			expect("when it is over, too")
			pass(time.Second)
			times(1)
			want = append(want, changedOn(id, context, 1))
			expect("at once after a quiet second")
			table.flush()
			pass(time.Hour)
			expect("with nothing left")
			table.fail(domain.CodeTransportLost)
		})
	}
}

// Each of these is reported after the notices that were written before it.
func TestNoticesAreReportedBeforeWhatWasWrittenAfterThem(t *testing.T) {
	tests := map[string]struct {
		act  func(*table)
		then []domain.Data
		kept bool // the subscription goes on
	}{
		"an acknowledgement":           {func(t *table) { t.acknowledge(1) }, nil, true},
		"the answer to a list request": {func(t *table) { t.take(2) }, nil, true},
		"a list that is too long": {func(t *table) { t.oversized(2) },
			[]domain.Data{domain.ExchangeFailed{At: at1, RequestID: 2, Written: writtenNo, Code: domain.CodeFrameTooLarge}}, true},
		"a flush":                 {func(t *table) { t.flush() }, nil, true},
		"the end by an answer":    {func(t *table) { t.take(1) }, nil, false},
		"the end by the peer":     {func(t *table) { t.cancelled(1) }, []domain.Data{endedAs(1, "c", domain.EndedCancelled)}, false},
		"an end that is too long": {func(t *table) { t.oversized(1) }, []domain.Data{lostListen(1, writtenMaybe, domain.CodeFrameTooLarge)}, false},
		"a withdrawal":            {func(t *table) { t.withdraw(1) }, nil, false},
		"a deadline":              {func(t *table) { pass(500 * time.Millisecond) }, []domain.Data{domain.DeadlinePassed{At: at1, RequestID: 1, Silent: true}}, false},
		"the answer to a call":    {func(t *table) { t.take(3); pass(time.Second) }, nil, false},
		"the loss of the transport": {func(t *table) { t.fail(domain.CodeTransportLost) },
			[]domain.Data{lostListen(1, writtenMaybe, domain.CodeTransportLost), lostListen(2, writtenNo, domain.CodeTransportLost),
				lostListen(3, writtenNo, domain.CodeTransportLost)}, false},
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			table, got := modernTable()
			deadline := int64(20_000)
			if name == "a deadline" || name == "the answer to a call" {
				deadline = 500
			}
			table.begin(table.add(listenFor(1, "c", deadline), nil))
			if name == "the answer to a call" {
				table.acknowledge(1)
				test.kept = true
			}
			table.add(domain.Send{At: at1, RequestID: 2, Method: domain.MethodList, Deadline: 20_000}, nil)
			table.add(domain.Send{At: at1, RequestID: 3, Method: domain.MethodCall, Deadline: 20_000}, nil)
			for range 4 {
				table.changed(1)
			}
			test.act(table)
			synctest.Wait()
			want := append([]domain.Data{changedOn(1, "c", 1), changedOn(1, "c", 3)}, test.then...)
			if !reflect.DeepEqual(got.data(), want) {
				t.Errorf("%s: reported %+v", name, got.data())
			}
			if kept, whole := foldOf(table, 1); kept != test.kept || !whole {
				t.Errorf("%s: kept: %v, with nothing left: %v", name, kept, whole)
			}
			pass(time.Minute)
			if table.fail(domain.CodeTransportLost); table.changed(1) {
				t.Errorf("%s: a notice was taken after the end", name)
			}
		})
	}
}

// foldOf reports whether the notices of a subscription are still folded, and whether nothing of them waits.
func foldOf(t *table, id int64) (kept, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.changes[id]
	return f != nil, f == nil || f.count == 0 && f.timer == nil
}

// Whatever comes when, no notice is lost, none is counted twice, and none is under another subscription.
func TestNoNoticeIsLost(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 6))
			table, got := modernTable()
			wrote, ends := map[int64]int64{}, map[int64]bool{}
			next := int64(1)
			var open []int64
			for range 400 {
				switch p := rng.IntN(100); {
				case p < 4 || len(open) == 0:
					subscribed(table, next, fmt.Sprint("context ", next))
					open = append(open, next)
					next++
				case p < 70:
					id := open[rng.IntN(len(open))]
					wrote[id]++
					table.changed(id)
				case p < 90:
					pass(time.Duration(rng.IntN(700)) * time.Millisecond)
				case p < 94:
					table.acknowledge(open[rng.IntN(len(open))])
				case p < 96:
					table.flush()
				default:
					i := rng.IntN(len(open))
					id := open[i]
					open = append(open[:i], open[i+1:]...)
					[]func(){func() { table.take(id) }, func() { table.cancelled(id) }, func() { table.withdraw(id) }, func() { table.oversized(id) }}[rng.IntN(4)]()
					ends[id] = table.changed(id)
				}
				open = stillWaiting(table, open)
			}
			table.fail(domain.CodeTransportLost)
			read := map[int64]int64{}
			for _, c := range of[domain.ListChanged](got) {
				read[c.Subscription] += c.Count
				if c.Context != fmt.Sprint("context ", c.Subscription) || c.Count < 1 {
					t.Errorf("seed %d: %+v", seed, c)
				}
			}
			if !reflect.DeepEqual(read, wrote) {
				t.Errorf("seed %d: reported %v, the peer wrote %v", seed, read, wrote)
			}
			for id, taken := range ends {
				if taken {
					t.Errorf("seed %d: a notice was taken after the end of %d", seed, id)
				}
			}
		})
	}
}

func stillWaiting(t *table, ids []int64) []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var left []int64
	for _, id := range ids {
		if t.waiting[id] != nil {
			left = append(left, id)
		}
	}
	return left
}
