package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"waybill/domain"
	"waybill/store"
)

// Log is what the loop needs of the log: the one writer of it. *store.Log is
// one.
type Log interface {
	// Append makes the entries durable after the given head, all or none.
	Append(ctx context.Context, after int64, entries []store.Entry) (store.Head, error)
	// Reread finds the real head after an append that failed.
	Reread(ctx context.Context) (store.Head, error)
	// Read returns events after a seq, to compare with what was sent.
	Read(ctx context.Context, after int64, max int) ([]store.Record, error)
	// ByCall returns the events of one call, by its key, in order.
	ByCall(ctx context.Context, call string) ([]store.Record, error)
	// ID is the source of the events.
	ID() string
}

// Actor performs effects on peers. Do is called by the loop's goroutine in log
// order, after the decision is durable, and must not block.
type Actor interface {
	// Do performs one effect. Only a Send of tools/call has a body.
	Do(e domain.Effect, body *domain.Body)
}

// Config of a Loop. Zero values take the defaults named.
type Config struct {
	Log      Log
	State    *domain.State // folded up to the head of the log
	Clock    Clock
	Digest   func([]byte) domain.Payload // how bytes that never enter an event are named
	Queue    int                         // calls that wait for the loop; beyond it they are shed (4096)
	Batch    int                         // observations in one transaction (512)
	Calls    int                         // calls in one transaction, so that it stays short (128); no more than Batch
	Share    int                         // of them of one host, while others have calls under way (32)
	Patience time.Duration               // with a log that does not take an append (10 s)
	Logger   *slog.Logger
	Redact   func([]byte) []byte // secrets by value; identity if nil
	Tail     *Tail               // given what is committed, before OnCommit is told; nil for none
	OnCommit func(head int64)    // told after each commit, by the loop's goroutine; must not block
	Mark     func(point string)  // told where the loop is, by tests that end the process there; nil otherwise

	Payloads  Payloads                 // where the bytes of calls are kept and erased; nil for nowhere
	Keep      bool                     // the configuration has some kept
	ContextOf func(host string) string // the authorization context of a host, "" for the default one; nil where all have that

	HostInflight int     // calls of one host from Submit to reply; beyond it they are shed (256)
	HostRate     float64 // calls of one host a second, as many at once; 0 for no limit

	// Progress is told what a peer says of a call whose host asked for it, never
	// after the call's reply was released. It is called by whoever calls
	// Loop.Progress, one at a time, and must neither block nor call the loop.
	Progress func(id domain.CallID, progress []byte)
}

// HaltError ends Run because of a decision: the configuration was rejected.
type HaltError struct {
	Code   domain.Code
	Reason string
}

// Error is the reason.
func (e *HaltError) Error() string { return e.Reason }

// Loop owns the state. Every other goroutine speaks to it through Submit,
// Report, Command and Ask; its own goroutine is the one that calls Run.
type Loop struct {
	cfg       Config
	actor     Actor
	inbox     *inbox
	pressure  *pressure
	gate      func() (domain.Code, string) // set by SetGate
	state     *domain.State                // touched by Run's goroutine only, as are calls and commands
	calls     map[string]*underway
	commands  []decided // of the batch that is on its way
	flights   []*flight // of it
	reads     *reads
	keeper    keeper
	listening listeners
	alarms    alarms
	settled   chan struct{}
	halt      *HaltError
	stopped   bool // service.stopped was decided on in this life
	shed      shedder
	busy      busy
	replies   *lane // makes replies, so that a slow connection never holds up the loop
	outcomes  *lane // reads those of calls that have ended, so that the disk never does
}

// NewLoop returns a loop that has not begun to run. SetActor must be called
// before Run.
func NewLoop(cfg Config) *Loop {
	cfg.Queue, cfg.Batch, cfg.Calls = cmp.Or(cfg.Queue, 4096), cmp.Or(cfg.Batch, 512), cmp.Or(cfg.Calls, 128)
	cfg.Calls, cfg.Share = min(cfg.Calls, cfg.Batch), min(cmp.Or(cfg.Share, 32), cfg.Calls)
	cfg.Patience, cfg.HostInflight = cmp.Or(cfg.Patience, 10*time.Second), cmp.Or(cfg.HostInflight, 256)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Redact == nil {
		cfg.Redact = func(b []byte) []byte { return b }
	}
	l := &Loop{cfg: cfg, inbox: newInbox(cfg.Queue), pressure: newPressure(cfg.HostInflight, cfg.HostRate, cfg.Clock.Mono),
		state: cfg.State, calls: map[string]*underway{}, keeper: keeper{waiting: map[int64]*command{}}, settled: make(chan struct{})}
	l.alarms.report = func(d domain.Data) { l.Report(d, nil, nil) }
	l.reads = newReads(func(f *flight) bool { return l.inbox.put(input{flight: f}) })
	return l
}

// SetActor says who performs effects on peers. Not safe once Run has begun.
func (l *Loop) SetActor(a Actor) { l.actor = a }

// SetGate makes Submit ask, before anything else, whether calls are taken at all:
// a code turns the call away, with the reason. It must be called before the first
// Submit; gate must not block, and is called by any number of goroutines.
func (l *Loop) SetGate(gate func() (domain.Code, string)) { l.gate = gate }

// StopIntake turns every later call away, as shutting_down and unrecorded. What is
// under way goes on, and can be asked after and cancelled. Safe for concurrent use.
func (l *Loop) StopIntake() { l.inbox.drain() }

// Report hands over what the world said. It never blocks and never refuses:
// each released effect has its place for its outcome. Safe for concurrent use.
// Evidence is kept with the log; payload goes to the waiting host and nowhere
// else.
func (l *Loop) Report(data domain.Data, evidence, payload []byte) {
	in := input{data: data, evidence: evidence, payload: payload}
	l.nameAnswer(&in)
	l.inbox.put(in)
}

// Settled is closed when every configured peer has listed, failed or been
// refused once, and the names are merged or the configuration is rejected.
func (l *Loop) Settled() <-chan struct{} { return l.settled }

var errStopping = errors.New("the service is stopping")

// Ask runs f on the state between two batches, when everything in it is
// durable, and returns when it has run. f must be quick and may keep nothing of
// the state. It fails when ctx ends or the loop has ended; f has not run then,
// and never will.
func (l *Loop) Ask(ctx context.Context, f func(*domain.State)) error { return l.ask(ctx, "", f) }

// ask is Ask that may wait behind what a host has submitted before.
func (l *Loop) ask(ctx context.Context, host string, f func(*domain.State)) error {
	var claimed atomic.Bool // by the loop or by the end of ctx, whichever comes first
	done := make(chan struct{})
	ask := func(s *domain.State) {
		if claimed.CompareAndSwap(false, true) {
			f(s)
			close(done)
		}
	}
	if !l.inbox.put(input{ask: ask, host: host}) {
		return errStopping
	}
	select {
	case <-done:
		return nil
	case <-l.inbox.ended:
	case <-ctx.Done():
	}
	if !claimed.CompareAndSwap(false, true) {
		<-done
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errStopping
}

// Run takes what the inbox holds until a service.stopped has been recorded, the
// configuration is rejected (*HaltError) or the log cannot be written. After
// an error nothing of the failed batch has left the program.
func (l *Loop) Run() error {
	l.replies, l.keeper.erasers, l.outcomes = startLane(), startLane(), startLane()
	defer l.replies.stop()
	defer l.outcomes.stop()
	defer l.keeper.erasers.stop()
	defer l.end()
	for {
		if err := l.turn(l.gather()); err != nil {
			return err
		}
		if l.halt != nil {
			return l.halt
		}
		if l.stopped {
			return nil
		}
	}
}

// gather waits for inputs and takes a batch of them. How long it takes to commit
// is how long everybody waits, so a host that has much to do gets a smaller share
// while others have anything to do.
func (l *Loop) gather() []input {
	l.inbox.await()
	runtime.Gosched() // whoever is about to add something does so first: a batch costs one commit, however large
	if l.pressure.shared() {
		return l.inbox.take(l.cfg.Batch, l.cfg.Calls, l.cfg.Share)
	}
	return l.inbox.take(l.cfg.Batch, l.cfg.Calls, l.cfg.Calls)
}

// end closes the door and answers every waiting host. A call of which nothing is
// known to be recorded was sent nowhere; of any other the end is not known here,
// and the next start settles it in these words.
func (l *Loop) end() {
	l.shed.close()
	l.reads.close()
	for _, in := range l.inbox.close() {
		l.turnAway(in)
	}
	l.alarms.close()
	for key, u := range l.calls { // in no order: each has its own host
		l.listening.remove(key)
		u.doc.Status, u.doc.Code, u.doc.Ran = domain.StatusLost, domain.CodeServiceRestarted, domain.RanMaybe
		u.doc.Reason, u.doc.Log = "the service ended before the outcome was recorded", l.cfg.Log.ID()
		if len(u.doc.Seqs) == 0 {
			u.doc.Status, u.doc.Code, u.doc.Ran = domain.StatusRefused, domain.CodeLogUnavailable, domain.RanNo
			u.doc.Reason = "the log could not be written, and nothing is sent that is not recorded first"
		}
		l.tell(u)
	}
}

// turn decides for each input in order, appends the whole batch in one
// transaction, releases its effects and then answers what was asked meanwhile.
// There are two transactions where an input goes on with a call that ends in the
// first.
func (l *Loop) turn(batch []input) error {
	for rest := batch; len(rest) > 0; {
		n, err := l.portion(rest)
		rest = rest[n:]
		if err != nil {
			for _, in := range rest {
				l.turnAway(in)
			}
			return err
		}
	}
	for _, in := range batch {
		if in.ask != nil {
			in.ask(l.state)
		}
	}
	return nil
}

// portion is one transaction of a turn; n is how many inputs it took.
func (l *Loop) portion(batch []input) (n int, err error) {
	var facts []domain.Event
	after, begun := l.state.Head, l.cfg.Clock.Mono()
	for _, in := range batch {
		if len(facts) > 0 && l.endsFirst(in) {
			break
		}
		if n++; in.ask == nil {
			facts = append(facts, l.decide(in)...)
		}
	}
	if len(facts) == 0 {
		return n, nil
	}
	decided := l.cfg.Clock.Mono()
	if err := l.record(after, facts); err != nil {
		return n, err
	}
	recorded := l.cfg.Clock.Mono()
	l.release(facts)
	l.tellCommands()
	l.landed()
	l.noteSettled()
	l.busy.add(len(facts), decided-begun, recorded-decided, l.cfg.Clock.Mono()-recorded)
	return n, nil
}

// decide returns an observation with the decisions that follow from it.
func (l *Loop) decide(in input) (facts []domain.Event) {
	if l.stopped {
		l.turnAway(in)
		return nil
	}
	if in.command != nil && !in.command.claimed.CompareAndSwap(false, true) {
		return nil // given up
	}
	if _, ok := in.data.(domain.ServiceStopped); ok {
		l.stopped = true
		for _, d := range l.shed.take() {
			facts = append(facts, l.step(input{data: d}, l.cfg.Clock.Wall())...)
		}
	}
	if in.flight != nil {
		in.data, l.flights = l.reads.take(in.flight), append(l.flights, in.flight)
	}
	now := l.cfg.Clock.Wall()
	l.admit(&in, now)
	steps := l.step(in, now)
	l.keepAnswer(in, steps)
	l.obey(in, steps)
	return append(facts, steps...)
}

func (l *Loop) step(in input, now int64) []domain.Event {
	return l.state.Step(domain.Event{Time: now, Mono: l.cfg.Clock.Mono(), Data: in.data, Evidence: in.evidence})
}

// record makes the events of a batch durable.
func (l *Loop) record(after int64, facts []domain.Event) error {
	entries := make([]store.Entry, 0, len(facts))
	for _, e := range facts {
		entry, err := seal(l.cfg.Log.ID(), e)
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	l.mark("before", facts)
	if err := l.save(after, entries); err != nil {
		return err
	}
	l.mark("saved", facts)
	if err := l.commit(after, entries); err != nil {
		return err
	}
	l.mark("after", facts)
	if l.cfg.Tail != nil {
		l.cfg.Tail.add(after, entries)
	}
	if l.cfg.OnCommit != nil {
		l.cfg.OnCommit(l.state.Head)
	}
	return nil
}

// mark tells of each event of an append, as "before KIND", as "saved KIND" when the
// payloads are kept that it cites, and as "after KIND". Nothing has been released
// by then.
func (l *Loop) mark(when string, facts []domain.Event) {
	if l.cfg.Mark == nil {
		return
	}
	for _, e := range facts {
		l.cfg.Mark(when + " " + e.Data.Kind())
	}
}

func (l *Loop) turnAway(in input) {
	if in.reply != nil {
		l.replies.put(func() { in.reply(l.shedReply(in, domain.CodeShuttingDown, "")) })
	}
}

func (l *Loop) noteSettled() {
	select {
	case <-l.settled:
	default:
		if l.state.Settled() {
			close(l.settled)
		}
	}
}

// commit appends the batch. If that fails the state is not rolled back, and no
// effect has left: the real head is read, and the same sealed bytes are tried
// again while it is unchanged. A crash inside Append leaves all of the batch or
// none of it; either way the next start folds what is there.
func (l *Loop) commit(after int64, entries []store.Entry) error {
	deadline := time.Now().Add(l.cfg.Patience)
	doubt := false
	var last error
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		done, err := l.attempt(after, entries, &doubt)
		if done {
			l.inbox.open(true)
			return nil
		}
		if errors.Is(err, errLogMoved) {
			return err
		}
		if err != nil {
			last = err
		}
		if time.Now().Add(pause).After(deadline) {
			return fmt.Errorf("append to the log: %w", last)
		}
		time.Sleep(pause)
	}
}

// attempt appends the entries once, and finds out what became of an append that
// failed. While that cannot be found out, doubt is set and nothing is appended.
func (l *Loop) attempt(after int64, entries []store.Entry, doubt *bool) (done bool, err error) {
	if !*doubt {
		if _, err = l.cfg.Log.Append(context.Background(), after, entries); err == nil {
			return true, nil
		}
		l.inbox.open(false)
		l.cfg.Logger.Error("the log did not take an append; no effect was released", "after", after, "events", len(entries), "err", err)
	}
	done, readErr := l.arrived(after, entries)
	*doubt = readErr != nil
	return done, errors.Join(err, readErr)
}

var errLogMoved = errors.New("the log holds other events than were sent; something else writes to it: stop it, run waybill-audit verify")

// arrived reports whether the entries are in the log after all.
func (l *Loop) arrived(after int64, entries []store.Entry) (bool, error) {
	head, err := l.cfg.Log.Reread(context.Background())
	if err != nil {
		return false, fmt.Errorf("read the head again: %w", err)
	}
	if head.Size == after {
		return false, nil
	}
	if head.Size != after+int64(len(entries)) {
		return false, errLogMoved
	}
	records, err := l.cfg.Log.Read(context.Background(), after, len(entries))
	if err != nil {
		return false, fmt.Errorf("read back an append: %w", err)
	}
	for i, r := range records {
		if string(r.Bytes) != string(entries[i].Bytes) {
			return false, errLogMoved
		}
	}
	return len(records) == len(entries), nil
}

// release performs the effects of a committed batch, in log order.
func (l *Loop) release(facts []domain.Event) {
	for _, e := range facts {
		l.follow(e)
		l.noteGone(e)
		for _, effect := range domain.Effects(e) {
			l.perform(effect)
		}
	}
}

// body joins a tools/call with the bytes that only the harness holds. The state
// may be ahead of the event that is released: the schema is then that of a later
// list, which is the one in force, or none, because the call has ended and its
// answer will be dropped. It is copied because the state must not be kept.
func (l *Loop) body(x domain.Send) *domain.Body {
	u := l.calls[x.Call]
	if x.Method != domain.MethodCall || u == nil {
		return nil
	}
	return &domain.Body{Arguments: u.arguments, InputResponses: u.responses, RequestState: u.state,
		OutputSchema: l.state.OutputSchema(x.Call).Clone(), InputSchema: l.state.InputSchema(x.Call).Clone(), Trace: u.trace}
}

func (l *Loop) perform(effect domain.Effect) {
	switch x := effect.(type) {
	case domain.Answer:
		l.answer(x.Call)
	case domain.Halt:
		l.halt = &HaltError{Code: x.Code, Reason: x.Reason}
	case domain.Join:
		l.join(x)
	case domain.Erase:
		l.erase(x)
	case domain.Wake:
		l.wake(x)
	case domain.Remind:
		l.remind(x)
	case domain.Due:
		l.due(x)
	case domain.Send:
		if x.Call != "" {
			l.alarms.stop(x.Call)
		}
		if x.Method == domain.MethodList {
			l.alarms.stop(listAlarm(x.Peer, domain.DueList, x.Context))
		}
		l.actor.Do(x, l.body(x))
	default:
		l.actor.Do(effect, nil)
	}
}
