package peer

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/harness/peer/message"
	"waybill/harness/peer/watchdog"
)

// What is known about a request that failed.
const (
	writtenNo    = "no"
	writtenMaybe = "maybe"
)

const defaultGrace = 2 * time.Second

// Spec says how one peer is started, or reached where Web is set: then what is said of a process is empty.
type Spec struct {
	Name  string
	Web   *Web
	Path  string   // executed as given, without a shell and without a search
	Argv0 string   // argv[0]; Path where empty
	Args  []string // after argv[0]
	Env   []string // the complete environment, KEY=VALUE
	Dir   string   // working directory; the service's own where empty

	Grace time.Duration // for each rung of the ladder that ends a process; Config.Grace where zero

	// Verify is called right before each start. A code other than "" refuses the start, with a reason for the operator. Nil
	// accepts.
	Verify func() (domain.Code, string)

	// Redact replaces the values of secrets in what is recorded. It returns its argument, or a fresh slice where it changes
	// something. Nil changes nothing.
	Redact func([]byte) []byte
}

// Config is what a Manager needs. Specs, FrameLimit, Report, Digest, ClientName, ClientVersion and Watchdog are required.
type Config struct {
	Specs map[string]Spec // by name of the peer

	// FrameLimit is in bytes of one line without its terminator, both ways. A longer line of a peer is passed over and
	// costs the request that it answers. It ends the incarnation while the era is unknown, or where no terminator comes within
	// 64 times the limit.
	FrameLimit int

	// Report takes an observation with the evidence it refers to and the payload it stands for, either or both nil. The slices are
	// the receiver's. It is called from several goroutines, also from within Do, and under locks: it must not block and must
	// not call the Manager.
	Report func(data domain.Data, evidence, payload []byte)
	Digest func([]byte) domain.Payload // size and keyed digest of a payload

	// Progress takes what a peer says of how far a call has come: the key of the call, and an object with the members
	// progress (a number, more than the last), total (a number) and message (a string), those that are there, as the peer
	// wrote them. One of more than 64 KiB comes without its message. It is called at most ten times a second for one call;
	// of what comes faster the last is passed on when its time has come, and never once the call has its outcome. It is called
	// from several goroutines and under locks: it must not block and must not call the Manager. The value is the
	// receiver's. Nil passes nothing on. Calls are included that carry a token only because progress puts off their deadline.
	Progress func(call string, progress jsontext.Value)

	ClientName, ClientVersion string

	Watchdog    []string // argument list of the process that calls watchdog.Main
	WatchdogEnv []string // its complete environment

	// WatchdogPause is the least time between two starts of the watchdog, 1s where zero. It doubles with each start, up to 30s, until a
	// watchdog has lasted a minute.
	WatchdogPause time.Duration

	Grace  time.Duration // for each rung of the ladder that ends a process; 2s where zero
	Logger *slog.Logger  // nil logs nothing

	// Mark is told of each request that was written and each answer that was read, before it is reported, as "wrote METHOD" and
	// "read METHOD", by tests that end the process there. Nil otherwise.
	Mark func(point string)
}

// Manager keeps the connections to all peers. Its methods may be called from several goroutines; effects on one peer are
// performed in the order in which Do was called.
type Manager struct {
	cfg     Config
	stamper message.Stamper
	keeper  *watchdog.Keeper

	mu     sync.Mutex
	lanes  map[string]*lane
	closed bool
	once   sync.Once
	err    error // of Close
}

// NewManager starts the watchdog process. No peer is started before a Launch asks for it. A watchdog that is lost ends every peer, with
// the cause watchdog_lost, and is replaced by another, as often as it takes; a Launch fails while there is none.
func NewManager(cfg Config) (*Manager, error) {
	if cfg.FrameLimit <= 0 || cfg.Report == nil || cfg.Digest == nil || len(cfg.Watchdog) == 0 {
		return nil, errors.New("connections to peers need a frame limit, a report, a digest and a watchdog command")
	}
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	if cfg.WatchdogPause == 0 {
		cfg.WatchdogPause = watchdog.DefaultPause
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	stamper, err := message.NewStamper(cfg.ClientName, cfg.ClientVersion, cfg.FrameLimit)
	if err != nil {
		return nil, err
	}
	keeper, err := watchdog.New(cfg.Watchdog, cfg.WatchdogEnv, cfg.WatchdogPause, cfg.Logger)
	if err != nil {
		return nil, err
	}
	return &Manager{cfg: cfg, stamper: stamper, keeper: keeper, lanes: map[string]*lane{}}, nil
}

func (m *Manager) mark(when, method string) {
	if m.cfg.Mark != nil {
		m.cfg.Mark(when + " " + method)
	}
}

// Do performs Launch, Send, SelectEra, Withdraw and Stop, and ignores other effects. It never blocks: what takes time is left
// to the lane of the peer, and reported. The body is that of a tools/call, nil for everything else; it is let go when the call has
// its outcome, and neither it nor its bytes may be changed afterwards.
//
// A Launch ends in peer.spawned or spawn.failed. It waits until every older incarnation is gone, and ends one that has not
// begun because it waits out its own delay; one that runs is not touched. A Send ends in exactly one of an answer,
// exchange.failed (probe.failed for a probe over HTTP) and deadline.passed, or in nothing where it is withdrawn first; its
// deadline runs from this call, and is put off by progress to Idle from then where Idle and Limit are set, never nearer and never beyond Limit from this call. The
// answer to a ping, or to a server/discover of a known era, is health.answered.
//
// A subscriptions/listen waits with its deadline for its acknowledgement, subscription.acknowledged, and then without one for as long
// as its incarnation lives. The peer's end of it is subscription.ended. What is reported of it comes in the order in which the peer
// wrote it. Changes that it announces, or a legacy peer without being asked, are list.changed: the first at once, those that
// follow counted for a second at most, and never after the outcome of a tools/list or of the subscription that was written
// after them.
//
// A Stop with Kill skips the ladder, also one that has begun. Everything else about an incarnation that is not there, or not any
// more, is dropped.
func (m *Manager) Do(e domain.Effect, body *domain.Body) {
	switch e := e.(type) {
	case domain.Launch:
		m.lane(e.Peer).launch(e)
	case domain.Send:
		m.lane(e.Peer).send(e, body)
	case domain.SelectEra:
		m.lane(e.Peer).selectEra(e)
	case domain.Withdraw:
		m.lane(e.Peer).withdraw(e)
	case domain.Stop:
		m.lane(e.Peer).stop(e)
	}
}

// StderrTail returns the last 8 KiB, at most, that the newest incarnation of a peer wrote to its standard error, redacted.
func (m *Manager) StderrTail(peer string) []byte {
	m.mu.Lock()
	l := m.lanes[peer]
	m.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.stderrTail()
}

// Flush reports the noise and the changes of lists that have been counted and not yet reported.
func (m *Manager) Flush() {
	m.mu.Lock()
	lanes := slices.Collect(maps.Values(m.lanes))
	m.mu.Unlock()
	for _, l := range lanes {
		for _, c := range l.incarnations() {
			c.table.flush()
			c.noise.tick()
		}
	}
}

// Close ends all peers at once, each by the ladder, then the watchdog, and with it everything that peers have left behind. It
// reports what comes of that, and returns when no process and no goroutine is left. Later effects fail.
func (m *Manager) Close() error {
	m.once.Do(func() { m.err = m.close() })
	return m.err
}

func (m *Manager) close() error {
	m.mu.Lock()
	m.closed = true
	lanes := m.lanes
	m.mu.Unlock()
	for _, l := range lanes {
		l.close()
	}
	for _, l := range lanes {
		<-l.done
	}
	return m.keeper.Close()
}

// lane returns the lane of a peer, made when it is first needed. After Close it is one that refuses everything.
func (m *Manager) lane(peer string) *lane {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lanes[peer]
	switch {
	case l != nil:
	case m.closed:
		l = newLane(m, peer)
		l.closed = true
	default:
		l = newLane(m, peer)
		m.lanes[peer] = l
		go l.run()
	}
	return l
}

func (m *Manager) report(data domain.Data) { m.cfg.Report(data, nil, nil) }
