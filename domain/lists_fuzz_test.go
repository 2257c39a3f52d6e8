package domain

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The operations of a listDriver, beside those of drive.
const (
	opHello   = opCount + iota // an answer to server/discover that advertises notices
	opPage                     // an answer to a page that is waited for
	opNotice                   // a change is announced
	opAck                      // the first message of a subscription
	opSubEnd                   // the end of one
	opListDue                  // a reminder
	opSubDue                   // another
	opRead                     // hosts read tools
	opApprove                  // an operator approves a tool
	opQuiet                    // a list or a subscription is not heard of, or lost
	opInForm                   // a call in a context, or by a model name
	opListCount
)

// A listDriver drives the world of drive with peers whose lists are kept by rules.
type listDriver struct {
	*driver
	lists *listReferee
}

// listConfig is driveConfig with rules for lists, which vary.
func listConfig(arg byte) Config {
	c := driveConfig(arg)
	c.Partial = arg&0x30 != 0x30
	for i := range c.Peers {
		p := &c.Peers[i]
		p.Lists = &ListRules{Interval: 1_000, Stale: 30_000, Listen: 5_000, Hold: arg&1 != 0, Distrust: arg&5 == 5}
		switch p.Name {
		case "a":
			p.Lists.Refresh = 20_000
		case "b":
			if arg&0x0c == 0x0c {
				p.Lists = nil
			}
		case "c":
			if arg&2 != 0 {
				p.Contexts = [][]string{{"alice", "bob"}, {"bob", "carol"}, {"alice", DefaultContext}}[int(arg)/16%3]
			}
		}
	}
	return c
}

func driveLists(t testing.TB, data []byte) *listDriver {
	d := &listDriver{driver: &driver{w: newWorld(t), ref: newReferee(t), t: t}, lists: newListReferee(t)}
	for i := 0; i+1 < len(data); i += 2 {
		before := len(d.w.log)
		d.step(data[i]%opListCount, data[i+1])
		d.ref.watch(d.w, ofDefault(d.w.log[before:]))
		d.lists.watch(d.w.s, d.w.now, d.w.log[before:])
	}
	d.finish()
	return d
}

// ofDefault leaves out the names of other contexts: the referee of drive knows one.
func ofDefault(events []Event) []Event {
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		d, ok := e.Data.(NamespaceMerged)
		return ok && d.Context != DefaultContext
	})
}

func (d *listDriver) step(op, arg byte) {
	peer := drivePeers[int(arg)%3]
	switch op {
	case opStart:
		d.w.start(listConfig(arg))
		return
	case opLoad:
		d.w.load(listConfig(arg))
		return
	case opRead:
		d.w.see(ToolsRead{Context: driveContexts[int(arg)%len(driveContexts)], Reads: 1 + int64(arg)})
		return
	case opApprove:
		d.approve(arg)
		return
	case opCall, opInForm:
		d.submitIn(op, arg)
		return
	case opListed:
		op = opPage
	}
	if op < opCount {
		d.driver.step(op, arg)
		return
	}
	if p := d.w.s.Peer(peer); p != nil {
		d.stepList(op, arg, p)
	}
}

var driveContexts = []string{"", "alice", "bob", "carol", DefaultContext, "mallory"}

// stepList feeds what concerns one list of a peer: mostly the one that it is about,
// sometimes another, or one of the incarnation before.
func (d *listDriver) stepList(op, arg byte, p *Peer) {
	contexts := p.Config.contexts()
	context := contexts[int(arg/3)%len(contexts)]
	l, at := p.line(context), p.at()
	word := contextWord(context)
	odd := arg > 240
	if odd {
		at.Incarnation, word = max(1, at.Incarnation-1), driveContexts[int(arg)%len(driveContexts)]
	}
	sub := l.sub.id
	if sub == 0 || odd && d.mix(arg, 2) == 0 {
		sub = int64(d.mix(arg, 40))
	}
	switch op {
	case opHello:
		frame := strings.ReplaceAll(discoverNotices, "$ID", fmt.Sprint(p.probe.id))
		d.ref.heard(at, true)
		d.w.see(ProbeAnswered{At: at, Frame: RefTo([]byte(frame))}, frame)
	case opPage:
		d.page(at, l, word, arg)
	case opNotice:
		if p.Era == EraLegacy {
			sub = 0
		}
		d.w.see(ListChanged{At: at, Context: word, Subscription: sub, Count: 1 + int64(arg)})
	case opAck:
		frame := fmt.Sprintf(`{"jsonrpc":"2.0","method":"m","params":{"notifications":{"toolsListChanged":%t}}}`, arg%16 < 13)
		d.w.see(SubscriptionAcknowledged{At: at, Context: word, RequestID: sub, Frame: RefTo([]byte(frame))}, frame)
	case opSubEnd:
		d.w.see(SubscriptionEnded{At: at, Context: word, RequestID: sub, How: []string{EndedAnswered, EndedError, EndedCancelled, EndedBroken, "?"}[d.mix(arg, 5)],
			ErrorCode: []int64{0, -32601, -32603}[d.mix(arg, 3)]})
	case opListDue:
		d.w.see(ListDue{At: at, Context: word})
	case opSubDue:
		d.w.see(SubscriptionDue{At: at, Context: word})
	case opQuiet:
		d.quiet(at, l, arg)
	}
}

// quiet ends the wait for a page, or for an acknowledgement.
func (d *listDriver) quiet(at At, l *line, arg byte) {
	id := l.sub.id
	if l.fetch != nil && d.mix(arg, 3) > 0 {
		id = l.fetch.id
	}
	if d.mix(arg, 2) == 0 {
		d.w.see(DeadlinePassed{At: at, RequestID: id})
		return
	}
	d.w.see(ExchangeFailed{At: at, RequestID: id, Written: "maybe", Code: []Code{CodeTransportLost, CodeFrameTooLarge, CodeRequestTooLarge}[d.mix(arg, 3)]})
}

// page answers the page that is waited for.
func (d *listDriver) page(at At, l *line, word string, arg byte) {
	id := int64(999_999)
	if l.fetch != nil {
		id = l.fetch.id
	}
	lists := [][]string{{"x", "y"}, {"x"}, {"a/x", "y", "X"}, {"x__y", "b__x", "x"}, {}, {"c", "x", "x", "bad name", "y"}, {"y", "x", "z"}}
	form := []string{"A", "A", "A", "B", "C", `\u200b`}[d.mix(arg/9, 6)]
	var defs []string
	for _, name := range lists[int(arg/3)%len(lists)] {
		def := tell(name, form)
		if name == "y" { // what the book takes for harmless
			def = strings.Replace(def, `"name"`, `"annotations":{"readOnlyHint":true},"name"`, 1)
		}
		defs = append(defs, def)
	}
	public, private := cached(2_000, ScopePublic), cached(60_000, ScopePrivate)
	more := []string{public, private, public, private, cached(0, ScopePublic), "", before(fmt.Sprint(d.mix(arg, 3)), public), `,"resultType":"odd"`, private}[d.mix(arg, 9)]
	frame := strings.ReplaceAll(told(more, defs...), "$ID", fmt.Sprint(id))
	if d.mix(arg, 13) == 0 {
		frame = strings.ReplaceAll(notFound, "$ID", fmt.Sprint(id))
	}
	d.w.see(CatalogListed{At: at, Context: word, RequestID: id, Frame: RefTo([]byte(frame))}, frame)
}

func (d *listDriver) approve(arg byte) {
	c := OperatorCommanded{By: "oncall", Verb: VerbApprove, Context: driveContexts[int(arg)%len(driveContexts)], Tool: []string{"x", "y", "b/x", "c/x", "none"}[int(arg/6)%5]}
	for _, e := range d.w.s.Tools(c.Context, "", 0, d.w.now).Tools {
		if e.Canonical == c.Tool || e.Held != nil && arg < 220 {
			c.Tool, c.Digest = e.Canonical, e.Digest
		}
	}
	d.w.see(c)
}

// submitIn feeds a call as submit does, in a context, and perhaps by a model name.
func (d *listDriver) submitIn(op, arg byte) {
	if op == opCall && arg%4 == 0 {
		d.submit(arg)
		return
	}
	c := CallReceived{CallID: CallID{"local", fmt.Sprint("d", arg%8)}, Tool: []string{"x", "y", "a/x", "none"}[int(arg/8)%4], Arguments: Payload{Size: int64(arg)}}
	c.Context = driveContexts[int(arg/32)%len(driveContexts)]
	if d.mix(arg, 3) == 0 {
		c.Wait = 2_000
	}
	if list := d.w.s.Tools(c.Context, "", 0, d.w.now).Tools; len(list) > 0 && arg < 200 {
		if c.Tool = list[int(arg)%len(list)].Canonical; op == opInForm {
			c.Form, c.Tool = ModelForm, list[int(arg)%len(list)].Model
		}
	}
	d.see(c)
}

// FuzzLists drives a small world of peers whose lists are kept by rules, as
// FuzzDecide drives one whose lists are read once.
func FuzzLists(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(listWalk(rand.New(rand.NewPCG(seed, 3)), 40))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 600 {
			listsTwice(t, data)
		}
	})
}

// listsTwice: a run gives the same events each time, byte for byte, and the state
// folded from them alone is the one that decided.
func listsTwice(t *testing.T, data []byte) {
	t.Helper()
	first, second := driveLists(t, data), driveLists(t, data)
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
		t.Fatal("the state folded from the events is another one")
	}
}

// listWalk draws a run in which peers come up, and what concerns lists happens
// often.
func listWalk(r *rand.Rand, n int) []byte {
	var out []byte
	for range 1 + r.IntN(3) {
		arg := byte(r.IntN(256)) & []byte{0x0f, 0xff, 0x1f}[r.IntN(3)]
		if arg%3 == 1 && r.IntN(3) > 0 { // a policy under which a start fails
			arg++
		}
		out = append(out, opStart, arg)
		for _, peer := range r.Perm(3) {
			out = append(out, listUp(r, byte(peer))...)
		}
		for range n {
			out = append(out, listHappen(r)...)
		}
	}
	return out
}

func listUp(r *rand.Rand, peer byte) []byte {
	hello := []byte{opHello, peer}
	if r.IntN(3) == 0 {
		hello = []byte{opProbed, peer + 3, opProbed, peer + 3*20} // legacy, where it may be
	}
	pages := []byte{opPage, peer + 3*byte(r.IntN(80)), opPage, peer + 3*byte(r.IntN(80)), opAck, peer, opAck, peer + 3}
	return slices.Concat([]byte{opSpawned, peer}, hello, pages)
}

func listHappen(r *rand.Rand) []byte {
	peer := byte(r.IntN(3))
	switch r.IntN(12) {
	case 0:
		return slices.Concat([]byte{opCrash, peer}, []byte{opCall, byte(r.IntN(256))}, listUp(r, peer))
	case 1, 2, 3:
		return []byte{opNotice, byte(r.IntN(240)), opTick, byte(r.IntN(40)), opListDue, byte(r.IntN(240)), opPage, byte(r.IntN(240))}
	case 4:
		return []byte{opRead, byte(r.IntN(256)), opPage, byte(r.IntN(240)), opPage, byte(r.IntN(240))}
	}
	op := []byte{opNotice, opAck, opSubEnd, opListDue, opListDue, opSubDue, opSubDue, opRead, opRead, opApprove, opApprove, opQuiet, opInForm, opPage, opPage,
		opPage, opCall, opCall, opAnswered, opAnswered, opAnswered, opDeadline, opFailed, opExited, opTick, opTick, opTick, opWaited, opCancelled,
		opSpawned, opHello}[r.IntN(31)]
	if r.IntN(60) == 0 {
		op = []byte{opStop, opLoad, opClock, opSpawnFailed}[r.IntN(4)]
	}
	return []byte{op, byte(r.IntN(256))}
}
