package domain

import (
	"math/rand"
	"slices"
	"testing"
)

// TestRandomWalks drives the small world by long runs of observations, drawn so
// that most of them get somewhere, with the referee looking on. The fuzzer of
// the same world finds the odd turns; these go far.
func TestRandomWalks(t *testing.T) {
	seen := map[string]int{}
	inits, modern := 0, 0
	for seed := range int64(150000) {
		d := drive(t, walk(rand.New(rand.NewSource(seed))))
		for _, k := range kinds(d.w.log) {
			seen[k]++
		}
		inits += d.w.count(MethodInitialize)
		for _, x := range all[EraRefused](d.w.log) {
			if x.Code == CodeModernEvidence {
				modern++
			}
		}
	}
	for _, k := range []string{"legacy.excluded", "era.determined", "era.refused", "name.moved", "collision.decided", "config.rejected",
		"call.abandoned", "answer.dropped", "tool.rejected", "catalog.refused", "peer.refused"} {
		if seen[k] < 20 {
			t.Errorf("%s came %d times: the walks do not go where they should", k, seen[k])
		}
	}
	t.Logf("%d initialize, %d closings on modern evidence, %d calls routed", inits, modern, seen["call.routed"])
	if inits < 100 || modern < 100 || seen["call.routed"] < 1000 {
		t.Errorf("the walks do not go where they should")
	}
}

// walk draws 40 to 160 observations.
func walk(r *rand.Rand) []byte {
	often := slices.Concat(slices.Repeat([]byte{opSpawned}, 6), slices.Repeat([]byte{opProbed}, 8), slices.Repeat([]byte{opListed}, 8),
		slices.Repeat([]byte{opCall}, 5), slices.Repeat([]byte{opAnswered}, 4), slices.Repeat([]byte{opDeadline}, 2),
		[]byte{opStray, opStray, opExited, opExited, opFailed, opClock, opSpawnFailed})
	out := []byte{opStart, byte(r.Intn(256))}
	if r.Intn(2) == 0 {
		out[1] &= 0x0f
	}
	for range 40 + r.Intn(120) {
		op := often[r.Intn(len(often))]
		if r.Intn(25) == 0 {
			op = []byte{opStart, opStart, opStop, opLoad}[r.Intn(4)]
		}
		arg := byte(r.Intn(256))
		if op == opProbed && r.Intn(3) > 0 { // an answer that decides the era
			arg = byte(r.Intn(3)) + 3*[]byte{0, 1, 20, 10}[r.Intn(4)]
		}
		if (op == opDeadline || op == opAnswered) && r.Intn(2) == 0 {
			arg |= 0xfc
		}
		out = append(out, op, arg)
	}
	return out
}
