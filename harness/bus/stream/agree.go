package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrForked says that the stream holds something else than the log does at the
// same sequence. Test for it with errors.Is; the *ForkError has the sequence.
var ErrForked = errors.New("stream and log have forked")

// ForkError is a fork and where it was found.
type ForkError struct {
	Stream string
	Seq    int64  // the first sequence found to differ
	Log    string // SHA-256 of the event of the log there, in hex; "" for none
	Copy   string // SHA-256 of the message of the stream there, in hex; "" for none
	Reason string
}

func (e *ForkError) Error() string {
	return fmt.Sprintf("stream %s and the log have forked at %d: %s; publishing has stopped, the log has not", e.Stream, e.Seq, e.Reason)
}

// Is makes a ForkError an ErrForked.
func (e *ForkError) Is(target error) bool { return target == ErrForked }

// agree compares what the stream has with the log and returns the position to
// go on from. After a lost acknowledgement that is every message that may have
// arrived; at the start it is the last one. A head that has aged out is no fault:
// what is not there cannot differ.
func (p *Publisher) agree(ctx context.Context, stream jetstream.Stream) (int64, error) {
	state := stream.CachedInfo().State
	if state.LastSeq > math.MaxInt64 {
		return 0, fmt.Errorf("stream %s: last sequence %d", p.stream(), state.LastSeq)
	}
	first, last := int64(state.FirstSeq), int64(state.LastSeq)
	if last > 0 && state.Msgs != state.LastSeq+1-state.FirstSeq {
		return 0, p.findHole(ctx, stream)
	}
	from := last
	if position, known := p.where(); known && position < last && last-position <= maxBatch {
		from = position + 1
	}
	for seq := max(from, first, 1); seq <= last; seq++ {
		d, err := p.differ(ctx, stream, seq)
		if err != nil {
			return 0, err
		}
		if d != nil {
			return 0, p.findFork(ctx, stream, max(first, 1), d)
		}
	}
	if first > last && last > 0 { // all has aged out
		if err := p.reaches(ctx, last); err != nil {
			return 0, err
		}
	}
	p.begin(max(first, 1))
	return last, nil
}

// reaches fails if the log ends before seq, up to which the stream has been.
func (p *Publisher) reaches(ctx context.Context, seq int64) error {
	e, err := p.eventAt(ctx, seq)
	if err == nil && e == nil {
		return &ForkError{Stream: p.stream(), Seq: seq, Reason: "the stream has been up to there, and the log ends before it"}
	}
	return err
}

// eventAt returns the bytes that the log has at seq, nil for none.
func (p *Publisher) eventAt(ctx context.Context, seq int64) ([]byte, error) {
	events, err := p.src.Read(ctx, seq-1, 1)
	if err != nil {
		return nil, fmt.Errorf("read the log at %d: %w", seq, err)
	}
	if len(events) == 0 || events[0].Seq != seq {
		return nil, nil
	}
	return events[0].Bytes, nil
}

// differ reports how the stream and the log differ at seq, nil if they have the
// same bytes there.
func (p *Publisher) differ(ctx context.Context, stream jetstream.Stream, seq int64) (*ForkError, error) {
	msg, err := stream.GetMsg(ctx, uint64(seq))
	if err != nil {
		return nil, fmt.Errorf("stream %s: read %d: %w", p.stream(), seq, explain(err, eventStream(p.cfg)))
	}
	event, err := p.eventAt(ctx, seq)
	if err != nil || event != nil && bytes.Equal(event, msg.Data) {
		return nil, err
	}
	return &ForkError{Stream: p.stream(), Seq: seq, Log: digest(event), Copy: digest(msg.Data),
		Reason: fmt.Sprintf("what the stream holds at %d is not what the log holds there", seq)}, nil
}

// digest is in hex; "" for what is not there.
func digest(b []byte) string {
	if b == nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// findFork looks for where a difference began, at or after first. It halves,
// taking it that histories which part do not meet again.
func (p *Publisher) findFork(ctx context.Context, stream jetstream.Stream, first int64, found *ForkError) error {
	var fault error
	sort.Search(int(found.Seq-first), func(i int) bool {
		d, err := p.differ(ctx, stream, first+int64(i))
		fault = errors.Join(fault, err)
		if d != nil && d.Seq < found.Seq {
			found = d
		}
		return err != nil || d != nil
	})
	if fault != nil {
		return fault
	}
	return found
}

// findHole names the first message that is missing inside the stream.
func (p *Publisher) findHole(ctx context.Context, stream jetstream.Stream) error {
	info, err := stream.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return fmt.Errorf("stream %s: %w", p.stream(), err)
	}
	if len(info.State.Deleted) == 0 {
		return fmt.Errorf("stream %s: %d messages from %d to %d", p.stream(), info.State.Msgs, info.State.FirstSeq, info.State.LastSeq)
	}
	seq := int64(info.State.Deleted[0])
	event, err := p.eventAt(ctx, seq)
	if err != nil {
		return err
	}
	return &ForkError{Stream: p.stream(), Seq: seq, Log: digest(event), Reason: "the message that was there is gone"}
}
