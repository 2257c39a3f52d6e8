package explain

import (
	"context"

	"waybill/domain"
	"waybill/replay"
)

// tellJoined tells of a submission that is no call of its own.
func (n *narrator) tellJoined(x note, d domain.CallJoined) {
	n.waiting = false
	n.outcome = Outcome{Kind: Joined, First: d.First, Seq: x.seq}
	n.told.section = sectionEnd
	n.told.say("joined", []note{x, {seq: d.Received}}, Facts{"first": d.First, "received": d.Received, "time": when(x.time)},
		"At %s the service found that call %s is the same call under the same idempotency key: this submission has the outcome of that one, and nothing was sent to any peer for it.",
		when(x.time), word(d.First))
	n.tellHolder(&n.told, n.keyOf(n.asked))
}

// keyOf is the call that has the idempotency key of a submission, as far as is known.
func (b *book) keyOf(asked domain.CallReceived) callBook {
	id, _ := b.state.KeyTaken(b.now.time, asked)
	c := b.calls[id.CallKey()]
	if c == nil {
		return callBook{}
	}
	if d, ok := c.received.data.(domain.CallReceived); !ok || d.Key != asked.Key {
		return callBook{} // the id is used again
	}
	return *c
}

// tellHolder tells of the call that has an idempotency key.
func (b *book) tellHolder(t *telling, c callBook) {
	d, ok := c.received.data.(domain.CallReceived)
	if !ok {
		return
	}
	end := "it had not ended"
	switch x := c.ended.data.(type) {
	case domain.CallSettled:
		end = "it had ended as " + string(x.Status)
	case domain.CallRefused:
		end = "it had been refused with " + string(x.Code)
	}
	t.say("key_holder", []note{c.received, c.ended}, Facts{"call": d.CallKey(), "tool": d.Tool, "time": when(c.received.time)},
		"The key was taken at %s by call %s of the tool %s; %s.", when(c.received.time), word(d.CallKey()), word(d.Tool), end)
}

// joins finds who had the outcome of the call besides, also long after its end.
func (n *narrator) joins(ctx context.Context, src replay.Source) error {
	if n.asked.Key == "" {
		return nil
	}
	return columns(ctx, src, n.begun.Seq, func(r replay.Record) error {
		if r.Type != (domain.CallJoined{}).Kind() {
			return nil
		}
		e, err := opened(r)
		if d, ok := e.Data.(domain.CallJoined); ok && err == nil && d.Received == n.begun.Seq {
			n.joiners = append(n.joiners, noteOf(e))
		}
		return err
	})
}

// tellJoiners says who had the outcome of the call besides.
func (n *narrator) tellJoiners() {
	if len(n.joiners) == 0 {
		return
	}
	const most = 20
	var keys []string
	for _, x := range n.joiners {
		d, _ := x.data.(domain.CallJoined)
		keys = append(keys, d.CallKey())
	}
	n.told.section = sectionAfter
	n.told.say("joined_by", n.joiners[:min(len(n.joiners), most)], Facts{"count": len(keys), "submissions": keys[:min(len(keys), most)]},
		"Under its idempotency key %s had its outcome, and led to no run: %s.", counted(len(keys), "other submission", "other submissions"), some(words(keys), most))
}
