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
	for seed := range int64(2000) {
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

// walk draws one to four lives of the service: a start, peers that mostly come
// up, and then whatever may happen.
func walk(r *rand.Rand) []byte {
	var out []byte
	for range 1 + r.Intn(4) {
		arg := byte(r.Intn(256))
		if r.Intn(3) > 0 {
			arg &= 0x0f
		}
		out = append(out, opStart, arg)
		for _, peer := range r.Perm(3) {
			out = append(out, comeUp(r, byte(peer))...)
		}
		for range r.Intn(40) {
			out = append(out, happen(r)...)
		}
	}
	return out
}

// comeUp brings a peer up as modern or, after an ambiguous signal, as legacy.
func comeUp(r *rand.Rand, peer byte) []byte {
	answer := func(i byte) []byte { return []byte{opProbed, peer + 3*i} }
	list := []byte{opListed, peer + 3*byte(r.Intn(6)) + 18*[]byte{0, 0, 0, 2, 1, 5}[r.Intn(6)]}
	up := []byte{opSpawned, peer}
	switch r.Intn(8) {
	case 0:
		return slices.Concat(up, []byte{opExited, peer}, up, answer(20), list)
	case 1, 2:
		return slices.Concat(up, answer(1), answer(20), list)
	case 3:
		return slices.Concat(up, happen(r), happen(r))
	}
	return slices.Concat(up, answer(0), list)
}

// happen draws one observation.
func happen(r *rand.Rand) []byte {
	op := []byte{opSpawned, opProbed, opProbed, opStray, opListed, opCall, opCall, opCall, opCall, opAnswered, opAnswered, opDeadline,
		opDeadline, opFailed, opExited, opClock, opSpawnFailed}[r.Intn(17)]
	if r.Intn(60) == 0 {
		op = []byte{opStop, opLoad}[r.Intn(2)]
	}
	arg := byte(r.Intn(256))
	switch op {
	case opCall:
		arg &= 0x3f
		if r.Intn(4) == 0 {
			arg |= byte(1+r.Intn(3)) << 6
		}
	case opAnswered, opDeadline, opFailed:
		arg |= []byte{0xf0, 0xfc}[r.Intn(2)]
	}
	return []byte{op, arg}
}
