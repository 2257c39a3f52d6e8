package stream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
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
// Each event is a publication of its own, and all of a batch but its first are
// on their way at once. Atomic batches were measured beside this and were
// slower at every size.
type outlet struct {
	nc    *nats.Conn
	wait  time.Duration
	inbox string
	acks  *nats.Subscription
	mark  func(point string)
	log   string

	// chained says that each event also expects the id of the one before it. A
	// stream with replicas cannot have that: a server that is catching up does not
	// learn the ids, takes the next event for a fault, and is lost to the cluster.
	chained bool
}

// The headers of an event, for who reads them without opening the body.
const (
	HeaderSeq   = "Waybill-Seq"  // in the log; the same as Nats-Msg-Id
	HeaderType  = "Waybill-Type" // noun.participle
	HeaderLog   = "Waybill-Log"  // the log's id
	contentType = "application/cloudevents+json"
)

func (p *Publisher) newOutlet() (*outlet, error) {
	inbox := p.nc.NewInbox()
	acks, err := p.nc.SubscribeSync(inbox + ".*")
	if err != nil {
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	return &outlet{nc: p.nc, wait: p.cfg.AckWait, inbox: inbox, acks: acks, mark: p.mark, log: p.cfg.LogID, chained: p.cfg.Replicas <= 1}, nil
}

func (o *outlet) close() { _ = o.acks.Unsubscribe() } // fails only if the connection is gone

// publish returns when the server has acknowledged every event. After an error
// any prefix of them may be in the stream.
//
// The expected sequence alone does not keep events off a fork: if somebody
// else's message took the place of one, that one is refused, and the next is
// welcome. So the rest is sent once the first has its place, and each of the
// rest also expects the id of the one before it. Where it cannot, the rest of a
// batch may end up behind somebody else's message that comes in the middle of it;
// the one that was refused is noticed all the same, and the fork with it.
func (o *outlet) publish(ctx context.Context, events []Event) error {
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	if err := o.send(message(o.log, events[0]), events[0].Seq); err != nil {
		return err
	}
	o.mark("sent batch")
	if err := o.collect(ctx, 1); err != nil {
		return err
	}
	for _, e := range events[1:] {
		msg := message(o.log, e)
		if o.chained {
			msg.Header[jetstream.ExpectedLastMsgIDHeader] = []string{messageID(e.Seq - 1)}
		}
		if err := o.send(msg, e.Seq); err != nil {
			return err
		}
	}
	return o.collect(ctx, len(events)-1)
}

func (o *outlet) send(msg *nats.Msg, seq int64) error {
	msg.Reply = o.inbox + "." + strconv.FormatInt(seq, 10)
	return o.nc.PublishMsg(msg)
}

// collect waits for so many acknowledgements.
func (o *outlet) collect(ctx context.Context, count int) error {
	for range count {
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
func message(log string, e Event) *nats.Msg {
	return &nats.Msg{
		Subject: e.Subject,
		Data:    e.Bytes,
		Header: nats.Header{
			jetstream.MsgIDHeader:           []string{messageID(e.Seq)},
			jetstream.ExpectedLastSeqHeader: []string{messageID(e.Seq - 1)},
			HeaderSeq:                       []string{messageID(e.Seq)},
			HeaderType:                      []string{e.Type},
			HeaderLog:                       []string{log},
			"Content-Type":                  []string{contentType},
		},
	}
}

// messageID is the id of an event, which is its sequence.
func messageID(seq int64) string { return strconv.FormatInt(seq, 10) }

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
