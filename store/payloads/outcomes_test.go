package payloads

import (
	"bytes"
	"path/filepath"
	"testing"
)

// TestOutcomesAndTheRestHaveTimesOfTheirOwn: what a key has kept is counted and erased
// apart from what the policy does, and an operator's age means both.
func TestOutcomesAndTheRestHaveTimesOfTheirOwn(t *testing.T) {
	path := newFile(t)
	p := openFile(t, path)
	fill := func(first int64) {
		for i := range int64(40) { // more than are erased at once
			whole, outcome := call(first+4*i, "ann", "w", `{"of":"the whole"}`), call(first+4*i+2, "ann", "o", `{}`)
			outcome.Stories[0].Outcome, outcome.Payloads = true, nil
			save(t, p, whole, outcome, answer(first+4*i+3, first+4*i+2, Result, `{"n":1}`))
		}
	}
	count := func(s Selection, want int64) {
		t.Helper()
		if n, err := p.Count(ctx, s); n != want || err != nil {
			t.Errorf("%+v: %d, %v; want %d", s, n, err, want)
		}
	}
	if ever, err := p.Ever(ctx); ever || err != nil {
		t.Errorf("something was kept: %v", err)
	}
	fill(1)
	count(Selection{Before: 1_000, Only: Whole}, 40)
	count(Selection{Before: 1_000, Only: Outcomes}, 40)
	count(Selection{Before: 1_000}, 80)
	count(Selection{Before: 2, Only: Outcomes}, 0) // the first was received at 3
	noErr(t, p.Erase(ctx, Selection{Seq: 500, Before: 1_000, Only: Outcomes}))
	wantKept(t, p, 1, Arguments, `{"of":"the whole"}`)
	wantGone(t, p, 3, 500)
	if key := keyOf(3); bytes.Contains(content(t, filepath.Dir(path)), key[:]) {
		t.Error("the key of an outcome is there")
	}
	count(Selection{Before: 1_000, Only: Outcomes}, 0)
	count(Selection{Before: 1_000, Only: Whole}, 40)
	noErr(t, p.Erase(ctx, Selection{Seq: 501, Before: 1_000, Only: Whole}))
	wantGone(t, p, 1, 501)
	fill(601)
	noErr(t, p.Erase(ctx, Selection{Seq: 900, Before: 1_000}))
	wantGone(t, p, 601, 900)
	wantGone(t, p, 603, 900)
	count(Selection{Host: "ann"}, 0)
	if ever, err := p.Ever(ctx); !ever || err != nil {
		t.Errorf("nothing was ever kept: %v", err)
	}
}
