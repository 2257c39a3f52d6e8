package harness

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/store"
)

// What a service decided before is decided again when it starts; a decision that does
// not follow is named, and the log is folded all the same.
func TestTheTailOfTheLogIsDecidedAgainAtTheStart(t *testing.T) {
	log := newMemLog(t)
	r := newRig(t, log).start("notes")
	for i := range 3 {
		r.reply(r.submit("local", fmt.Sprintf(`{"tool":"notes","call_id":"c%d"}`, i)))
	}
	r.stop()
	head := int64(len(log.records))
	whole := domain.NewState()
	found, err := FoldChecked(within(t), log, testLog, whole, head)
	if noErr(t, err); found != nil {
		t.Fatalf("%v", found)
	}
	forged := 0
	for i, rec := range log.records {
		b := bytes.Replace(rec.Bytes, []byte(`"ran":"yes"`), []byte(`"ran":"no"`), 1)
		if bytes.Equal(b, rec.Bytes) || rec.Type != "call.settled" {
			continue
		}
		forged++
		harmed := newMemLog(t)
		harmed.records, harmed.evidence = slices.Clone(log.records), log.evidence
		harmed.records[i].Bytes = b
		s := domain.NewState()
		found, err := FoldChecked(within(t), harmed, testLog, s, head)
		if noErr(t, err); found == nil || found.Seq != rec.Seq || found.Recorded != "call.settled" || found.Due != "call.settled" || s.Head != head {
			t.Errorf("event %d: %+v, folded to %d of %d", rec.Seq, found, s.Head, head)
		}
		if found != nil && !strings.Contains(found.Error(), "waybill-audit replay") {
			t.Errorf("%v", found)
		}
	}
	if forged != 3 {
		t.Errorf("%d decisions were forged", forged)
	}
}

// What lies before the tail is folded and not decided again.
func TestOnlyTheTailIsDecidedAgain(t *testing.T) {
	log := newMemLog(t)
	r := newRig(t, log).start("notes")
	r.reply(r.submit("local", `{"tool":"notes","call_id":"c"}`))
	r.stop()
	i := slices.IndexFunc(log.records, func(x store.Record) bool { return x.Type == "call.settled" })
	log.records[i].Bytes = bytes.Replace(log.records[i].Bytes, []byte(`"ran":"yes"`), []byte(`"ran":"no"`), 1)
	found, err := FoldChecked(within(t), log, testLog, domain.NewState(), log.records[i].Seq+checkedTail+1)
	if noErr(t, err); found != nil {
		t.Errorf("%v", found)
	}
}
