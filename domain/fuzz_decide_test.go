package domain

import (
	"bytes"
	"fmt"
	"reflect"
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
		if !reflect.DeepEqual(folded, first.w.s) {
			t.Fatalf("the state folded from the events is another one: %+v, %+v", folded, first.w.s)
		}
	})
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
	c.Peers[2].Capabilities = []byte(`{"sampling":{}}`)
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
	return d
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
		d.w.see(PeerExited{At: at, Status: 1, Cause: []string{"exited", "frame_too_large", "write_failed"}[int(arg/3)%3]})
	case opProbed, opStray:
		d.probe(op, at, arg)
	case opListed:
		d.list(at, arg)
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
	if p.fetch != nil && arg < 250 {
		id = p.fetch.id
	}
	tools := [][]string{{"x", "y"}, {"x"}, {"a/x", "y"}, {"x__y", "b__x", "x"}, {}, {"c", "x", "x", "bad name"}}[int(arg/3)%6]
	more := []string{hints, "", hints, next(`"1"`), hints, `,"resultType":"odd"`}[int(arg/18)%6]
	frame := strings.ReplaceAll(listPage(more, tools...), "$ID", fmt.Sprint(id))
	d.w.see(CatalogListed{At: at, RequestID: id, Frame: RefTo([]byte(frame))}, frame)
}

// stepCall feeds what concerns calls, or any request that was ever sent.
func (d *driver) stepCall(op, arg byte) {
	if op == opCall {
		id := CallID{"local", fmt.Sprint("c", arg%8)}
		c := CallReceived{CallID: id, Tool: []string{"x", "y", "a/x", "b/x", "b__x", "none"}[int(arg/8)%6], Generation: int64(arg / 64)}
		if d.w.s.CallTaken(id.CallKey()) { // as the harness does
			c.DuplicateOf, c.ID = id.ID, fmt.Sprint(GeneratedPrefix, len(d.w.log))
		}
		d.w.see(c)
		return
	}
	if len(d.w.sends) == 0 {
		return
	}
	x := d.w.sends[max(0, len(d.w.sends)-1-int(255-arg)%16)]
	switch op {
	case opAnswered:
		host, id, _ := strings.Cut(x.Call, "/")
		all := []Facts{{Kind: FactResult, ResultType: "complete"}, {Kind: FactError, ErrorCode: -32022}, {Kind: FactBroken}, {Kind: FactResult}}
		d.w.see(CallAnswered{CallID: CallID{host, id}, At: x.At, RequestID: x.RequestID, Facts: all[int(arg)%4]})
	case opFailed:
		d.w.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: []string{"no", "maybe"}[arg%2],
			Code: []Code{CodeTransportLost, CodeRequestTooLarge}[int(arg/2)%2]})
	case opDeadline:
		d.w.see(DeadlinePassed{At: x.At, RequestID: x.RequestID})
	}
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
