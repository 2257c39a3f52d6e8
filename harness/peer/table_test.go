package peer

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

func testTable() (*table, *ledger) {
	l := newLedger()
	return newTable(at1, func(d domain.Data) { l.report(d, nil, nil) }), l
}

func send(id int64, method string, deadline int64) domain.Send {
	return domain.Send{At: at1, RequestID: id, Method: method, Era: domain.EraUnknown, Deadline: deadline}
}

func TestADeadlineIsReportedOnceAndOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, got := testTable()
		r := table.add(send(1, domain.MethodCall, 1000), &domain.Body{Arguments: []byte("{}")})
		pass(999 * time.Millisecond)
		synctest.Wait()
		if len(got.data()) != 0 {
			t.Fatalf("reported early: %v", got.data())
		}
		pass(time.Millisecond)
		synctest.Wait()
		if want := []domain.Data{domain.DeadlinePassed{At: at1, RequestID: 1, Written: writtenNo}}; !reflect.DeepEqual(got.data(), want) {
			t.Errorf("reported %v", got.data())
		}
		if table.begin(r) {
			t.Error("a request whose deadline has passed is still to be written")
		}
		if table.take(1) != nil || table.stranger(1) != noiseLate {
			t.Error("an answer after the deadline is not late")
		}
		table.fail(domain.CodeTransportLost)
		if len(got.data()) != 1 {
			t.Errorf("reported again: %v", got.data())
		}
	})
}

func TestAnAnswerTakesTheDeadlineAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, got := testTable()
		table.add(send(1, domain.MethodCall, 1000), nil)
		if table.take(1) == nil || table.take(1) != nil {
			t.Error("an answer is not taken exactly once")
		}
		if what := table.stranger(1); what != noiseDuplicate {
			t.Errorf("a second answer is %s", what)
		}
		pass(time.Hour)
		synctest.Wait()
		if len(got.data()) != 0 {
			t.Errorf("reported %v", got.data())
		}
	})
}

func TestAnAnswerToTheProbeCountsAfterItsDeadlineUntilTheEraIsSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, _ := testTable()
		for id, method := range []string{"", domain.MethodDiscover, domain.MethodDiscover, domain.MethodInitialize, domain.MethodList} {
			if id > 0 {
				table.add(send(int64(id), method, 10), nil)
			}
		}
		pass(time.Second)
		synctest.Wait()
		if r := table.take(1); r == nil || r.send.RequestID != 1 {
			t.Error("a late answer to server/discover was not taken")
		}
		if table.take(1) != nil || table.stranger(1) != noiseDuplicate {
			t.Error("a late answer to server/discover was taken twice")
		}
		if table.take(3) != nil || table.take(4) != nil {
			t.Error("a late answer to another method was taken")
		}
		health := table.add(domain.Send{At: at1, RequestID: 5, Method: domain.MethodDiscover, Era: domain.EraModern}, nil)
		table.expire(health)
		if table.take(5) != nil {
			t.Error("a late sign of life was taken for an answer to the probe")
		}
		table.selectEra(domain.EraLegacy)
		if table.take(2) != nil || table.stranger(2) != noiseLate {
			t.Error("a late answer to server/discover was taken though the era is known")
		}
	})
}

func TestALostTransportFailsWhatWaitsInOrderOfIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, got := testTable()
		requests := map[int64]*request{}
		for _, id := range []int64{30, 4, 7, 11, 5} {
			requests[id] = table.add(send(id, domain.MethodCall, 10_000), nil)
		}
		table.begin(requests[7])
		table.begin(requests[30])
		table.unwritten(requests[30])
		table.begin(requests[11])
		table.take(11)
		table.refuse(requests[5], domain.CodeRequestTooLarge)
		table.fail(domain.CodeTransportLost)
		lost := func(id int64, written string, code domain.Code) domain.Data {
			return domain.ExchangeFailed{At: at1, RequestID: id, Written: written, Code: code}
		}
		want := []domain.Data{lost(5, "no", domain.CodeRequestTooLarge), lost(4, "no", domain.CodeTransportLost),
			lost(7, "maybe", domain.CodeTransportLost), lost(30, "no", domain.CodeTransportLost)}
		if !reflect.DeepEqual(got.data(), want) {
			t.Errorf("reported %v", got.data())
		}
		if table.add(send(40, domain.MethodCall, 10), nil) != nil {
			t.Error("a request was taken after the loss")
		}
		pass(time.Hour)
		synctest.Wait()
		if len(got.data()) != len(want) {
			t.Errorf("reported after the loss: %v", got.data()[len(want):])
		}
	})
}

func TestAWithdrawnRequestHasNoOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, got := testTable()
		r := table.add(send(1, domain.MethodCall, 10), nil)
		table.begin(r)
		if table.withdraw(1) != r || !table.cancellable(r) {
			t.Error("a call that was written cannot be cancelled")
		}
		unwritten := table.add(send(2, domain.MethodCall, 10), nil)
		probe := table.add(send(3, domain.MethodInitialize, 10), nil)
		table.begin(probe)
		answered := table.add(send(4, domain.MethodCall, 10), nil)
		table.begin(answered)
		table.take(4)
		for _, r := range []*request{unwritten, probe, answered} {
			table.withdraw(r.send.RequestID)
			if table.cancellable(r) {
				t.Errorf("request %d is to be cancelled", r.send.RequestID)
			}
		}
		pass(time.Second)
		synctest.Wait()
		if len(got.data()) != 0 {
			t.Errorf("reported %v", got.data())
		}
		if table.withdraw(9) != nil {
			t.Error("an unknown request was withdrawn")
		}
	})
}

func TestSettledRequestsAreForgottenInTime(t *testing.T) {
	table, _ := testTable()
	for id := int64(1); id <= 3*pastKept; id++ {
		r := table.add(send(id, domain.MethodCall, 60_000), &domain.Body{Arguments: make([]byte, 100)})
		if table.take(id) == nil || r.body != nil {
			t.Fatal("a settled request keeps its arguments")
		}
	}
	if len(table.past) != pastKept || len(table.order) != pastKept || len(table.waiting) != 0 {
		t.Errorf("%d, %d and %d are kept", len(table.past), len(table.order), len(table.waiting))
	}
	if table.stranger(1) != "" || table.stranger(3*pastKept) != noiseDuplicate {
		t.Error("the newest are not those that are kept")
	}
}

func TestNoiseIsFoldedIntoOneReportInFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := newLedger()
		n := newNoise(at1, func(d domain.Data) { got.report(d, nil, nil) })
		for range 1000 {
			n.count(noiseNotJSON, 10)
			n.count(noiseBlank, 0)
			pass(time.Millisecond)
		}
		pass(3999 * time.Millisecond)
		synctest.Wait()
		if len(got.data()) != 0 {
			t.Fatalf("reported after less than five seconds: %v", got.data())
		}
		pass(time.Millisecond)
		synctest.Wait()
		n.count(noiseBatch, 7)
		n.close()
		n.count(noiseBatch, 7)
		n.close()
		pass(time.Hour)
		synctest.Wait()
		want := []domain.Data{
			domain.NoiseCounted{At: at1, Kinds: []domain.NoiseCount{{What: noiseBlank, Count: 1000}, {What: noiseNotJSON, Count: 1000, Bytes: 10_000}}},
			domain.NoiseCounted{At: at1, Kinds: []domain.NoiseCount{{What: noiseBatch, Count: 1, Bytes: 7}}},
		}
		if !reflect.DeepEqual(got.data(), want) {
			t.Errorf("reported %v", got.data())
		}
	})
}

func TestQuietIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoise(at1, func(d domain.Data) { t.Errorf("reported %v", d) })
		pass(time.Hour)
		n.close()
	})
}

func TestTheTailOfStandardErrorIsBounded(t *testing.T) {
	var all []byte
	var kept tail
	for i, size := range []int{1, 5, tailKept - 3, 0, 100_000, 7, tailSize} {
		chunk := make([]byte, size)
		for j := range chunk {
			chunk[j] = byte(i + j)
		}
		all = append(all, chunk...)
		if n, err := kept.Write(chunk); n != size || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
		if got := kept.read(); !slices.Equal(got, all[max(0, len(all)-tailKept):]) {
			t.Errorf("after %d bytes the tail is wrong (%d bytes)", len(all), len(got))
		}
	}
	if kept.total() != int64(len(all)) || cap(kept.kept) > 4*tailKept {
		t.Errorf("counted %d, holds %d", kept.total(), cap(kept.kept))
	}
}

// pass lets time go by, inside a bubble whose clock is not the world's.
func pass(d time.Duration) { <-time.After(d) }
