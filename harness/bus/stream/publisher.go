package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
)

// Event is one event of the log as it is copied.
type Event struct {
	Seq     int64
	Type    string // noun.participle
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

// ErrUnpublishable says that an event of the source can never be published:
// a fault of the program and not of the world.
var ErrUnpublishable = errors.New("event cannot be published")

// ErrPublisherStopped says that a publisher is no longer running.
var ErrPublisherStopped = errors.New("publisher is not running")

// PublisherConfig describes the copy of one log.
type PublisherConfig struct {
	Prefix string
	LogID  string

	MaxBytes int64         // of the stream, which then takes no more; 0 leaves it to the server's limit
	MaxAge   time.Duration // after which messages leave the stream; 0 for never
	Replicas int           // of the stream, 1 if 0

	// Since is the head of the log when this life began: until the stream was
	// reached, Lag counts from there.
	Since int64

	Batch   int           // events on their way at once, 512 if 0, at most 4096
	AckWait time.Duration // patience with one batch's acknowledgement; if 0, 5 s, or 2 s where the stream has replicas

	Look time.Duration // how often to look at the stream while there is nothing to publish, 2 s if 0

	MinBackoff time.Duration // first pause after a failure, 50 ms if 0
	MaxBackoff time.Duration // longest pause, 5 s if 0

	Logger *slog.Logger // slog.Default if nil

	// Mark is told when the first event of a batch was sent, as "sent batch", and
	// when all of it was acknowledged, as "acknowledged batch", by tests that end
	// the process there. Nil otherwise.
	Mark func(point string)
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
	known    bool  // position was read from the stream
	first    int64 // the oldest message it holds, or would hold
	err      error
	ended    bool
	changed  chan struct{} // closed and replaced whenever the above change
}

// NewPublisher makes a publisher on the connection of the service. It does not
// speak to the server yet.
func NewPublisher(nc *nats.Conn, cfg PublisherConfig, src Source) (*Publisher, error) {
	if err := bus.CheckSpace(cfg.Prefix, cfg.LogID); err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	cfg.Batch = min(cmp.Or(cfg.Batch, 512), maxBatch)
	cfg.AckWait = cmp.Or(cfg.AckWait, ackWait(cfg.Replicas))
	cfg.Look = cmp.Or(cfg.Look, 2*time.Second)
	cfg.MinBackoff = cmp.Or(cfg.MinBackoff, 50*time.Millisecond)
	cfg.MaxBackoff = max(cfg.MinBackoff, cmp.Or(cfg.MaxBackoff, 5*time.Second))
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(cfg.AckWait))
	if err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	return &Publisher{nc: nc, js: js, cfg: cfg, src: src, changed: make(chan struct{})}, nil
}

// ackWait is shorter for a cluster: when the server that leads the stream is lost
// nothing says so, and what was on its way is never acknowledged.
func ackWait(replicas int) time.Duration {
	if replicas > 1 {
		return 2 * time.Second
	}
	return 5 * time.Second
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
	stream, err := p.look(ctx)
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
		idle, err := p.await(ctx)
		if err == nil && idle {
			err = p.unchanged(ctx, stream.CachedInfo().Created)
		}
		if err == nil && !idle {
			err = p.copyNext(ctx, out)
		}
		if err != nil {
			return err
		}
	}
}

// await waits for the next event, and reports idle if there is none for a while.
func (p *Publisher) await(ctx context.Context) (idle bool, err error) {
	once, cancel := context.WithTimeout(ctx, p.cfg.Look)
	defer cancel()
	err = p.src.Wait(once, p.Position())
	switch {
	case err == nil:
		return false, nil
	case once.Err() != nil && ctx.Err() == nil:
		return true, nil
	}
	return false, fmt.Errorf("wait for the log: %w", err)
}

// unchanged fails if the stream is gone, is another than the one that was made then,
// or ends elsewhere than where copying has come to. Nothing else would say so while
// there is nothing to publish.
func (p *Publisher) unchanged(ctx context.Context, made time.Time) error {
	s, err := p.insist(ctx, func(ctx context.Context) (jetstream.Stream, error) { return p.js.Stream(ctx, p.stream()) })
	if err != nil {
		return fmt.Errorf("stream %s: %w", p.stream(), explain(err, eventStream(p.cfg)))
	}
	switch info := s.CachedInfo(); {
	case !info.Created.Equal(made):
		return fmt.Errorf("stream %s was removed and made anew", p.stream())
	case info.State.LastSeq != uint64(p.Position()):
		return fmt.Errorf("stream %s ends at %d, and was published up to %d", p.stream(), info.State.LastSeq, p.Position())
	}
	return nil
}

// Made is when the stream was made, by which one is known from another that was made
// in its place.
func (p *Publisher) Made(ctx context.Context) (time.Time, error) {
	s, err := p.js.Stream(ctx, p.stream())
	if err != nil {
		return time.Time{}, fmt.Errorf("stream %s: %w", p.stream(), explain(err, eventStream(p.cfg)))
	}
	return s.CachedInfo().Created, nil
}

// look opens the stream.
func (p *Publisher) look(ctx context.Context) (jetstream.Stream, error) {
	return p.insist(ctx, func(ctx context.Context) (jetstream.Stream, error) { return open(ctx, p.js, eventStream(p.cfg)) })
}

// insist asks again soon while nobody answers, and waits longer each time: between
// two leaders of a cluster a question can get lost.
func (p *Publisher) insist(ctx context.Context, ask func(context.Context) (jetstream.Stream, error)) (jetstream.Stream, error) {
	for patience := p.cfg.AckWait / 4; ; patience = min(2*patience, p.cfg.AckWait) {
		once, cancel := context.WithTimeout(ctx, patience)
		s, err := ask(once)
		cancel()
		if patience == p.cfg.AckWait || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return s, err
		}
	}
}

func (p *Publisher) copyNext(ctx context.Context, out *outlet) error {
	after := p.Position()
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
		return fmt.Errorf("publish events %d to %d: %w", after+1, after+int64(len(events)), explain(err, eventStream(p.cfg)))
	}
	p.mark("acknowledged batch")
	p.advance(after + int64(len(events)))
	return nil
}

func (p *Publisher) mark(point string) {
	if p.cfg.Mark != nil {
		p.cfg.Mark(point)
	}
}

// check refuses what the server would refuse or, worse, put elsewhere.
func (p *Publisher) check(events []Event, after int64) error {
	root := bus.EventRoot(p.cfg.Prefix, p.cfg.LogID)
	for i, e := range events {
		switch {
		case e.Seq != after+1+int64(i):
			return fmt.Errorf("%w: %d follows %d", ErrUnpublishable, e.Seq, after+int64(i))
		case !strings.HasPrefix(e.Subject, root) || strings.ContainsAny(e.Subject, "*> \t\r\n"):
			return fmt.Errorf("%w: event %d has the subject %q", ErrUnpublishable, e.Seq, e.Subject)
		case len(e.Bytes) > bus.MaxMessage-headerRoom:
			return fmt.Errorf("%w: event %d has %d bytes", ErrUnpublishable, e.Seq, len(e.Bytes))
		}
	}
	return nil
}

func (p *Publisher) stream() string { return bus.StreamName(p.cfg.LogID) }
