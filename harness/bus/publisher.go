package bus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Event is one event of the log as it is copied.
type Event struct {
	Seq     int64
	Subject string
	Bytes   []byte // exactly as stored; not changed or kept
}

// Source is the log as a follower sees it: committed events only, dense from 1.
type Source interface {
	// Read returns at most max events after the given one, in order; none if
	// there are none yet.
	Read(ctx context.Context, after int64, max int) ([]Event, error)

	// Wait returns when there is an event after the given one.
	Wait(ctx context.Context, after int64) error
}

// ErrForked says that the stream holds something else than the log does at the
// same sequence. Test for it with errors.Is; the *ForkError has the sequence.
var ErrForked = errors.New("stream and log have forked")

// ForkError is a fork and where it was found.
type ForkError struct {
	Stream string
	Seq    int64 // the first sequence found to differ
	Reason string
}

func (e *ForkError) Error() string {
	return fmt.Sprintf("stream %s and the log have forked at %d: %s; publishing has stopped, the log has not", e.Stream, e.Seq, e.Reason)
}

// Is makes a ForkError an ErrForked.
func (e *ForkError) Is(target error) bool { return target == ErrForked }

// ErrUnpublishable says that an event of the source can never be published:
// a fault of the program and not of the world.
var ErrUnpublishable = errors.New("event cannot be published")

// ErrPublisherStopped says that a publisher is no longer running.
var ErrPublisherStopped = errors.New("publisher is not running")

// PublisherConfig describes the copy of one log.
type PublisherConfig struct {
	Prefix string
	LogID  string

	MaxBytes int64 // of the stream when it is made; 0 leaves it to the server's limit
	Replicas int   // of the stream when it is made, 1 if 0

	Batch   int           // events on their way at once, 512 if 0, at most 4096
	AckWait time.Duration // patience with one publication's acknowledgement, 5 s if 0

	MinBackoff time.Duration // first pause after a failure, 50 ms if 0
	MaxBackoff time.Duration // longest pause, 5 s if 0

	Logger *slog.Logger // slog.Default if nil
}

// Publisher copies a log to its JetStream stream. The stream's own last
// message is its only position. Its methods may be called at once; Run only
// once.
type Publisher struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	cfg PublisherConfig
	src Source

	mu       sync.Mutex
	position int64
	known    bool // position was read from the stream
	err      error
	ended    bool
	changed  chan struct{} // closed and replaced whenever the above change
}

// NewPublisher makes a publisher on the connection of the service. It does not
// speak to the server yet.
func NewPublisher(nc *nats.Conn, cfg PublisherConfig, src Source) (*Publisher, error) {
	if err := checkSpace(cfg.Prefix, cfg.LogID); err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	cfg.Batch = min(cmp.Or(cfg.Batch, 512), maxBatch)
	cfg.AckWait = cmp.Or(cfg.AckWait, 5*time.Second)
	cfg.MinBackoff = cmp.Or(cfg.MinBackoff, 50*time.Millisecond)
	cfg.MaxBackoff = max(cfg.MinBackoff, cmp.Or(cfg.MaxBackoff, 5*time.Second))
	cfg.Logger = logger(cfg.Logger)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(cfg.AckWait))
	if err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	return &Publisher{nc: nc, js: js, cfg: cfg, src: src, changed: make(chan struct{})}, nil
}

// Run copies until ctx ends, which is not an error, or until there is no point
// in going on: the stream and the log have forked (ErrForked), the stream's
// settings are wrong (*SettingsError), or an event can never be published
// (ErrUnpublishable). Whatever else fails is tried again with growing pauses,
// beginning with a look at what the stream has.
func (p *Publisher) Run(ctx context.Context) error {
	pause := p.cfg.MinBackoff
	for {
		before := p.Position()
		err := p.follow(ctx)
		if ctx.Err() != nil {
			p.end(nil)
			return nil //nolint:nilerr // the end of the context is the good end; what failed because of it says nothing
		}
		if final(err) {
			p.end(err)
			return err
		}
		if p.Position() > before {
			pause = p.cfg.MinBackoff
		}
		p.fail(err, pause)
		rest(ctx, pause)
		pause = min(2*pause, p.cfg.MaxBackoff)
	}
}

func final(err error) bool {
	var settings *SettingsError
	return errors.Is(err, ErrForked) || errors.Is(err, ErrUnpublishable) || errors.As(err, &settings)
}

func rest(ctx context.Context, pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// follow opens the stream, agrees with it on a position and copies from there
// until something fails.
func (p *Publisher) follow(ctx context.Context) error {
	stream, err := p.openStream(ctx)
	if err != nil {
		return err
	}
	position, err := p.agree(ctx, stream)
	if err != nil {
		return err
	}
	p.advance(position)
	out, err := p.newOutlet()
	if err != nil {
		return err
	}
	defer out.close()
	for {
		if err := p.copyNext(ctx, out); err != nil {
			return err
		}
	}
}

func (p *Publisher) copyNext(ctx context.Context, out *outlet) error {
	after := p.Position()
	if err := p.src.Wait(ctx, after); err != nil {
		return fmt.Errorf("wait for the log: %w", err)
	}
	events, err := p.src.Read(ctx, after, p.cfg.Batch)
	if err != nil {
		return fmt.Errorf("read the log after %d: %w", after, err)
	}
	if len(events) == 0 {
		return nil
	}
	if err := p.check(events, after); err != nil {
		return err
	}
	if err := out.publish(ctx, events); err != nil {
		return fmt.Errorf("publish events %d to %d: %w", after+1, after+int64(len(events)), err)
	}
	p.advance(after + int64(len(events)))
	return nil
}

// check refuses what the server would refuse or, worse, put elsewhere.
func (p *Publisher) check(events []Event, after int64) error {
	root := eventRoot(p.cfg.Prefix, p.cfg.LogID)
	for i, e := range events {
		switch {
		case e.Seq != after+1+int64(i):
			return fmt.Errorf("%w: %d follows %d", ErrUnpublishable, e.Seq, after+int64(i))
		case !strings.HasPrefix(e.Subject, root) || strings.ContainsAny(e.Subject, "*> \t\r\n"):
			return fmt.Errorf("%w: event %d has the subject %q", ErrUnpublishable, e.Seq, e.Subject)
		case len(e.Bytes) > MaxMessage-headerRoom:
			return fmt.Errorf("%w: event %d has %d bytes", ErrUnpublishable, e.Seq, len(e.Bytes))
		}
	}
	return nil
}

// agree compares what the stream has with the log and returns the position to
// go on from. After a lost acknowledgement that is every message that may have
// arrived; at the start it is the last one.
func (p *Publisher) agree(ctx context.Context, stream jetstream.Stream) (int64, error) {
	state := stream.CachedInfo().State
	if state.LastSeq > math.MaxInt64 {
		return 0, fmt.Errorf("stream %s: last sequence %d", p.stream(), state.LastSeq)
	}
	last := int64(state.LastSeq)
	if last > 0 && (state.FirstSeq != 1 || state.Msgs != state.LastSeq) {
		return 0, p.forked(1, fmt.Sprintf("the stream holds %d messages from %d to %d, so some are missing", state.Msgs, state.FirstSeq, last))
	}
	from := last
	if position, known := p.where(); known && position < last && last-position <= maxBatch {
		from = position + 1
	}
	for seq := max(from, 1); seq <= last; seq++ {
		same, err := p.same(ctx, stream, seq)
		if err != nil {
			return 0, err
		}
		if !same {
			return 0, p.findFork(ctx, stream, seq)
		}
	}
	return last, nil
}

// same reports whether the stream and the log have the same bytes at seq. A
// log that ends before seq does not.
func (p *Publisher) same(ctx context.Context, stream jetstream.Stream, seq int64) (bool, error) {
	msg, err := stream.GetMsg(ctx, uint64(seq))
	if err != nil {
		return false, fmt.Errorf("stream %s: read %d: %w", p.stream(), seq, err)
	}
	events, err := p.src.Read(ctx, seq-1, 1)
	if err != nil {
		return false, fmt.Errorf("read the log at %d: %w", seq, err)
	}
	return len(events) == 1 && events[0].Seq == seq && bytes.Equal(events[0].Bytes, msg.Data), nil
}

// findFork looks for where the difference at seq began. It halves, taking it
// that histories which part do not meet again.
func (p *Publisher) findFork(ctx context.Context, stream jetstream.Stream, seq int64) error {
	var fault error
	first := 1 + sort.Search(int(seq-1), func(i int) bool {
		same, err := p.same(ctx, stream, int64(i)+1)
		fault = errors.Join(fault, err)
		return err != nil || !same
	})
	if fault != nil {
		return fault
	}
	return p.forked(int64(first), fmt.Sprintf("what the stream holds at %d is not what the log holds there", first))
}

func (p *Publisher) forked(seq int64, reason string) error {
	return &ForkError{Stream: p.stream(), Seq: seq, Reason: reason}
}

func (p *Publisher) stream() string { return StreamName(p.cfg.LogID) }
