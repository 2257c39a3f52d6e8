package domain

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// The operations of driveWeb, beyond those of drive.
const (
	opWebStart = opCount + iota
	opProbeFailed
	opUnanswered
	opRetire
	opWebDue
	webOpCount
)

// webDriveConfig makes some of the peers of driveConfig endpoints, of which the last
// is asked in two authorization contexts.
func webDriveConfig(arg byte) Config {
	c := driveConfig(arg &^ 0x20)
	c.Partial = true
	if c.Collision == RejectOnCollision && arg < 0xf0 { // nothing goes on after that
		c.Collision = PrefixOnCollision
	}
	for i := range c.Peers {
		p := &c.Peers[i]
		if (int(arg)%7+1)>>i&1 == 0 {
			continue
		}
		httpPeer(p)
		if arg&0x04 == 0 {
			p.Lists = &ListRules{Interval: 500, Stale: 3_600_000, Listen: 10_000}
		}
	}
	if last := &c.Peers[len(c.Peers)-1]; last.Transport == TransportHTTP {
		last.Contexts = []string{"alice", DefaultContext}
	}
	if arg&0x03 == 0x03 {
		c.Hosts = []HostConfig{{Name: "local", Context: DefaultContext, Tools: []string{"x", "b*"}}}
	}
	return c
}

func driveWeb(t testing.TB, data []byte) *driver {
	d := &driver{w: newWorld(t), ref: newReferee(t), t: t}
	for i := 0; i+1 < len(data); i += 2 {
		before := len(d.w.log)
		d.webStep(data[i]%webOpCount, data[i+1])
		d.ref.watch(d.w, d.w.log[before:])
	}
	d.finish()
	return d
}

func (d *driver) webStep(op, arg byte) {
	peer := drivePeers[int(arg)%3]
	p := d.w.s.Peer(peer)
	switch op {
	case opWebStart:
		d.w.start(webDriveConfig(arg))
		return
	case opLoad:
		d.w.load(webDriveConfig(arg))
		return
	case opUnanswered:
		d.unanswered(arg)
		return
	case opListed:
		if p != nil {
			d.webList(p, arg)
		}
		return
	case opWebDue:
		if p != nil {
			p.each(func(l *line) { d.w.see(ListDue{At: p.at(), Context: contextWord(l.context)}) })
		}
		return
	}
	if op < opCount && (p == nil || !p.http() || op != opExited && op != opCrash) {
		d.step(op, arg)
		return
	}
	if p == nil || !p.http() {
		return
	}
	if op == opProbeFailed {
		d.probeFailed(p, arg)
		return
	}
	d.retire(p, arg)
}

// probeFailed feeds an answer of HTTP without a message, most of them to the probe
// that waits.
func (d *driver) probeFailed(p *Peer, arg byte) {
	id := p.probe.id
	switch d.mix(arg, 9) {
	case 0:
		id = p.probe.discoverID
	case 1:
		id = 999_999
	}
	all := outcomesOfHTTP()
	o := all[int(arg/3)%len(all)]
	d.w.see(ProbeFailed{At: p.at(), RequestID: id, Class: o.class, Status: o.status, Reason: "no message in it"})
}

// unanswered feeds what HTTP says of a call in the place of an answer: of one that
// is under way, or of any request that was ever sent.
func (d *driver) unanswered(arg byte) {
	if len(d.w.sends) == 0 {
		return
	}
	x := d.w.sends[len(d.w.sends)-1-int(arg)%min(16, len(d.w.sends))]
	if open := d.ref.book.find(sent); len(open) > 0 && d.mix(arg, 4) > 0 {
		s := open[int(arg)%len(open)]
		x = Send{At: s.at, RequestID: s.request, Call: s.key}
	}
	if !d.ref.web[x.Peer] {
		return
	}
	kinds := []ExchangeFailed{{Written: "no", Code: CodeTransportLost}, {Written: "maybe", Code: CodeTransportLost}, {Written: "maybe", Code: CodeSessionGone, Status: 404},
		{Written: "maybe", Code: CodeSessionGone, Status: 404}, {Written: "maybe", Code: CodeUnauthorized, Status: 401}, {Written: "no", Code: CodeUnauthorized},
		{Written: "maybe", Code: CodeForbidden, Status: 403}, {Written: "maybe", Code: CodeHTTPStatus, Status: 500}, {Written: "maybe", Code: CodeBadResult, Status: 202}}
	f := kinds[d.mix(arg/2, len(kinds))]
	f.At, f.RequestID, f.Call = x.At, x.RequestID, x.Call
	d.w.see(f)
}

// retire ends an incarnation as the harness reports it: first the endpoint, then one
// request that found it so; the others go on.
func (d *driver) retire(p *Peer, arg byte) {
	at, how := p.at(), d.mix(arg/3, 4)
	cause := []string{causeUnreachable, causeSessionGone, causeSessionRefused, "stopped"}[how]
	d.w.see(PeerExited{At: at, Cause: cause})
	for i, s := range d.ref.book.find(sent) {
		if s.at != at || i > 0 && how < 3 {
			continue
		}
		f := ExchangeFailed{At: at, RequestID: s.request, Call: s.key, Written: "no", Code: CodeTransportLost}
		if how == 1 {
			f.Written, f.Code, f.Status = "maybe", CodeSessionGone, 404
		}
		d.w.see(f)
	}
}

// webList answers a page of whichever of the peer's lists is being read.
func (d *driver) webList(p *Peer, arg byte) {
	id, context := int64(999_999), ""
	p.each(func(l *line) {
		if l.fetch != nil && arg < 250 {
			id, context = l.fetch.id, contextWord(l.context)
		}
	})
	names := [][]string{{"x", "y"}, {"x", "y"}, {"x"}, {"a/x", "y"}, {"y", "x", "x", "bad name"}, {}}[int(arg/3)%6]
	more := []string{hints, hints, hints, next(`"1"`), "", `,"resultType":"odd"`}[int(arg/18)%6]
	frame := strings.ReplaceAll(listPage(more, names...), "$ID", fmt.Sprint(id))
	frame = strings.ReplaceAll(frame, `"name":"y"`, `"annotations":{"readOnlyHint":true},"name":"y"`)
	d.w.see(CatalogListed{At: p.at(), Context: context, RequestID: id, Frame: RefTo([]byte(frame))}, frame)
}

// webWalk draws one to three lives of a service whose peers are mostly endpoints.
func webWalk(r *rand.Rand) []byte {
	var out []byte
	for range 1 + r.Intn(3) {
		out = append(out, opWebStart, byte(r.Intn(256))|0x08)
		for _, peer := range r.Perm(3) {
			out = append(out, webUp(r, byte(peer))...)
		}
		for range r.Intn(60) {
			out = append(out, webHappens(r)...)
		}
	}
	return out
}

// webUp brings an endpoint up: modern, legacy after an ambiguous answer, or after its
// first credential was refused.
func webUp(r *rand.Rand, peer byte) []byte {
	kind := func(class string) byte {
		for i, o := range outcomesOfHTTP() {
			if o.class == class && r.Intn(3) == 0 {
				return peer + 3*byte(i)
			}
		}
		return peer
	}
	up, list := []byte{opSpawned, peer}, []byte{opListed, peer, opListed, peer}
	modern, legacy := []byte{opProbed, peer}, []byte{opProbed, peer + 3*20}
	switch r.Intn(9) {
	case 8:
		return slices.Concat(up, []byte{opProbeFailed, kind(ClassAmbiguous), opProbeFailed, byte(r.Intn(256))})
	case 0, 1:
		return slices.Concat(up, []byte{opProbeFailed, kind(ClassAmbiguous)}, legacy, []byte{opListed, peer + 72, opListed, peer + 72})
	case 2:
		return slices.Concat(up, []byte{opProbeFailed, kind(ClassUnauthorized)}, modern, list)
	case 3:
		return slices.Concat(up, []byte{opProbeFailed, kind(ClassUnavailable), opRetire, peer}, up, modern, list)
	case 4:
		return slices.Concat(up, webHappens(r), []byte{opProbeFailed, byte(r.Intn(256))}, webHappens(r))
	}
	return slices.Concat(up, modern, list)
}

func webHappens(r *rand.Rand) []byte {
	peer := byte(r.Intn(3))
	switch r.Intn(12) {
	case 0:
		return webUp(r, peer)
	case 1:
		return slices.Concat(lively(r, opCall, opCall), []byte{opRetire, peer}, webUp(r, peer), lively(r, opAnswered))
	case 2:
		return slices.Concat(lively(r, opCall), []byte{opUnanswered, byte(r.Intn(256)), opRetire, peer}, webUp(r, peer))
	case 3:
		return slices.Concat(lively(r, opCall, opAnswered, opAnswered), []byte{opTick, 9, opWebDue, peer, opListed, peer, opListed, peer})
	case 4:
		return []byte{[]byte{opProbeFailed, opUnanswered, opRetire, opWebDue}[r.Intn(4)], byte(r.Intn(256))}
	}
	return happen(r)
}

// TestRandomWalksOverHTTP drives endpoints by long runs of observations, with the
// referee and the book looking on: initialize has its one ground; each call ends
// once, and is sent again by the rules alone; nothing is sent in an incarnation that
// is over, and what was under way in it ends all the same.
func TestRandomWalksOverHTTP(t *testing.T) {
	rules, seen := map[string]int{}, map[string]int{}
	for seed := range walks(int64(900)) {
		run := webWalk(rand.New(rand.NewSource(seed)))
		d := driveWeb(t, run)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		if seed%20 == 0 {
			foldsToTheSame(t, d.w)
		}
		for _, x := range all[CallResent](d.w.log) {
			rules[x.Rule]++
		}
		seen["initialize"] += d.w.count(MethodInitialize)
		for _, x := range all[ProbeIssued](d.w.log) {
			seen[x.Authority]++
		}
		for _, x := range all[EraRefused](d.w.log) {
			seen[string(x.Code)]++
		}
		for _, x := range all[CallRefused](d.w.log) {
			seen[string(x.Code)]++
		}
		for _, x := range all[CallHeld](d.w.log) {
			seen["held "+x.Rule]++
		}
		seen["retired"] += settledRetired(d.w.log)
	}
	t.Logf("sent again: %v; seen: %v", rules, seen)
	for _, rule := range []string{RuleNeverWritten, RuleSession, RuleHeader, RuleVersion, RuleRepeatable, RuleKey, RuleInput} {
		if rules[rule] < walks(10) {
			t.Errorf("%d calls were sent again by the rule %s: the walks do not go where they should", rules[rule], rule)
		}
	}
	for _, what := range []string{"initialize", AuthorityCredential, "retired", "unauthorized", "unavailable", "redirect_refused", "legacy_status", "ambiguous_status",
		"broken_answer", "modern_evidence", "not_allowed", "held header_mismatch", "held session_gone", "held never_written"} {
		if seen[what] < walks(20) {
			t.Errorf("%s came %d times: the walks do not go where they should", what, seen[what])
		}
	}
}

// settledRetired counts the calls that ended by an answer of an incarnation that was
// over.
func settledRetired(log []Event) int {
	n, over, ends := 0, map[At]bool{}, map[int64]bool{}
	for _, e := range log {
		switch d := e.Data.(type) {
		case PeerExited:
			over[d.At] = true
		case CallAnswered:
			ends[e.Seq] = over[d.At]
		case CallSettled:
			if ends[e.Cause] {
				n++
			}
		}
	}
	return n
}

// foldsToTheSame: the state folded from the events alone is the one that decided.
func foldsToTheSame(t *testing.T, w *world) {
	t.Helper()
	folded := NewState()
	for _, e := range w.log {
		folded.Apply(e)
	}
	if !sameState(folded, w.s) {
		t.Fatalf("the state folded from %d events is another one", len(w.log))
	}
}

// FuzzDecideOverHTTP is FuzzDecide with endpoints among the peers.
func FuzzDecideOverHTTP(f *testing.F) {
	for seed := range int64(8) {
		run := webWalk(rand.New(rand.NewSource(seed)))
		f.Add(run[:min(len(run), 240)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return
		}
		first, second := driveWeb(t, data), driveWeb(t, data)
		if len(first.w.log) != len(second.w.log) || !sameState(first.w.s, second.w.s) {
			t.Fatalf("%d events, then %d, or another state", len(first.w.log), len(second.w.log))
		}
		foldsToTheSame(t, first.w)
	})
}
