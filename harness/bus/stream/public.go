package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
	"waybill/harness/bus/access"
)

const (
	// publicQuiet is how long the server may be silent about what it copies; it has
	// word of it every second.
	publicQuiet = 15 * time.Second

	// publicHurry is how often to look while not all is well.
	publicHurry = 500 * time.Millisecond

	// publicLag is how many events may be missing that are on their way.
	publicLag = 1024
)

// PublicConfig describes the stream that dashboards read.
type PublicConfig struct {
	Prefix string
	LogID  string

	Replicas int           // of the stream, 1 if 0
	MaxAge   time.Duration // after which messages leave the stream; 0 for never

	// After returns when the copy of the log is there, from which the server fills
	// the stream: if it is not, the server tries again only after a while. Nil for
	// no such wait.
	After func(ctx context.Context) error

	// Copy says when the copy of the log was made, and fails while there is none. The
	// stream is filled from that copy and no other: where there is another in its
	// place, all of it would be taken in a second time. Nil for no such look.
	Copy func(ctx context.Context) (time.Time, error)

	Look     time.Duration // how often to look how it does, 5 s if 0
	Patience time.Duration // with the server, 5 s if 0

	Logger *slog.Logger // slog.Default if nil
}

// Public is the stream that dashboards read. The server fills it from the copy of the
// log, in the order of the log; Public makes it, and says how it does. Its methods may
// be called at once; Run only once.
type Public struct {
	js  jetstream.JetStream
	cfg PublicConfig

	mu     sync.Mutex
	health PublicHealth
	well   time.Time // when it last did well, or began
}

// PublicHealth says how the public stream does. Its JSON form is a contract.
type PublicHealth struct {
	State    string `json:"state"`           // ok, behind or stopped
	Position int64  `json:"position"`        // seq of the last event in it, as far as known
	Lag      int64  `json:"lag"`             // public events of the copy that are not in it yet; 0 too where that is not known, and then State is not ok
	Error    string `json:"error,omitempty"` // what keeps it behind
}

// NewPublic makes the stream's keeper on the connection of the curator. It does not
// speak to the server yet.
func NewPublic(nc *nats.Conn, cfg PublicConfig) (*Public, error) {
	if err := bus.CheckSpace(cfg.Prefix, cfg.LogID); err != nil {
		return nil, fmt.Errorf("public stream: %w", err)
	}
	cfg.Look, cfg.Patience = cmp.Or(cfg.Look, 5*time.Second), cmp.Or(cfg.Patience, 5*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(cfg.Patience))
	if err != nil {
		return nil, fmt.Errorf("public stream: %w", err)
	}
	return &Public{js: js, cfg: cfg, health: PublicHealth{State: StateBehind}}, nil
}

// Health is how the stream did at the last look.
func (p *Public) Health() PublicHealth {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health
}

// Run makes the stream and looks after it until ctx ends, which is not an error, or
// until it finds other settings than it should have (*SettingsError). Whatever else
// fails is tried again.
func (p *Public) Run(ctx context.Context) error {
	p.mu.Lock()
	p.well = time.Now()
	p.mu.Unlock()
	if p.cfg.After != nil {
		if err := p.cfg.After(ctx); err != nil {
			p.note(PublicHealth{State: StateBehind}, fmt.Errorf("there is nothing to fill it from: %w", err))
		}
	}
	for ctx.Err() == nil {
		h, err := p.look(ctx)
		if ctx.Err() != nil {
			break
		}
		if settings := (*SettingsError)(nil); errors.As(err, &settings) {
			h.State = StateStopped
			p.note(h, err)
			return err
		}
		p.note(h, err)
		pause := p.cfg.Look
		if h.State != StateOK {
			pause = min(pause, publicHurry)
		}
		rest(ctx, pause)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.health.State = StateStopped
	return nil
}

// note keeps how the stream does, and says it where it has changed.
func (p *Public) note(h PublicHealth, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		h.Error = err.Error()
	}
	switch log := p.cfg.Logger.With("stream", bus.PublicStreamName(p.cfg.LogID)); {
	case errors.Is(err, errIdle) && time.Since(p.well) < publicQuiet:
		h.Error = "" // it takes a while after a start
	case h.Error != "" && p.health.Error == "":
		log.Warn("what dashboards read is not brought up to date, trying again", "err", h.Error)
	case h.Error == "" && p.health.Error != "":
		log.Info("what dashboards read is brought up to date again", "position", h.Position)
	}
	h.Position = max(h.Position, p.health.Position)
	if p.health = h; h.State == StateOK {
		p.well = time.Now()
	}
}

// look finds the stream, or makes it, and how it does.
func (p *Public) look(ctx context.Context) (PublicHealth, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Patience)
	defer cancel()
	want := publicStream(p.cfg)
	s, err := p.open(ctx, want)
	if err != nil {
		return PublicHealth{State: StateBehind}, err
	}
	info := s.CachedInfo()
	h := PublicHealth{State: StateBehind}
	filling := errIdle
	if len(info.Sources) == 1 {
		h, filling = healthOf(info.Sources[0])
	}
	if info.State.LastSeq == 0 || info.State.Msgs == 0 {
		return h, filling
	}
	last, err := s.GetMsg(ctx, info.State.LastSeq)
	if err != nil {
		return h, fmt.Errorf("stream %s: read its last message: %w", want.Name, explain(err, want))
	}
	h.Position, err = strconv.ParseInt(last.Header.Get(jetstream.MsgIDHeader), 10, 64)
	if err != nil {
		return h, fmt.Errorf("stream %s: its last message has no sequence of an event: %w", want.Name, err)
	}
	return h, filling
}

// copyKey is where the stream says which copy of the log it is filled from, in its
// metadata: when that was made.
const copyKey = "waybill.copy"

// open finds the stream or makes it. One that was filled from another copy than there
// is now is removed first, with the consumers of those who read it, and made anew; so
// is one that does not say which. What ends in between leaves no stream, which the
// next look makes: in the stream itself is said what it was made from, so that none is
// taken for another's.
func (p *Public) open(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	if p.cfg.Copy == nil {
		return openPublic(ctx, p.js, want)
	}
	made, err := p.cfg.Copy(ctx)
	if err != nil {
		return nil, fmt.Errorf("there is nothing to fill it from: %w", err)
	}
	want.Metadata = map[string]string{copyKey: made.UTC().Format(time.RFC3339Nano)}
	s, err := openPublic(ctx, p.js, want)
	if err != nil || s.CachedInfo().Config.Metadata[copyKey] == want.Metadata[copyKey] {
		return s, err
	}
	p.cfg.Logger.Warn("what dashboards read was filled from a copy of the log that is no more; it is filled anew", "stream", want.Name)
	if err := p.js.DeleteStream(ctx, want.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("stream %s: remove it: %w", want.Name, explain(err, want))
	}
	p.mu.Lock()
	p.health.Position = 0
	p.mu.Unlock()
	return openPublic(ctx, p.js, want)
}

// errIdle says that the server does not fill the stream.
var errIdle = errors.New("the server does not fill it: there is no copy of the log, or the accounts are not those of " + bus.AccountsFile)

// healthOf is what the server says of its copying.
func healthOf(s *jetstream.StreamSourceInfo) (PublicHealth, error) {
	h := PublicHealth{State: StateOK, Lag: int64(s.Lag)}
	switch {
	case s.Error != nil:
		return PublicHealth{State: StateBehind}, fmt.Errorf("the server cannot fill it from %s: %s", s.Name, s.Error.Description)
	case s.Active < 0 || s.Active > publicQuiet:
		return PublicHealth{State: StateBehind}, errIdle
	case h.Lag > publicLag:
		h.State = StateBehind
	}
	return h, nil
}

// publicStream is the stream of the public events of a log. It listens to no subject:
// what is in it, the server has taken from the copy of the log. It cannot be larger
// than that, so it has no limit of its own.
func publicStream(cfg PublicConfig) jetstream.StreamConfig {
	want := anyStream(cfg.Replicas)
	want.Name = bus.PublicStreamName(cfg.LogID)
	want.Description = "What dashboards may read of the Waybill log " + cfg.LogID
	want.Discard = jetstream.DiscardNew
	want.MaxBytes = -1
	want.MaxAge = cfg.MaxAge
	want.MaxMsgSize = -1
	source := &jetstream.StreamSource{
		Name:     bus.StreamName(cfg.LogID),
		External: &jetstream.ExternalStream{APIPrefix: access.CopyAPI, DeliverPrefix: access.CopyDelivery},
	}
	for _, subject := range access.PublicSubjects(cfg.Prefix, cfg.LogID) {
		source.SubjectTransforms = append(source.SubjectTransforms, jetstream.SubjectTransformConfig{Source: subject})
	}
	want.Sources = []*jetstream.StreamSource{source}
	return want
}

// openPublic finds the stream or makes it, and refuses one that could hold something
// else.
func openPublic(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
	}
	if err != nil {
		return nil, fault(ctx, js, want, err)
	}
	if list := publicDifferences(want, s.CachedInfo().Config); len(list) > 0 {
		return nil, &SettingsError{Stream: want.Name, Differences: list}
	}
	return s, nil
}

func publicDifferences(want, have jetstream.StreamConfig) []string {
	wanted, had := want.Sources, have.Sources
	want.Sources, have.Sources = nil, nil
	list := differences(want, have)
	if !reflect.DeepEqual(wanted, had) {
		list = append(list, "sources are not the public events of the copy of the log, and should be")
	}
	return list
}
