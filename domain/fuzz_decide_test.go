package domain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// FuzzDecide drives a small world by a string of bytes: two bytes are one
// observation. Whatever the order, what is decided keeps to the rules in
// referee, follows from the input alone, and Decide changes nothing.
func FuzzDecide(f *testing.F) {
	for _, s := range decideSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return
		}
		sameTwice(t, data)
	})
}

// sameTwice: a run gives the same events each time, byte for byte, and the state
// folded from them alone is the one that decided.
func sameTwice(t *testing.T, data []byte) {
	t.Helper()
	first, second := drive(t, data), drive(t, data)
	if len(first.w.log) != len(second.w.log) {
		t.Fatalf("%d events, then %d", len(first.w.log), len(second.w.log))
	}
	folded := NewState()
	for i, e := range first.w.log {
		other := second.w.log[i]
		if facts(t, e.Data) != facts(t, other.Data) || e.Seq != other.Seq || e.Cause != other.Cause || !bytes.Equal(e.Evidence, other.Evidence) {
			t.Fatalf("event %d is %s, then %s", e.Seq, facts(t, e.Data), facts(t, other.Data))
		}
		folded.Apply(e)
	}
	if !sameState(folded, first.w.s) {
		t.Fatalf("the state folded from the events is another one: %+v, %+v", folded, first.w.s)
	}
}

// decideSeeds are runs that get somewhere: each pair is an operation of drive
// and its argument.
func decideSeeds() [][]byte {
	up := func(peer byte) []byte { return []byte{opSpawned, peer, opProbed, peer, opListed, peer} }
	return [][]byte{
		append(append(append([]byte{opStart, 0}, up(0)...), up(1)...), up(2)...),
		append(append(append(append([]byte{opStart, 0}, up(0)...), up(1)...), up(2)...), opCall, 0, opAnswered, 0, opCall, 5, opDeadline, 9, opCall, 1, opStart, 0),
		{opStart, 1, opSpawned, 1, opExited, 1, opSpawned, 1, opProbed, 1 + 3*20, opListed, 1},
		{opStart, 0, opSpawned, 1, opProbed, 1 + 3*4, opDeadline, 255, opExited, 1, opSpawned, 1},
		{opStart, 2, opSpawned, 2, opDeadline, 255, opProbed, 2 + 3*20, opListed, 2, opCall, 3},
		{opStart, 0, opSpawned, 1, opExited, 1, opStray, 1 + 3*8, opSpawned, 1, opProbed, 1},
		{opStart, 0, opSpawnFailed, 0, opSpawned, 0, opLoad, 1, opStop, 0, opSpawned, 1, opProbed, 1, opStart, 3},
		slices.Concat([]byte{opStart, 8}, up(0), up(1), up(2), []byte{opCall, 0x80, opCrash, 0}, up(0), []byte{opCall, 0x81, opHealthDue, 0, opTick, 255,
			opDeadline, 254, opDeadline, 255, opCrash, 0, opCall, 0x82, opWaited, 0, opCommand, 0}, up(0), []byte{opCommand, 5, opContinue, 0, opCancelled, 0}),
	}
}

// The operations of drive.
const (
	opStart byte = iota
	opStop
	opLoad
	opSpawned
	opSpawnFailed
	opExited
	opProbed
	opStray
	opListed
	opCall
	opAnswered
	opFailed
	opDeadline
	opClock
	opCancelled
	opContinue
	opWaited
	opHealthDue
	opHealthAnswered
	opCommand
	opCrash
	opTick
	opCount
)

var drivePeers = []string{"a", "b", "c"}

// driveConfig varies what the peers may do, and the policy.
func driveConfig(arg byte) Config {
	c := testConfig(policies[int(arg)%3], drivePeers...)
	c.Separator = []string{"/", "__"}[int(arg/3)%2]
	c.Inflight = 3
	c.Peers[1].AllowLegacy = true
	c.Peers[2].AllowLegacy = arg&0x40 == 0
	if arg&0x04 != 0 {
		c.Idempotency = 60_000
	}
	c.Peers[2].Capabilities = []byte(`{"sampling":{}}`)
	if arg&0x08 != 0 {
		for i := range c.Peers {
			underFire(&c.Peers[i])
		}
	}
	if arg&0x20 != 0 {
		c.Peers[0].Refusal, c.Peers[0].RefusalReason = CodeNotPinned, "no pin"
	}
	if arg&0x10 != 0 {
		c.Peers[1].LegacyRevisions = nil
	}
	if arg&0x80 != 0 {
		c.Peers = c.Peers[1:]
	}
	return c
}

// underFire configures every rule about exchanges, each ground to send again by
// itself at another peer.
func underFire(p *PeerConfig) {
	p.Capabilities = []byte(`{"elicitation":{}}`)
	p.CallLimit, p.IdleTimeout, p.Inflight, p.Resends = 120_000, 20_000, 2, 2
	p.InputRounds, p.InputWindow, p.RefuseOutput = 2, 600_000, true
	p.HungAfter, p.HealthEvery, p.HealthWithin, p.Attempts, p.Quarantine = 2, 30_000, 5_000, 2, 120_000
	switch p.Name {
	case "a":
		p.Repeatable = []string{"x"}
	case "b":
		p.Idempotency = map[string]string{"x": "key", "y": "key"}
	case "c":
		p.TrustHints = true
	}
}

// A driver feeds the world and has every event looked at.
type driver struct {
	w   *world
	ref *referee
	t   testing.TB
}

func drive(t testing.TB, data []byte) *driver {
	d := &driver{w: newWorld(t), ref: newReferee(t), t: t}
	for i := 0; i+1 < len(data); i += 2 {
		before := len(d.w.log)
		d.step(data[i]%opCount, data[i+1])
		d.ref.watch(d.w, d.w.log[before:])
	}
	d.finish()
	return d
}

// finish starts the service anew: whatever was under way has ended, and is
// counted nowhere any more.
func (d *driver) finish() {
	before := len(d.w.log)
	d.w.see(ServiceStarted{Version: "the end", Rules: RulesVersion})
	d.ref.watch(d.w, d.w.log[before:])
	if n := d.w.s.InFlight() + len(d.w.s.byRequest); n != 0 {
		d.t.Fatalf("after the end %d calls and requests are under way", n)
	}
	for name, p := range d.w.s.peers { // order-free: each is looked at alone
		if p.calls != 0 {
			d.t.Fatalf("after the end %d calls are counted at %s", p.calls, name)
		}
	}
}

func (d *driver) step(op, arg byte) {
	peer := drivePeers[int(arg)%3]
	switch op {
	case opStart:
		d.w.start(driveConfig(arg))
		return
	case opStop:
		d.w.see(ServiceStopped{Reason: "fuzz"})
		return
	case opLoad:
		d.w.load(driveConfig(arg))
		return
	case opClock:
		d.w.now += int64(arg) * 60_000_000_000
		return
	case opTick:
		d.w.now += int64(arg) * 100_000_000
		return
	case opContinue, opWaited, opCancelled, opCommand:
		d.stepStory(op, arg, peer)
		return
	}
	if d.w.s.Peer(peer) == nil {
		return
	}
	at := d.w.at(peer)
	switch op {
	case opSpawned:
		d.w.see(PeerSpawned{At: at, PID: 1})
	case opSpawnFailed:
		d.w.see(SpawnFailed{At: at, Code: CodeSpawnFailed, Reason: "no"})
	case opExited:
		how := int(arg/3) % 5
		d.w.see(PeerExited{At: at, Status: 1, Replaced: how == 4,
			Cause: []string{"exited", "frame_too_large", "write_failed", causeWatchdogLost, causeWatchdogLost}[how]})
	case opProbed, opStray:
		d.probe(op, at, arg)
	case opListed:
		d.list(at, arg)
	case opHealthDue:
		d.w.see(HealthDue{At: at})
	case opHealthAnswered:
		d.w.see(HealthAnswered{At: at, RequestID: d.w.s.Peer(peer).health})
	case opCrash:
		d.crash(at, arg)
	default:
		d.stepCall(op, arg)
	}
}

// probe feeds a frame: opProbed under the id that is waited for, opStray under
// others, or from the incarnation before.
func (d *driver) probe(op byte, at At, arg byte) {
	p := d.w.s.Peer(at.Peer)
	frames := driveFrames()
	x := frames[int(arg/3)%len(frames)]
	id := fmt.Sprint(p.probe.id)
	if op == opStray {
		switch int(arg) % 5 {
		case 0:
			id = "null"
		case 1:
			id = `"` + id + `"`
		case 2:
			id = fmt.Sprint(p.probe.discoverID)
		case 3:
			id = "999999"
		case 4:
			at.Incarnation = max(1, at.Incarnation-1)
		}
	}
	frame := []byte(`{"jsonrpc":"2.0","id":` + id + `,` + x.members + `}`)
	d.ref.heard(at, x.modern)
	d.w.see(ProbeAnswered{At: at, Frame: RefTo(frame)}, string(frame))
}

// driveFrames are what a peer may say, and whether it shows modern behaviour.
func driveFrames() []struct {
	members string
	modern  bool
} {
	return []struct {
		members string
		modern  bool
	}{
		{`"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`, true},
		{`"error":{"code":-32601,"message":""}`, false},
		{`"result":{}`, false},
		{`"result":null`, false},
		{`"error":{"code":-32022,"data":{"supported":["2026-07-28"]}}`, true},
		{`"error":{"code":-32021,"data":{"requiredCapabilities":{"sampling":{}}}}`, true},
		{`"error":{"code":-32020}`, true},
		{`"error":{"code":-32022,"data":{"supported":["2025-11-25"]}}`, true},
		{`"error":{"code":-32022}`, true},
		{`"error":{"code":-32021,"data":{"requiredCapabilities":{"roots":{}}}}`, true},
		{`"result":{"resultType":"complete","supportedVersions":["2027-01-01"],"capabilities":{}}`, true},
		{`"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`, true},
		{`"result":{"ok":true}`, false},
		{`"result":{},"error":{"code":-32601}`, false},
		{`"result":{},"error":{"code":-32022}`, true},
		{`"error":"no"`, false},
		{`"error":{"code":-32022.0}`, true},
		{`"x":1`, false},
		{`"method":"ping"`, false},
		{`"result":{"protocolVersion":"2026-07-28","capabilities":{},"serverInfo":{"name":"n","version":"1"}}`, false},
		{`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}`, false},
		{`"error":{"code":-32000,"message":""}`, false},
		{`"result":`, false},
	}
}

func (d *driver) list(at At, arg byte) {
	p := d.w.s.Peer(at.Peer)
	id := int64(999_999)
	if l := p.line(""); l.fetch != nil && arg < 250 {
		id = l.fetch.id
	}
	tools := [][]string{{"x", "y"}, {"x"}, {"a/x", "y"}, {"x__y", "b__x", "x"}, {}, {"c", "x", "x", "bad name"}}[int(arg/3)%6]
	more := []string{hints, "", hints, next(`"1"`), hints, `,"resultType":"odd"`}[int(arg/18)%6]
	frame := strings.ReplaceAll(listPage(more, tools...), "$ID", fmt.Sprint(id))
	frame = strings.ReplaceAll(frame, `"name":"y"`, `"annotations":{"readOnlyHint":true},"name":"y"`)
	d.w.see(CatalogListed{At: at, RequestID: id, Frame: RefTo([]byte(frame))}, frame)
}

// TestDecideSeeds runs the seeds as far as they must come.
func TestDecideSeeds(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range decideSeeds() {
		for _, k := range kinds(drive(t, s).w.log) {
			seen[k] = true
		}
	}
	for _, k := range []string{"era.determined", "era.refused", "catalog.accepted", "namespace.merged", "call.routed", "call.settled", "call.refused", "peer.refused"} {
		if !seen[k] {
			t.Errorf("no seed leads to %s: %v", k, slices.Sorted(keysOf(seen)))
		}
	}
}

func keysOf(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m { // order-free: the caller sorts
			if !yield(k) {
				return
			}
		}
	}
}
