package harness

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/store/payloads"
)

// waiter is a submission that gets the outcome of a call that is under way.
type waiter struct {
	seq   int64 // of its call.joined
	reply func(Reply)
}

// nameKey names a host's idempotency key and what it was given for, without a word of
// either: the key stands in what is digested, so that who has the event, and the key
// of the data directory too, still cannot try out arguments.
func (l *Loop) nameKey(d *domain.CallReceived, r domain.CallRequest) {
	if r.Key == "" || d.Problem != "" {
		return
	}
	d.Key = l.cfg.Digest(fields("idempotency_key", d.Host, r.Key)).HMAC
	d.Same = l.cfg.Digest(fields("idempotency_call", d.Host, r.Key, r.Tool, r.Form, string(r.Arguments))).HMAC
}

// fields joins texts so that no two lists of them give the same bytes.
func fields(list ...string) []byte {
	var b []byte
	for _, s := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// traced is what is recorded of a trace and sent on.
func (l *Loop) traced(t domain.Trace) domain.Trace {
	t = domain.ParseTrace(t.Parent, t.State)
	if string(l.cfg.Redact([]byte(t.Parent))) != t.Parent {
		return domain.Trace{}
	}
	if string(l.cfg.Redact([]byte(t.State))) != t.State {
		t.State = ""
	}
	return t
}

// join gives a submission the outcome of the call that has its key: with that call's
// own reply, or from the log and what is kept, where it has ended.
func (l *Loop) join(x domain.Join) {
	w := l.calls[x.Call]
	delete(l.calls, x.Call)
	l.listening.remove(x.Call)
	if w == nil || w.reply == nil {
		return
	}
	id := callID(x.First)
	if u := l.calls[x.First]; u != nil && u.doc.began == x.Received {
		u.joined = append(u.joined, waiter{x.Seq, w.reply})
		if w.progress {
			l.listening.add(id)
		}
		return
	}
	l.outcomes.put(func() {
		r, err := history(context.Background(), l.cfg.Log, id, x.Received)
		if err != nil {
			l.cfg.Logger.Error("the outcome of a call cannot be read", "call", x.First, "err", err)
			r = Refused(domain.CodeLogUnavailable, "what became of the call cannot be read just now; it is not run again: try again", l.cfg.Log.ID())
			r.CallID, r.Ran = id.ID, domain.RanMaybe
		} else if err = r.restore(context.Background(), l.cfg.Log, l.cfg.Payloads); err != nil {
			l.cfg.Logger.Error("what is kept of a call cannot be read", "call", x.First, "err", err)
		}
		r.Joined = x.Seq
		w.reply(r)
	})
}

// callID reads the key of a call. A host's name has no slash.
func callID(key string) domain.CallID {
	host, id, _ := strings.Cut(key, "/")
	return domain.CallID{Host: host, ID: id}
}

// restore brings the bytes that the peer answered with, or says that they are gone.
// An error says why they cannot be read; the reply says then that they are lost.
func (r *Reply) restore(ctx context.Context, log recordReader, p Payloads) error {
	switch {
	case r.kept.size == 0 || r.Code == domain.CodeOutputInvalid:
		return nil // there was none, or the host never gets it
	case r.kept.story == 0 || p == nil:
		r.lose("was not kept")
		return nil
	}
	by, err := p.ErasedBy(ctx, r.kept.story)
	if err == nil && by != 0 {
		r.lose("was erased")
		r.Erased, err = erasureAt(ctx, log, by)
		return err
	}
	redacted := false
	if err == nil {
		redacted, err = r.fetch(ctx, p)
	}
	switch {
	case r.Result == nil && r.Error == nil:
		r.lose("is not there any more")
	case redacted:
		r.Reason = "this is not what the peer answered: a secret of the configuration was taken out of it before it was kept"
	}
	return err
}

// lose says that what the peer answered is gone. That the call is not run again is the
// promise of the key.
func (r *Reply) lose(how string) {
	r.Result, r.Error, r.Code = nil, nil, domain.CodeOutcomeLost
	r.Reason = "the call ended as it says here, but what its peer answered " + how + "; it is not run again under this idempotency_key"
}

// fetch finds what the peer answered. What is no JSON any more, because a secret was
// taken out of it, is left out.
func (r *Reply) fetch(ctx context.Context, p PayloadReader) (redacted bool, err error) {
	for _, role := range []string{payloads.Result, payloads.Error, payloads.InputRequests} {
		x, ok, err := p.Read(ctx, r.kept.answer, role)
		if err != nil {
			return false, err
		}
		if ok && jsontext.Value(x.Bytes).IsValid(lenient, jsontext.AllowDuplicateNames(true)) {
			r.bring(x.Bytes)
			redacted = x.Redacted
		}
	}
	return redacted, nil
}
