package harness

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"waybill/domain"
	"waybill/store"
	"waybill/store/payloads"
)

// Payloads keeps the bytes of calls: *payloads.DB does.
type Payloads interface {
	// Save makes what a batch of events cites durable, all or nothing. It may be
	// called again with the same batch.
	Save(ctx context.Context, b payloads.Batch) error
	// Key returns the key that names the payloads of a call.
	Key(ctx context.Context, story int64) (key payloads.Key, ok bool, err error)
	PayloadReader
	// Count returns of how many calls of a selection anything is kept.
	Count(ctx context.Context, s payloads.Selection) (int64, error)
	// Ever reports whether anything was ever kept.
	Ever(ctx context.Context) (bool, error)
	// Erase erases bytes and keys; when it returns nil they are gone.
	Erase(ctx context.Context, s payloads.Selection) error
}

// keeper is what the loop holds of calls whose bytes are kept.
type keeper struct {
	mu   sync.Mutex
	keys map[string]payloads.Key // of such calls under way, by the key of the call

	// Touched by Run's goroutine only.
	batch   payloads.Batch     // what the events cite that are being decided
	waiting map[int64]*command // who waits for an erasure, by the seq of its event
	erasers *lane
}

// clean is what would be kept of bytes, and how an event names them.
type clean struct {
	bytes    []byte // without secrets
	redacted bool   // there were some
	named    domain.Payload
}

// keeping is what an input brings in case that its bytes are to be kept.
type keeping struct {
	key   payloads.Key // of the call
	known bool         // the key is that of the call, and the data is named under it
	story int64        // 0: nothing of this input is kept

	arguments, responses, state, result clean
}

func (k *keeper) key(call string) (key payloads.Key, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok = k.keys[call]
	return key, ok
}

func (k *keeper) hold(call string, key payloads.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys = map[string]payloads.Key{}
	}
	k.keys[call] = key
}

func (k *keeper) forget(call string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.keys, call)
}

// name says which bytes are meant, under the key of a call.
func name(key payloads.Key, b []byte) domain.Payload {
	return domain.Payload{Size: int64(len(b)), HMAC: key.Name(b)}
}

// nobodys is a name under a key that nobody has: what is not kept of a call whose
// payloads are must not stay guessable when they have been erased.
func nobodys(p domain.Payload) domain.Payload {
	return domain.Payload{Size: p.Size, HMAC: newKey().Name(nil)}
}

func newKey() (k payloads.Key) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// cleaned looks for secrets once, outside of the loop.
func (l *Loop) cleaned(b []byte) clean {
	if b == nil {
		return clean{}
	}
	c := l.cfg.Redact(b)
	return clean{bytes: c, redacted: !bytes.Equal(b, c)}
}

// readyToKeep prepares what may have to be kept of a submission: which peer it
// goes to is not known yet.
func (l *Loop) readyToKeep(in *input) {
	d, _ := in.data.(domain.CallReceived)
	if l.cfg.Payloads == nil || !l.cfg.Keep && d.Key == "" && !continues(d) {
		return
	}
	k := &keeping{arguments: l.cleaned(in.arguments), responses: l.cleaned(in.responses), state: l.cleaned(in.state)}
	k.key = newKey()
	k.arguments.named = name(k.key, in.arguments)
	in.keeping = k
}

// nameSubmission names what a submission brings under the key of its call, where
// anything of the call is kept: a key of its own for a call that begins, and the
// key it has for one that is gone on with, whatever becomes of that.
func (l *Loop) nameSubmission(in *input, d *domain.CallReceived) {
	k := in.keeping
	switch {
	case k == nil || d.Problem != "":
	case !continues(*d):
		d.OutcomeOnly = l.state.KeepsOutcome(*d)
		if d.OutcomeOnly || l.state.Keeps(*d) {
			d.Kept, d.Arguments, k.known, k.story = true, k.arguments.named, true, l.state.Head+1
		}
	default:
		if l.recallKey(in, d.CallKey()); k.known {
			d.Arguments = name(k.key, in.arguments)
			d.Input, d.RequestState = k.renamed(d.Input, in.responses), k.renamed(d.RequestState, domain.StateText(in.state))
		}
	}
}

// renamed names bytes that are there.
func (k *keeping) renamed(p *domain.Payload, b []byte) *domain.Payload {
	if p == nil {
		return nil
	}
	n := name(k.key, b)
	return &n
}

// recallKey finds the key of a call that goes on. One that cannot be found is as
// good as erased: nothing can be compared any more.
func (l *Loop) recallKey(in *input, call string) {
	story, ok := l.state.Kept(call)
	if !ok || l.cfg.Payloads == nil {
		return
	}
	key, found, err := l.cfg.Payloads.Key(context.Background(), story)
	if err != nil || !found {
		l.cfg.Logger.Warn("the key of a call that goes on is not to be had, so that nothing can match it", "call", call, "err", err)
		return
	}
	if in.keeping == nil {
		in.keeping = &keeping{}
	}
	in.keeping.key, in.keeping.known, in.keeping.story = key, true, story
}

// keepSubmission notes what is to be kept of a submission that is part of its
// call's story.
func (l *Loop) keepSubmission(in *input, d domain.CallReceived, now int64) {
	k := in.keeping
	l.keeper.hold(d.CallKey(), k.key)
	if !continues(d) {
		l.keeper.batch.Stories = append(l.keeper.batch.Stories,
			payloads.Story{Seq: k.story, Call: d.CallKey(), Host: d.Host, Created: now, Key: k.key, Outcome: d.OutcomeOnly})
	}
	if d.OutcomeOnly || !l.cfg.Keep { // a call that goes on may have begun under another configuration
		return
	}
	if !continues(d) {
		l.keepBytes(payloads.Payload{Role: payloads.Arguments, Size: d.Arguments.Size}, k, now, k.arguments)
	}
	if d.Input != nil {
		l.keepBytes(payloads.Payload{Role: payloads.InputResponses, Size: d.Input.Size}, k, now, k.responses)
	}
	if d.RequestState != nil {
		l.keepBytes(payloads.Payload{Role: payloads.RequestState, Size: d.RequestState.Size}, k, now, k.state)
	}
}

// keepBytes notes bytes that are to be kept of the event that comes next.
func (l *Loop) keepBytes(x payloads.Payload, k *keeping, now int64, c clean) {
	x.Seq, x.Key, x.Story, x.Created, x.Redacted, x.Bytes = l.state.Head+1, k.key, k.story, now, c.redacted, c.bytes
	l.keeper.batch.Payloads = append(l.keeper.batch.Payloads, x)
}

// nameAnswer names what a peer answered under the key of its call, outside of the
// loop: it may be long.
func (l *Loop) nameAnswer(in *input) {
	d, ok := in.data.(domain.CallAnswered)
	if !ok || l.cfg.Payloads == nil {
		return
	}
	key, ok := l.keeper.key(d.CallKey())
	if !ok {
		return
	}
	k := &keeping{key: key, known: true, result: l.cleaned(in.payload)}
	d.Result = name(key, in.payload)
	d.RequestState = k.renamed(d.RequestState, domain.StateText(requestState(in.payload)))
	in.data, in.keeping = d, k
}

// admitAnswer finds out whether an answer is kept. One that comes too late is not.
func (l *Loop) admitAnswer(in *input, d domain.CallAnswered) {
	story, ok := l.state.Kept(d.CallKey())
	switch {
	case in.keeping != nil && ok && l.state.KeepsAnswer(d):
		in.keeping.story = story
	case in.keeping == nil && l.calls[d.CallKey()] == nil && l.state.KeepsOf(d.Peer):
		d.Result = nobodys(d.Result)
		if d.RequestState != nil {
			p := nobodys(*d.RequestState)
			d.RequestState = &p
		}
		in.data = d
	}
}

// keepResult notes what is to be kept of the answer that ended an exchange.
func (l *Loop) keepResult(in input, e domain.Event) {
	d, ok := e.Data.(domain.CallAnswered)
	if k := in.keeping; !ok || k == nil || k.story == 0 {
		return
	}
	role := payloads.Result
	switch {
	case d.Facts.Kind == domain.FactError:
		role = payloads.Error
	case d.Facts.ResultType == "input_required":
		role = payloads.InputRequests
	}
	c := in.keeping.result
	l.keeper.batch.Payloads = append(l.keeper.batch.Payloads, payloads.Payload{Seq: e.Seq, Role: role, Story: in.keeping.story, Key: in.keeping.key,
		Peer: d.Peer, Request: d.RequestID, Created: e.Time, Size: d.Result.Size, Redacted: c.redacted, Bytes: c.bytes})
}

// admitCommand fills in the arguments of a call that is to be sent again, where
// they are kept, and names those that were given under the key of the call.
// Arguments that a secret was taken out of are none.
func (l *Loop) admitCommand(in *input, d domain.OperatorCommanded) {
	if d.Verb != domain.VerbResend {
		return
	}
	if l.recallKey(in, d.Call); in.keeping == nil {
		return
	}
	if in.arguments == nil {
		x, ok, err := l.cfg.Payloads.Read(context.Background(), in.keeping.story, payloads.Arguments)
		if err != nil {
			l.cfg.Logger.Warn("what is kept of a call cannot be read", "call", d.Call, "err", err)
		}
		if !ok || err != nil || x.Redacted {
			return
		}
		in.arguments = x.Bytes
	}
	p := name(in.keeping.key, in.arguments)
	d.Arguments = &p
	in.data = d
}

// save makes the bytes durable that the events of a batch cite, before the events
// are: so an event of a kept call never stands in the log without its bytes. A
// crash between the two leaves bytes that no event cites, which the next start
// erases. A file that does not take them is like a log that does not: the same
// batch is tried again, nothing is released, and calls are turned away.
func (l *Loop) save(after int64, entries []store.Entry) error {
	b := l.keeper.batch
	l.keeper.batch = payloads.Batch{}
	if len(b.Stories)+len(b.Payloads) == 0 {
		return nil
	}
	b.First, b.Events = after+1, func(seq int64) []byte { return entries[seq-after-1].Bytes }
	deadline := time.Now().Add(l.cfg.Patience)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := l.cfg.Payloads.Save(context.Background(), b)
		if err == nil {
			return nil // the intake is opened when the log has taken the batch too
		}
		l.inbox.open(false)
		l.cfg.Logger.Error("the payloads of a batch were not kept; no effect was released", "after", after, "err", err)
		if time.Now().Add(pause).After(deadline) {
			return fmt.Errorf("keep the payloads of calls: %w", err)
		}
		time.Sleep(pause)
	}
}
