package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
)

// ErrNoStream says that the server has no copy of the log.
var ErrNoStream = errors.New("there is no such stream")

// How often, and how long each time, a reader asks JetStream for something.
const (
	askTries    = 5
	askPatience = 3 * time.Second
)

// readAhead is how many messages may be on their way to a reader.
const readAhead = 1024

// Extent says what a stream held when reading began. Its JSON form is a contract.
type Extent struct {
	Stream   string `json:"stream"`
	First    int64  `json:"first"`    // sequence of the oldest message; more than last if there is none
	Last     int64  `json:"last"`     // sequence of the newest
	Messages int64  `json:"messages"` // how many there are
}

// Read calls each with every message that the copy of a log holds when Read
// begins, in order, until there are no more, each fails or ctx ends. What each gets
// is the event's place in the stream and the exact bytes there, good or bad. nc
// must be a connection of the service.
func Read(ctx context.Context, nc *nats.Conn, logID string, each func(seq int64, b []byte) error) (Extent, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return Extent{}, fmt.Errorf("read the stream: %w", err)
	}
	x := Extent{Stream: bus.StreamName(logID)}
	s, err := patiently(ctx, func(ctx context.Context) (jetstream.Stream, error) { return js.Stream(ctx, x.Stream) })
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return x, fmt.Errorf("stream %s: %w: the service makes it when it publishes the first event", x.Stream, ErrNoStream)
	}
	if err != nil {
		return x, fmt.Errorf("stream %s: %w", x.Stream, err)
	}
	state := s.CachedInfo().State
	x.First, x.Last, x.Messages = int64(state.FirstSeq), int64(state.LastSeq), int64(state.Msgs)
	if state.Msgs == 0 {
		return x, nil
	}
	return x, x.read(ctx, s, each)
}

// patiently asks again while nobody answers: in a cluster that elects a leader, or
// at a server that has just joined one, a question can get lost.
func patiently[T any](ctx context.Context, ask func(context.Context) (T, error)) (v T, err error) {
	for range askTries {
		once, cancel := context.WithTimeout(ctx, askPatience)
		v, err = ask(once)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return v, explain(err, jetstream.StreamConfig{})
}

func (x Extent) read(ctx context.Context, s jetstream.Stream, each func(seq int64, b []byte) error) error {
	consumer, err := patiently(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	})
	if err != nil {
		return fmt.Errorf("stream %s: %w", x.Stream, err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(readAhead))
	if err != nil {
		return fmt.Errorf("stream %s: %w", x.Stream, err)
	}
	defer messages.Stop()
	for last := int64(0); last < x.Last; {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("stream %s: read after %d: %w", x.Stream, last, err)
		}
		at, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("stream %s: read after %d: %w", x.Stream, last, err)
		}
		last = int64(at.Sequence.Stream)
		if last > x.Last {
			return nil // the newest has aged out meanwhile
		}
		if err := each(last, msg.Data()); err != nil {
			return err
		}
		if at.NumPending == 0 {
			return nil
		}
	}
	return nil
}
