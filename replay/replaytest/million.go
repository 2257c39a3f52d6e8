package replaytest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waybill/domain"
	"waybill/events"
	"waybill/events/checkpoint"
	"waybill/store"
)

// MillionLeast is the least size of a log that Million makes: in a shorter one the rarer
// kinds of events have no room.
const MillionLeast = 20_000

// Census is what is in a log that Million made.
type Census struct {
	Calls        int64 // submitted by hosts, continuations and repetitions not counted
	Transactions int64
	Checkpoints  int64
	Kinds        map[string]int64
	Statuses     map[domain.Status]int64 // of calls, refused ones too
	Told         string                  // key of a call that took more than one exchange
}

// MillionWithout lists the kinds of events that no log of Million has: those of a
// configuration that ends the service, of a restored log, of another key, and of a copy
// that differs. A log of seed 1 has every other kind, whatever its size.
var MillionWithout = []string{"config.rejected", "key.rotated", "log.restored", "stream.forked"}

// Million makes a log file of exactly size events, of the life of twenty peers of every
// era and transport with a call for every ten events. The same seed gives the same log.
// It holds none of it in memory but the transaction under way.
func Million(path string, size int64, seed uint64) (Census, error) {
	if size < MillionLeast {
		return Census{}, fmt.Errorf("a log of %d events is too small, it takes %d", size, MillionLeast)
	}
	if err := store.Create(path, ID, Key); err != nil {
		return Census{}, err
	}
	f, err := store.Open(path)
	if err != nil {
		return Census{}, err
	}
	m := newMillion(f, size, chance(seed))
	m.live()
	return m.census, errors.Join(m.err, f.Close())
}

// million is the world of a long log.
type million struct {
	*World
	file   *store.Log
	size   int64
	made   int64 // events
	chance chance
	err    error // of the file: nothing is written after it
	census Census

	entries []store.Entry // of the transaction under way
	room    int           // for so many
	signAt  int64

	crew        []*member
	configured  int64     // times
	restartAt   int64     // events
	flights     []*flight // under way, in the order of their beginning
	byCall      map[string]*flight
	paused      []*flight // that wait for input
	ended       []*flight // that an operator may send again
	late        []*flight // whose answer comes when they have ended
	alarms      []alarm
	opened      []opened
	quarantined []domain.ToolChanged
	names       map[string][]string // that a host is told, until they change
}

// flight is a call as the world around the service sees it.
type flight struct {
	received domain.CallReceived
	at       domain.At
	request  int64
	since    int64 // monotonic clock of the exchange
	heldBy   int64 // seq of call.held; 0 where a request is under way
	status   domain.Status
}

// opened is a subscription that stands.
type opened struct {
	at      domain.At
	context string
	request int64
}

// alarm is something that happens at a time of the monotonic clock.
type alarm struct {
	at   int64
	ring func()
}

const (
	signEvery   = 10_000 // events
	mostInBatch = 200
)

func newMillion(f *store.Log, size int64, c chance) *million {
	m := &million{World: NewWorld(), file: f, size: size, chance: c, room: 1, signAt: signEvery, byCall: map[string]*flight{}, names: map[string][]string{},
		census: Census{Kinds: map[string]int64{}, Statuses: map[domain.Status]int64{}}}
	m.crew = millionCrew(m)
	m.peers = map[string]*Peer{}
	for _, c := range m.crew {
		m.peers[c.name] = c.Peer
	}
	return m
}

// observe is World.Observe, with an eye on what comes of it.
func (m *million) observe(data domain.Data, evidence []byte) {
	m.tell(data, evidence)
	m.settle()
}

// tell records an observation; what it releases is performed by settle.
func (m *million) tell(data domain.Data, evidence []byte) {
	m.step(data, evidence)
	m.note()
}

// settle lets the peers answer all that they were asked, calls excepted.
func (m *million) settle() {
	for len(m.effects) > 0 {
		e := m.effects[0]
		m.effects = m.effects[1:]
		m.act(e)
		m.note()
	}
}

// note takes the events that the world has made to the file. A transaction ends only
// behind the last decision of an observation.
func (m *million) note() {
	for _, e := range m.Events {
		m.made++
		m.census.Kinds[e.Data.Kind()]++
		m.follow(e)
		m.seal(e)
	}
	m.Events = m.Events[:0]
	if len(m.entries) >= m.room {
		m.flush()
	}
}

func (m *million) seal(e domain.Event) {
	b, err := events.Seal(ID, e)
	entry := store.Entry{Type: e.Data.Kind(), Peer: e.Peer(), Call: e.Call(), Bytes: b}
	if ref, ok := events.EvidenceOf(e.Data); ok && err == nil {
		var d [32]byte
		d, err = events.DigestOf(ref)
		entry.Evidence = []store.Evidence{{Digest: d, Bytes: e.Evidence}}
	}
	m.err = errors.Join(m.err, err)
	m.entries = append(m.entries, entry)
}

// flush is a group commit.
func (m *million) flush() {
	if m.err != nil || len(m.entries) == 0 {
		return
	}
	head, err := m.file.Append(context.Background(), m.file.Head().Size, m.entries)
	if err == nil && head.Size >= m.signAt {
		m.signAt += signEvery
		m.census.Checkpoints++
		err = m.file.Checkpoint(context.Background(), head.Size, SignHead(PrivateKey, checkpoint.Head{Log: ID, Size: head.Size, Root: head.Root}))
	}
	m.err = err
	m.census.Transactions++
	clear(m.entries)
	m.entries = m.entries[:0]
	m.room = 1 + m.chance.below(mostInBatch)
}

// act plays the world's part in an effect, where it is another than that of a short
// story.
func (m *million) act(e domain.Effect) {
	switch e := e.(type) {
	case domain.Launch:
		if e.Delay < 60_000 {
			m.launch(e.At)
			return
		}
		m.after(e.Delay, func() { m.launch(e.At) })
	case domain.Stop:
		m.lose(e.At, "maybe")
		m.perform(e)
		m.peers[e.Peer].Mute = false
	case domain.Send:
		if e.Method != domain.MethodCall {
			m.perform(e)
		}
	}
}

func (m *million) launch(at domain.At) {
	if m.at(at.Peer) != at {
		return // started by somebody else meanwhile
	}
	switch p := m.peers[at.Peer]; {
	case p.Missing:
		p.Missing = m.chance.below(3) > 0
		m.step(domain.SpawnFailed{At: at, Code: domain.CodeSpawnFailed, Reason: "fork: no more processes"}, nil)
	case p.HTTP:
		m.step(domain.PeerSpawned{At: at}, nil)
	default:
		m.step(domain.PeerSpawned{At: at, PID: 4000 + int(m.made%28_000)}, nil)
	}
}

// after rings an alarm once so many milliseconds have passed.
func (m *million) after(ms int64, ring func()) {
	m.alarms = append(m.alarms, alarm{m.mono + ms*1_000_000, ring})
}

// follow keeps what the world around the service knows of calls and subscriptions.
func (m *million) follow(e domain.Event) {
	switch d := e.Data.(type) {
	case domain.CallReceived:
		if _, known := m.byCall[d.CallKey()]; !known {
			m.byCall[d.CallKey()] = &flight{received: d}
		}
	case domain.CallRouted:
		m.sending(d.CallKey(), d.At, d.RequestID)
	case domain.CallResent:
		if m.sending(d.CallKey(), d.At, d.RequestID); d.Attempt > 2 || m.census.Told == "" {
			m.census.Told = d.CallKey()
		}
	case domain.CallHeld:
		m.holding(e.Seq, d)
	case domain.CallRefused:
		m.over(d.CallKey(), domain.StatusRefused)
	case domain.CallJoined:
		delete(m.byCall, d.CallKey())
	case domain.CallSettled:
		m.over(d.CallKey(), d.Status)
	case domain.NamespaceMerged:
		clear(m.names)
	default:
		m.followLists(d)
	}
}

func (m *million) followLists(data domain.Data) {
	switch d := data.(type) {
	case domain.ListDeferred:
		m.after(d.Delay, func() { m.due(d.At, domain.ListDue{At: d.At, Context: d.Context}) })
	case domain.SubscriptionOpened:
		m.opened = append(m.opened, opened{d.At, d.Context, d.RequestID})
	case domain.SubscriptionClosed:
		m.opened = slices.DeleteFunc(m.opened, func(o opened) bool { return o.request == d.RequestID })
		if d.Reopen > 0 {
			m.after(d.Reopen, func() { m.due(d.At, domain.SubscriptionDue{At: d.At, Context: d.Context}) })
		}
	case domain.ToolChanged:
		if d.Held {
			m.quarantined = append(m.quarantined, d)
		}
	}
}

// due reports that a time has come, unless the incarnation is over.
func (m *million) due(at domain.At, data domain.Data) {
	if m.at(at.Peer) == at {
		m.observe(data, nil)
	}
}

func (m *million) sending(key string, at domain.At, request int64) {
	f := m.byCall[key]
	if f == nil { // sent again by an operator
		i := slices.IndexFunc(m.ended, func(f *flight) bool { return f.received.CallKey() == key })
		if i < 0 {
			panic("call " + key + " is not known")
		}
		f = m.ended[i]
		m.ended = slices.Delete(m.ended, i, i+1)
		m.byCall[key] = f
	}
	f.at, f.request, f.since, f.heldBy = at, request, m.mono, 0
	if !slices.Contains(m.flights, f) {
		m.flights = append(m.flights, f)
	}
}

func (m *million) holding(seq int64, d domain.CallHeld) {
	f := m.byCall[d.CallKey()]
	f.heldBy = seq
	if !slices.Contains(m.flights, f) {
		m.flights = append(m.flights, f)
	}
	m.after(d.Wait, func() {
		if f.heldBy == seq {
			m.observe(domain.WaitPassed{CallID: d.CallID}, nil)
		}
	})
}

// over takes a call from those under way. A few are remembered, for what may come after
// the end.
func (m *million) over(key string, status domain.Status) {
	m.census.Statuses[status]++
	f := m.byCall[key]
	f.status, f.heldBy = status, 0
	delete(m.byCall, key)
	m.flights = slices.DeleteFunc(m.flights, func(g *flight) bool { return f == g })
	switch status {
	case domain.StatusInputRequired:
		m.paused = keepFew(m.paused, f)
	case domain.StatusLost:
		m.ended = keepFew(m.ended, f)
	case domain.StatusTimedOut:
		m.ended, m.late = keepFew(m.ended, f), keepFew(m.late, f)
	}
}

func keepFew(list []*flight, f *flight) []*flight {
	const few = 8
	if list = append(list, f); len(list) > few {
		list = slices.Delete(list, 0, 1)
	}
	return list
}

// chance is a source of numbers that look like chance and are always the same
// (SplitMix64).
type chance uint64

func (c *chance) next() uint64 {
	*c += 0x9e3779b97f4a7c15
	z := uint64(*c)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1.
func (c *chance) below(n int) int { return int(c.next() >> 1 % uint64(n)) }

// in reports something that happens so many times in a thousand.
func (c *chance) in(thousandth int) bool { return c.below(1000) < thousandth }

func pick[T any](c *chance, list []T) T { return list[c.below(len(list))] }
