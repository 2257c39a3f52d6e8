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
	inits, modern, guarded := 0, 0, 0
	grounds, statuses := map[string]int{}, map[Status]int{}
	refused := map[Code]int{}
	for seed := range walks(int64(1500)) {
		run := walk(rand.New(rand.NewSource(seed)))
		d := drive(t, run)
		if seed%25 == 0 {
			sameTwice(t, run)
		}
		for _, k := range kinds(d.w.log) {
			seen[k]++
		}
		for _, x := range all[CallResent](d.w.log) {
			grounds[x.Rule]++
		}
		for _, x := range all[CallSettled](d.w.log) {
			statuses[x.Status]++
		}
		for _, x := range all[CallRefused](d.w.log) {
			refused[x.Code]++
		}
		guarded += recovered(d.w.log)
		inits += d.w.count(MethodInitialize)
		for _, x := range all[EraRefused](d.w.log) {
			if x.Code == CodeModernEvidence {
				modern++
			}
		}
	}
	for _, k := range []string{"legacy.excluded", "era.determined", "era.refused", "name.moved", "collision.decided", "config.rejected",
		"call.abandoned", "answer.dropped", "tool.rejected", "catalog.refused", "peer.refused", "peer.restarted", "peer.quarantined",
		"peer.abandoned", "health.requested", "call.held", "call.resent", "call.cancelled", "command.refused", "call.joined"} {
		if seen[k] < walks(20) {
			t.Errorf("%s came %d times: the walks do not go where they should", k, seen[k])
		}
	}
	for _, rule := range []string{RuleNeverWritten, RuleHeader, RuleVersion, RuleRepeatable, RuleKey, RuleHints, RuleContinue, RuleInput, RuleOperator} {
		if grounds[rule] < walks(10) {
			t.Errorf("%d calls were sent again by the rule %s: the walks do not go where they should", grounds[rule], rule)
		}
	}
	for _, code := range []Code{CodeIdempotencyConflict, CodeOutcomeExpired} {
		if refused[code] < walks(20) {
			t.Errorf("%d calls were refused with %s: the walks do not go where they should", refused[code], code)
		}
	}
	t.Logf("sent again: %v; ends: %v; refused: %v", grounds, statuses, refused)
	t.Logf("%d initialize, %d closings on modern evidence, %d calls routed", inits, modern, seen["call.routed"])
	t.Logf("%d starts after the loss of a watchdog", guarded)
	if inits < walks(100) || modern < walks(100) || guarded < walks(100) || seen["call.routed"] < walks(1000) {
		t.Errorf("the walks do not go where they should")
	}
}

// recovered counts the starts that followed the loss of a watchdog.
func recovered(log []Event) int {
	n := 0
	lost := map[int64]bool{}
	for _, e := range log {
		switch d := e.Data.(type) {
		case PeerExited:
			lost[e.Seq] = d.Cause == causeWatchdogLost
		case PeerRestarted:
			if lost[e.Cause] {
				n++
			}
		}
	}
	return n
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
		for range r.Intn(70) {
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

// backUp brings a peer up as modern, with the tools x and y.
func backUp(peer byte) []byte {
	return []byte{opSpawned, peer, opProbed, peer, opListed, peer}
}

// lively gives operations arguments that mostly get somewhere.
func lively(r *rand.Rand, ops ...byte) []byte {
	var out []byte
	for _, op := range ops {
		arg := byte(r.Intn(8))
		switch op {
		case opCall:
			arg |= byte(r.Intn(3)*8) | byte(r.Intn(4))<<6
		case opAnswered:
			arg = byte(r.Intn(256))
		}
		out = append(out, op, arg)
	}
	return out
}

// happen draws one observation.
func happen(r *rand.Rand) []byte {
	switch peer := byte(r.Intn(3)); r.Intn(16) {
	case 0: // what is down comes back
		return comeUp(r, peer)
	case 1, 2: // under calls
		return slices.Concat(lively(r, opCall, opCall), []byte{opCrash, peer}, lively(r, opCall), backUp(peer))
	case 3: // questions and answers
		return lively(r, opCall, opAnswered, opContinue, opAnswered, opContinue, opAnswered)
	}
	op := []byte{opSpawned, opProbed, opProbed, opStray, opListed, opCall, opCall, opCall, opCall, opCall, opAnswered, opAnswered, opAnswered,
		opDeadline, opDeadline, opFailed, opExited, opClock, opSpawnFailed, opCancelled, opContinue, opContinue, opWaited, opHealthDue,
		opHealthAnswered, opCommand, opCommand, opCrash, opCrash, opTick, opTick}[r.Intn(31)]
	if r.Intn(60) == 0 {
		op = []byte{opStop, opLoad}[r.Intn(2)]
	}
	arg := byte(r.Intn(256))
	switch op {
	case opCall:
		arg &= 0x3f
		if r.Intn(2) == 0 {
			arg &= 0x07 // a tool that is there
		}
		if r.Intn(3) == 0 {
			arg |= byte(1+r.Intn(3)) << 6
		}
	case opClock:
		arg &= 0x0f
	case opContinue, opCommand:
		arg &= []byte{0x07, 0xff}[r.Intn(2)]
	case opAnswered, opDeadline, opFailed:
		arg |= []byte{0xf0, 0xfc}[r.Intn(2)]
	}
	return []byte{op, arg}
}
