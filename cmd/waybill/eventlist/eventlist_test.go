package eventlist_test

import (
	"testing"
	"time"

	"waybill/cmd/waybill/eventlist"
)

func TestWhenIsSince(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	if at, err := eventlist.When("90m", now); err != nil || at != now.Add(-90*time.Minute).UnixNano() {
		t.Errorf("%d, %v", at, err)
	}
}
