package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/domain/wire"
	"waybill/harness"
	"waybill/harness/bus"
)

// Results that did not fit their reply are held for a while, so that their hosts can
// fetch them in parts.
const (
	partsBytes = 64 << 20
	partsTime  = 10 * time.Minute
)

// parts holds large results in memory; of the host that holds most, the oldest go first. A restart loses them, and
// what is kept of payloads stands in for them where the policy keeps any.
type parts struct {
	mu    sync.Mutex
	whole map[domain.CallID]large
	order []domain.CallID
	size  int
	now   func() time.Time
}

type large struct {
	of    string // result or error
	bytes []byte
	until time.Time
}

func newParts() *parts { return &parts{whole: map[domain.CallID]large{}, now: time.Now} }

// put holds the bytes of a reply. They are not copied.
func (p *parts) put(id domain.CallID, reply harness.Reply) {
	x := largeOf(reply)
	if len(x.bytes) > partsBytes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(id)
	x.until = p.now().Add(partsTime)
	p.whole[id], p.order, p.size = x, append(p.order, id), p.size+len(x.bytes)
	for p.now().After(p.whole[p.order[0]].until) {
		p.drop(p.order[0])
	}
	for p.size > partsBytes {
		p.drop(p.next())
	}
}

// next is what makes room: the oldest of the host that holds most.
func (p *parts) next() domain.CallID {
	held, host := map[string]int{}, ""
	for _, id := range p.order {
		if held[id.Host] += len(p.whole[id].bytes); held[id.Host] > held[host] {
			host = id.Host
		}
	}
	return p.order[slices.IndexFunc(p.order, func(id domain.CallID) bool { return id.Host == host })]
}

func largeOf(r harness.Reply) large {
	if r.Error != nil {
		return large{of: "error", bytes: r.Error}
	}
	return large{of: "result", bytes: r.Result}
}

func (x large) into(r *harness.Reply) {
	if x.of == "error" {
		r.Error = x.bytes
		return
	}
	r.Result = x.bytes
}

func (p *parts) drop(id domain.CallID) {
	x, ok := p.whole[id]
	if !ok {
		return
	}
	delete(p.whole, id)
	p.size -= len(x.bytes)
	p.order = slices.DeleteFunc(p.order, func(other domain.CallID) bool { return other == id })
}

func (p *parts) get(id domain.CallID) (large, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x, ok := p.whole[id]
	return x, ok && !p.now().After(x.until)
}

// partReply is the answer to the verb part.
type partReply struct {
	CallID string `json:"call_id"`
	Of     string `json:"of"`            // result or error
	Size   int    `json:"size"`          // of the whole, in bytes
	SHA256 string `json:"sha256"`        // of the whole, hex
	Offset int    `json:"offset"`        // of the part in the whole
	Part   []byte `json:"part"`          // base64
	Next   int    `json:"next,omitzero"` // offset of the next part; absent at the end
}

// partRoom is what a part's reply holds beside the part.
const partRoom = 2 << 10

// part answers with a piece of what did not fit the reply of a call.
func (s *server) part(ctx context.Context, r *bus.Request) {
	var ask struct {
		Offset int `json:"offset"`
	}
	_ = json.Unmarshal(r.Data, &ask) // what cannot be read begins at the beginning
	id, offset := callOf(r), ask.Offset
	if offset < 0 {
		s.refuseRead(r, harness.Reply{CallID: id.ID, Code: domain.CodeBadRequest, Reason: fmt.Sprintf("offset %d is below 0", offset)}, 400)
		return
	}
	x, ok := s.parts.get(id)
	if !ok {
		reply, err := outcomeOf(ctx, s.log.Reader(), s.payloads, id)
		if x = largeOf(reply); err != nil || x.bytes == nil {
			s.refuseRead(r, harness.Reply{CallID: id.ID, Code: domain.CodeOutcomeLost, Reason: "the result of this call is not there any more, or there never was one; see outcome"}, 410)
			return
		}
	}
	if offset > len(x.bytes) {
		s.refuseRead(r, harness.Reply{CallID: id.ID, Code: domain.CodeBadRequest, Reason: fmt.Sprintf("offset %d: there are %d bytes", offset, len(x.bytes))}, 400)
		return
	}
	end := min(len(x.bytes), offset+(s.service.MaxReply()-partRoom)/4*3)
	sum := sha256.Sum256(x.bytes)
	p := partReply{CallID: id.ID, Of: x.of, Size: len(x.bytes), SHA256: hex.EncodeToString(sum[:]), Offset: offset, Part: x.bytes[offset:end]}
	if end < len(x.bytes) {
		p.Next = end
	}
	s.answer(ctx, r, func(context.Context, *bus.Request) (any, error) { return p, nil })
}

// fetchParts fetches what did not fit a reply and puts it where it belongs.
func (r *remote) fetchParts(ctx context.Context, id string, reply []byte) ([]byte, error) {
	var whole []byte
	var p partReply
	for p.Next = 0; len(whole) == 0 || p.Next != 0; {
		body := fmt.Appendf(nil, `{"call_id":%q,"offset":%d}`, id, p.Next)
		p = partReply{}
		if err := r.ask(ctx, "part", body, &p); err != nil {
			return nil, err
		}
		if p.Offset != len(whole) || len(p.Part) == 0 {
			return nil, fmt.Errorf("the parts of the result of call %s do not follow each other: ask again", id)
		}
		whole = append(whole, p.Part...)
	}
	if sum := sha256.Sum256(whole); hex.EncodeToString(sum[:]) != p.SHA256 {
		return nil, fmt.Errorf("the parts of the result of call %s are not those of one result: ask again", id)
	}
	return withWhole(reply, p.Of, whole)
}

// withWhole is a reply as it would have been, had it fitted.
func withWhole(reply []byte, of string, whole []byte) ([]byte, error) {
	out := []byte("{")
	add := func(key string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, key) // of a reply of ours
		out = append(append(out, ':'), value...)
	}
	err := wire.Members(reply, func(key string, value jsontext.Value) {
		switch {
		case key == of, key == "size":
		case key == "code" && of == "result":
			add(key, []byte("null"))
		case key == "code":
			add(key, []byte(`"`+domain.CodePeerError+`"`))
		default:
			add(key, value)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("the answer is none of waybill: %w", err)
	}
	add(of, whole)
	return append(out, '}'), nil
}
