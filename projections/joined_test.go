package projections_test

import (
	"fmt"
	"slices"
	"testing"

	"waybill/domain"
)

// TestASubmissionThatJoinedNamesItsCall, an id that is used again does not, and where a
// call may have run that is what the row says.
func TestASubmissionThatJoinedNamesItsCall(t *testing.T) {
	h := &history{t: t, state: domain.NewState(), now: 1_700_000_000_000_000_000, tools: map[string][]string{"alpha": {"search"}}}
	keyed := func(id string) {
		h.tell(domain.CallReceived{CallID: domain.CallID{Host: "local", ID: id}, Tool: "search", Key: "k", Same: "s",
			Arguments: domain.Payload{Size: 2, HMAC: "00"}}, nil)
	}
	h.start(domain.PrefixOnCollision, "alpha")
	keyed("a")
	keyed("b")
	keyed("c")
	h.call("local", "c", "none", "")
	h.answer(domain.Facts{Kind: domain.FactResult, ResultType: "complete"})
	h.now += domain.IdempotencyWindow
	keyed("d")
	v := open(t, viewsFile(t), len(h.list))
	defer v.Close()
	feed(t, v, h.list, someAtOnce)
	calls, err := v.Calls(t.Context(), 100)
	noErr(t, err)
	var got []string
	for _, c := range calls {
		got = append(got, fmt.Sprintf("%s: %s %s %s, %s", c.Call, c.Status, c.Code, c.Ran, c.Joined))
	}
	want := []string{"local/d: refused outcome_expired maybe, ", "local/c: refused unknown_tool no, ", "local/b: joined  , local/a", "local/a: complete  yes, "}
	if !slices.Equal(got, want) {
		t.Errorf("calls are %q, want %q", got, want)
	}
}
