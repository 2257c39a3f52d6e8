package harness

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

// A shut gate turns calls away at once: nothing of them is recorded but their
// number, they cost the host nothing, and calls under way end as ever.
func TestAShutGateRefusesCallsBeforeTheyAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shut atomic.Bool
		log := newMemLog(t)
		r := newRig(t, log, func(c *Config) { c.HostInflight = 2 })
		r.loop.SetGate(func() (domain.Code, string) {
			if shut.Load() {
				return domain.CodeAuditLag, "too far behind"
			}
			return "", ""
		})
		r.start("notes")
		log.hold()
		under := r.submit("local", `{"tool":"notes","call_id":"under-way"}`)
		synctest.Wait()
		shut.Store(true)
		for range 5 {
			got := r.submit("local", `{"tool":"notes","call_id":"late"}`)
			if len(got) != 1 {
				t.Fatal("a call was not answered at once")
			}
			if reply := r.wantReply(got, domain.StatusRefused, domain.CodeAuditLag, domain.RanNo); reply.Reason != "too far behind" || reply.CallID != "late" || len(reply.Seqs) != 0 {
				t.Errorf("%+v", reply)
			}
		}
		log.pass()
		r.wantReply(under, domain.StatusComplete, "", domain.RanYes)
		<-time.After(1500 * time.Millisecond)
		shut.Store(false)
		r.wantReply(r.submit("local", `{"tool":"notes","call_id":"late"}`), domain.StatusComplete, "", domain.RanYes)
		r.stop()
		all := readAll(t, log, 0)
		if got := find[domain.IntakeShed](all); !slices.Equal(got, []domain.IntakeShed{{Count: 5, Code: domain.CodeAuditLag}}) {
			t.Errorf("shed: %+v", got)
		}
		if got := find[domain.CallReceived](all); len(got) != 2 {
			t.Errorf("%d calls are recorded", len(got))
		}
	})
}
