package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"waybill/domain"
	"waybill/store"
	"waybill/store/payloads"
)

// Peers is an Actor whose connections can be ended.
type Peers interface {
	Actor
	// Flush reports what has been counted and not yet reported.
	Flush()
	// Close ends every connection and its processes and waits for them.
	Close() error
}

// EngineConfig is what an engine is made of.
type EngineConfig struct {
	Log     *store.Log
	Config  domain.Config
	Digest  func([]byte) domain.Payload
	Redact  func([]byte) []byte // secrets by value; identity if nil
	Version string
	Logger  *slog.Logger
	Clock   Clock // SystemClock if zero

	Payloads KeptPayloads // where the bytes of calls are kept and erased; nil for nowhere. The engine never closes it

	HostInflight int                         // as in Config
	HostRate     float64                     // as in Config
	Progress     func(domain.CallID, []byte) // as in Config
	Mark         func(point string)          // as in Config

	// NewPeers makes the actor; report hands observations to the loop.
	NewPeers func(report func(data domain.Data, evidence, payload []byte)) (Peers, error)
}

// Engine is a running loop with its peers and its followers: all of the
// service but NATS. It owns every goroutine it starts and waits for them.
type Engine struct {
	Loop *Loop
	Feed *Feed

	log    *store.Log
	config domain.Config
	peers  Peers
	logger *slog.Logger

	payloads KeptPayloads // nil for none
	loopDone chan struct{}
	loopErr  error
	tail     Tail

	ctx    context.Context // of followers
	cancel context.CancelFunc
	wait   sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

// logReader joins the writer and the readers of one log.
type logReader struct {
	*store.Log
	reader *store.Reader
}

func (l logReader) ByCall(ctx context.Context, call string) ([]store.Record, error) {
	return l.reader.ByCall(ctx, call)
}

func (l logReader) Read(ctx context.Context, after int64, max int) ([]store.Record, error) {
	return l.reader.Read(ctx, after, max)
}

// StartEngine folds the log, starts the loop and records service.started and
// config.loaded; the peers' start follows from those.
func StartEngine(ctx context.Context, cfg EngineConfig) (*Engine, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Clock.Wall == nil {
		cfg.Clock = SystemClock()
	}
	config, err := domain.EncodeConfig(cfg.Config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	state := domain.NewState()
	diverged, err := FoldChecked(ctx, cfg.Log.Reader(), cfg.Log.ID(), state, cfg.Log.Head().Size)
	if err != nil {
		return nil, err
	}
	if diverged != nil {
		cfg.Logger.Error("a decision in the log does not follow", "err", diverged)
	}
	if cfg.Payloads != nil {
		if err := Recover(ctx, cfg.Log.Reader(), cfg.Log.ID(), state.Head, cfg.Payloads); err != nil {
			return nil, err
		}
	}
	e := &Engine{Feed: NewFeed(state.Head), log: cfg.Log, config: cfg.Config, logger: cfg.Logger, loopDone: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	e.payloads = cfg.Payloads
	keep := slices.ContainsFunc(cfg.Config.Peers, func(p domain.PeerConfig) bool { return p.Keep })
	e.Loop = NewLoop(Config{Payloads: cfg.Payloads, Keep: keep, Log: logReader{cfg.Log, cfg.Log.Reader()}, State: state, Clock: cfg.Clock,
		Digest: cfg.Digest, Redact: cfg.Redact, Logger: cfg.Logger, OnCommit: e.Feed.Advance, Tail: &e.tail,
		HostInflight: cfg.HostInflight, HostRate: cfg.HostRate, Progress: cfg.Progress, Mark: cfg.Mark, ContextOf: cfg.Config.ContextOf})
	if e.peers, err = cfg.NewPeers(e.Loop.Report); err != nil {
		e.cancel()
		return nil, err
	}
	e.Loop.SetActor(e.peers)
	e.Loop.Report(domain.ServiceStarted{Version: cfg.Version, Rules: domain.RulesVersion}, nil, nil)
	e.Loop.Report(domain.ConfigLoaded{Config: domain.RefTo(config), Peers: len(cfg.Config.Peers)}, config, nil)
	go e.runLoop()
	if cfg.Payloads != nil {
		e.attendRetention(cfg)
	}
	return e, nil
}

// attendRetention looks after what is kept for a time.
func (e *Engine) attendRetention(cfg EngineConfig) {
	if retention := time.Duration(cfg.Config.Retention) * time.Millisecond; retention > 0 {
		e.Attend("retention", func(ctx context.Context) error {
			return e.retain(ctx, cfg.Payloads, cfg.Clock.Wall, retention, payloads.Whole)
		})
	}
	window := time.Duration(cfg.Config.IdempotencyWindow())
	e.Attend("idempotency window", func(ctx context.Context) error {
		return e.retain(ctx, cfg.Payloads, cfg.Clock.Wall, window, payloads.Outcomes)
	})
}

func (e *Engine) runLoop() {
	defer close(e.loopDone)
	e.loopErr = e.Loop.Run()
}

// Done is closed when the loop has ended, for whatever reason.
func (e *Engine) Done() <-chan struct{} { return e.loopDone }

// Err returns why the loop ended; nil for a stop. Only after Done.
func (e *Engine) Err() error { return e.loopErr }

// AttendFollower feeds a follower until the engine is closed.
func (e *Engine) AttendFollower(f Follower) {
	e.Attend(f.Name(), func(ctx context.Context) error { return e.follow(ctx, f) })
}

// Attend runs a follower until it returns or the engine is closed. An error that
// is not the end of its context is logged, and returned by Close.
func (e *Engine) Attend(name string, f func(ctx context.Context) error) {
	e.wait.Add(1)
	go func() {
		defer e.wait.Done()
		if err := f(e.ctx); err != nil && !errors.Is(err, context.Canceled) {
			e.logger.Error("a follower stopped", "follower", name, "err", err)
			e.mu.Lock()
			e.errs = append(e.errs, fmt.Errorf("follower %s: %w", name, err))
			e.mu.Unlock()
		}
	}()
}

// WaitSettled returns when every peer has listed, failed or been refused once.
// It returns the loop's error if that ends first.
func (e *Engine) WaitSettled(ctx context.Context) error {
	select {
	case <-e.Loop.Settled():
	case <-ctx.Done():
		return ctx.Err()
	case <-e.loopDone:
		return e.loopErr
	}
	var rejected bool
	if e.Loop.Ask(ctx, func(s *domain.State) { rejected = s.Rejected != nil }) == nil && !rejected {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	<-e.loopDone
	return e.loopErr
}

// Report returns a copy of what people may see.
func (e *Engine) Report(ctx context.Context) (domain.Report, error) {
	var r domain.Report
	err := e.Loop.Ask(ctx, func(s *domain.State) { r = s.Report(e.log.ID()) })
	return r, err
}

// ReportFor is Report for a host, which is told of no more than it may use.
func (e *Engine) ReportFor(ctx context.Context, host string) (domain.Report, error) {
	var r domain.Report
	err := e.Loop.Ask(ctx, func(s *domain.State) { r = s.ReportFor(host, e.log.ID()) })
	return r, err
}

// CallOnce hands a call to the intake and waits for its one reply. When ctx ends
// first the service is stopped, which settles the call, and that is the reply.
func (e *Engine) CallOnce(ctx context.Context, host string, request []byte, trace domain.Trace) (Reply, error) {
	got := make(chan Reply, 1)
	e.Loop.SubmitTraced(host, request, trace, func(r Reply) { got <- r })
	select {
	case r := <-got:
		return r, nil
	case <-ctx.Done():
		e.Loop.Report(domain.ServiceStopped{Reason: "interrupted"}, nil, nil)
	case <-e.loopDone:
	}
	// The loop answers every call before it ends.
	<-e.loopDone
	select {
	case r := <-got:
		return r, nil
	default:
		return Reply{}, fmt.Errorf("the call has no reply: %w", errors.Join(ctx.Err(), e.loopErr))
	}
}

// Drain waits until no call is under way, or ctx ends.
func (e *Engine) Drain(ctx context.Context) error {
	for {
		var n int
		var head int64
		if err := e.Loop.Ask(ctx, func(s *domain.State) { n, head = s.InFlight(), s.Head }); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if err := e.Feed.wait(ctx, head, e.loopDone); err != nil {
			return err
		}
	}
}

// Stop records service.stopped, which settles whatever is under way, waits for
// the loop and ends the peers. Followers go on until Close. It returns the
// loop's error.
func (e *Engine) Stop(reason string) error {
	e.peers.Flush()
	e.Loop.Report(domain.ServiceStopped{Reason: reason}, nil, nil)
	<-e.loopDone
	return errors.Join(e.loopErr, e.peers.Close())
}

// Close ends the followers and waits for them. The log stays the caller's.
func (e *Engine) Close() error {
	e.cancel()
	e.wait.Wait()
	e.notePayloads()
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.errs...)
}

// notePayloads spares the next start a walk through what this life recorded.
func (e *Engine) notePayloads() {
	select {
	case <-e.loopDone: // and with it every erasure
	default:
		return
	}
	if e.payloads == nil || e.loopErr != nil {
		return
	}
	if err := e.payloads.CaughtUp(context.Background(), e.Feed.Head()); err != nil {
		e.logger.Warn("the payloads were not noted to agree with the log; the next start sees to it", "err", err)
	}
}

// Follower keeps something that is derived from the log. Apply is called with
// the events after its position, in order.
type Follower interface {
	// Name is for messages.
	Name() string
	// Position is the seq of the last event it has seen. Safe beside Apply.
	Position() int64
	// Apply takes one or more events in order; what it kept is kept when it
	// returns nil.
	Apply(ctx context.Context, events []domain.Event) error
}

// follow feeds a follower until ctx ends. One that fails, as on a full disk, is
// behind and not lost: it is tried again, later each time. It returns the last
// failure that was not overcome.
func (e *Engine) follow(ctx context.Context, f Follower) error {
	var failed error
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err := e.Feed.Gather(ctx, f.Position(), followerLinger)
		if err != nil && failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil { // however far it is behind: the next start goes on
			return cmp.Or(failed, ctx.Err())
		}
		err = e.feedOnce(ctx, f)
		if e.tell(f.Name(), failed, err); err == nil {
			failed, pause = nil, firstRetry/2
			continue
		}
		failed = err
		rest(ctx, pause)
	}
}

// tell logs when a follower begins to fail, and when it goes on.
func (e *Engine) tell(name string, before, now error) {
	switch {
	case before == nil && now != nil:
		e.logger.Error("a follower fails; it is tried again, and the log goes on without it", "follower", name, "err", now)
	case before != nil && now == nil:
		e.logger.Info("a follower goes on", "follower", name)
	}
}

// rest waits, or less if ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Pauses between two tries of a follower that fails.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// followerLinger is how far a follower may be behind in time.
const followerLinger = 100 * time.Millisecond

// CatchUp feeds a follower up to the head, without an engine.
func CatchUp(ctx context.Context, src Source, logID string, f Follower) error {
	a := readAhead(ctx, src, logID, f.Position())
	defer a.stop()
	for b := range a.ordered {
		<-b.done
		if b.err != nil {
			return fmt.Errorf("%s: %w", f.Name(), b.err)
		}
		if err := f.Apply(ctx, b.events); err != nil {
			return err
		}
	}
	if a.err != nil {
		return fmt.Errorf("%s: %w", f.Name(), a.err)
	}
	return nil
}

func (e *Engine) feedOnce(ctx context.Context, f Follower) error {
	facts, err := e.next(ctx, f.Position())
	if err != nil {
		return fmt.Errorf("%s: read the log: %w", f.Name(), err)
	}
	if len(facts) == 0 {
		return nil
	}
	return f.Apply(ctx, facts)
}

// CatchUpWithin waits until a follower has reached seq. The follower is asked
// again after each short pause: it has no way to call back.
func CatchUpWithin(patience time.Duration, f Follower, seq int64) error {
	deadline := time.Now().Add(patience)
	for f.Position() < seq {
		if time.Now().After(deadline) {
			return fmt.Errorf("follower %s is at %d of %d; it goes on at the next start", f.Name(), f.Position(), seq)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}
