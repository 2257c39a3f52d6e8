package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// The most events that are on their way at once; as many are compared
	// after a lost acknowledgement.
	maxBatch = 4096

	// Room left for the headers of an event.
	headerRoom = 1024
)

// outlet publishes events in order on one subscription for acknowledgements.
// It lives from one look at the stream to the next failure, so that a late
// acknowledgement cannot be taken for another.
//
// Each event is a publication of its own, guarded by the sequence it must
// follow, and all of a batch are on their way at once. Atomic batches were
// measured beside this and were slower at every size.
type outlet struct {
	nc    *nats.Conn
	wait  time.Duration
	inbox string
	acks  *nats.Subscription
}

func (p *Publisher) newOutlet() (*outlet, error) {
	inbox := p.nc.NewInbox()
	acks, err := p.nc.SubscribeSync(inbox + ".*")
	if err != nil {
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	return &outlet{nc: p.nc, wait: p.cfg.AckWait, inbox: inbox, acks: acks}, nil
}

func (o *outlet) close() { _ = o.acks.Unsubscribe() } // fails only if the connection is gone

// publish returns when the server has acknowledged every event. After an error
// any prefix of them may be in the stream, and nothing else of them: what
// follows a gap is refused.
func (o *outlet) publish(ctx context.Context, events []Event) error {
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	for _, e := range events {
		msg := message(e)
		msg.Reply = o.inbox + "." + strconv.FormatInt(e.Seq, 10)
		if err := o.nc.PublishMsg(msg); err != nil {
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

// message is the event with the id by which the server drops a second copy and
// the sequence after which alone it may stand.
func message(e Event) *nats.Msg {
	return &nats.Msg{
		Subject: e.Subject,
		Data:    e.Bytes,
		Header: nats.Header{
			jetstream.MsgIDHeader:           []string{strconv.FormatInt(e.Seq, 10)},
			jetstream.ExpectedLastSeqHeader: []string{strconv.FormatInt(e.Seq-1, 10)},
		},
	}
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
