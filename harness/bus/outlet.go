package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

const (
	// From this many events on an atomic batch costs less than an
	// acknowledgement for each event.
	atomicFrom = 64

	// The most the server takes in one atomic batch.
	maxBatch = 1000

	// Room left for the headers of an event.
	headerRoom = 1024
)

// outlet publishes events in order on one subscription for acknowledgements.
// It lives from one look at the stream to the next failure, so that a late
// acknowledgement cannot be taken for another.
type outlet struct {
	p      *Publisher
	atomic bool
	inbox  string
	acks   *nats.Subscription
}

func (p *Publisher) newOutlet(atomic bool) (*outlet, error) {
	inbox := p.nc.NewInbox()
	acks, err := p.nc.SubscribeSync(inbox + ".*")
	if err != nil {
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	return &outlet{p: p, atomic: atomic, inbox: inbox, acks: acks}, nil
}

func (o *outlet) close() { _ = o.acks.Unsubscribe() } // fails only if the connection is gone

// publish returns when the server has acknowledged every event. After an error
// any prefix of them may be in the stream.
func (o *outlet) publish(ctx context.Context, events []Event) error {
	ctx, cancel := context.WithTimeout(ctx, o.p.cfg.AckWait)
	defer cancel()
	if o.atomic && len(events) >= atomicFrom {
		return o.batch(ctx, events)
	}
	return o.pipeline(ctx, events)
}

// message is the event with the id by which the server drops a second copy and
// the sequence after which alone it may stand.
func message(e Event) *nats.Msg {
	return &nats.Msg{
		Subject: e.Subject,
		Data:    e.Bytes,
		Header:  nats.Header{jetstream.MsgIDHeader: []string{strconv.FormatInt(e.Seq, 10)}},
	}
}

func after(e Event) string { return strconv.FormatInt(e.Seq-1, 10) }

// pipeline sends every event and then collects the acknowledgements.
func (o *outlet) pipeline(ctx context.Context, events []Event) error {
	for _, e := range events {
		msg := message(e)
		msg.Header.Set(jetstream.ExpectedLastSeqHeader, after(e))
		msg.Reply = o.inbox + "." + strconv.FormatInt(e.Seq, 10)
		if err := o.p.nc.PublishMsg(msg); err != nil {
			return err
		}
	}
	for range events {
		msg, err := o.acks.NextMsgWithContext(ctx)
		if err != nil {
			return fmt.Errorf("no acknowledgement: %w", err)
		}
		if err := o.acknowledged(msg); err != nil {
			return err
		}
	}
	return nil
}

// acknowledged reports whether the event that the reply subject names got its
// own sequence.
func (o *outlet) acknowledged(msg *nats.Msg) error {
	if msg.Header.Get("Status") == "503" {
		return nats.ErrNoResponders
	}
	var ack struct {
		Seq       uint64              `json:"seq"`
		Duplicate bool                `json:"duplicate"`
		Error     *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &ack); err != nil {
		return fmt.Errorf("%w: %w", jetstream.ErrInvalidJSAck, err)
	}
	if ack.Error != nil {
		return ack.Error
	}
	want := strings.TrimPrefix(msg.Subject, o.inbox+".")
	if got := strconv.FormatUint(ack.Seq, 10); got != want {
		return fmt.Errorf("event %s became %s in the stream", want, got)
	}
	if ack.Duplicate {
		// Only the id was compared; agree compares the bytes.
		return fmt.Errorf("event %s was in the stream before", want)
	}
	return nil
}

// batch publishes all events or none. The expected sequence on the first is
// the guard for all: the rest follow it without a gap.
func (o *outlet) batch(ctx context.Context, events []Event) error {
	b, err := jetstreamext.NewBatchPublisher(o.p.js, jetstreamext.BatchFlowControl{})
	if err != nil {
		return err
	}
	first, last := events[0], events[len(events)-1]
	for _, e := range events[:len(events)-1] {
		msg := message(e)
		if e.Seq == first.Seq {
			msg.Header.Set(jetstream.ExpectedLastSeqHeader, after(e))
		}
		if err := b.AddMsg(msg); err != nil {
			return err
		}
	}
	ack, err := b.CommitMsg(ctx, message(last))
	if err != nil {
		return err
	}
	if ack.Sequence != uint64(last.Seq) {
		return fmt.Errorf("event %d became %d in the stream", last.Seq, ack.Sequence)
	}
	return nil
}
