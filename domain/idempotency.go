package domain

import (
	"fmt"
	"slices"
)

// IdempotencyWindow is how long a host gets the outcome of its first call under an
// idempotency key, where the configuration does not say: 24 hours, in nanoseconds,
// from when the call was received.
const IdempotencyWindow = 24 * 60 * 60 * 1_000_000_000

const (
	// keyWindows is for how many windows a key is known. After the first it has
	// expired: it is refused, and still leads to no second run.
	keyWindows = 8

	// mostKeys bounds the keys that are known, of all hosts together, and mostKeysOfOne
	// those of one, so that no host takes them all.
	mostKeys      = 100_000
	mostKeysOfOne = mostKeys / 2

	// mostJoined bounds the submissions that wait for one call.
	mostJoined = 64
)

// keyring knows the calls that hosts have made under idempotency keys. A key is a
// host's own. It is taken when its first call is routed or held, and given back if
// that call ends without ever being sent: a call that did not run may be made under
// it. It is known for keyWindows windows from when the call was received, by the
// clock of the events, and then forgotten: from then on it could lead to a second
// run. There are never more than mostKeys, and of one host never more than
// mostKeysOfOne; the oldest make room once they have expired.
type keyring struct {
	known map[string]*keyed // by host/digest
	queue []*keyed          // the same, in the order they were taken
	of    map[string]int    // how many each host has
}

// keyed is the call that has a key.
type keyed struct {
	slot     string // host/digest
	call     CallID
	received int64  // seq of its call.received
	same     string // digest of what makes another submission the same call
	since    int64  // wall clock of call.received
}

func newKeyring() keyring { return keyring{known: map[string]*keyed{}, of: map[string]int{}} }

func (d CallReceived) slot() string { return d.Host + "/" + d.Key }

// room finds which key makes room for another one of a host, -1 for none; ok is
// false where it has not expired.
func (k *keyring) room(host string, now, window int64) (drop int, ok bool) {
	switch {
	case k.of[host] >= mostKeysOfOne:
		drop = slices.IndexFunc(k.queue, func(x *keyed) bool { return x.call.Host == host })
	case len(k.queue) < mostKeys:
		return -1, true
	}
	return drop, now-k.queue[drop].since >= window
}

func (k *keyring) take(x *keyed, now, window int64) {
	if drop, _ := k.room(x.call.Host, now, window); drop >= 0 {
		k.drop(drop)
	}
	k.known[x.slot] = x
	k.queue = append(k.queue, x)
	k.of[x.call.Host]++
}

func (k *keyring) drop(i int) {
	x := k.queue[i]
	if i == 0 {
		k.queue[0], k.queue = nil, k.queue[1:]
	} else {
		k.queue = slices.Delete(k.queue, i, i+1)
	}
	delete(k.known, x.slot)
	if k.of[x.call.Host]--; k.of[x.call.Host] == 0 {
		delete(k.of, x.call.Host)
	}
}

// giveBack frees the key of a call that was never sent.
func (k *keyring) giveBack(c *call) {
	x := k.known[c.received.slot()]
	if c.received.Key == "" || x == nil || x.received != c.story {
		return
	}
	for i, y := range slices.Backward(k.queue) {
		if y == x {
			k.drop(i)
			return
		}
	}
}

// expire forgets the keys whose time is over. One behind another with more time waits
// with it.
func (k *keyring) expire(now, window int64) {
	for len(k.queue) > 0 && now-k.queue[0].since > keyWindows*window {
		k.drop(0)
	}
}

// IdempotencyWindow is the window in force, in nanoseconds.
func (c Config) IdempotencyWindow() int64 {
	if c.Idempotency > 0 {
		return c.Idempotency * 1_000_000
	}
	return IdempotencyWindow
}

// decideKeyed answers a submission whose idempotency key is known: with the outcome
// of the call that has it, or with a refusal. It never leads to a second run. nil
// for any other submission, which is decided on like one without a key. Whether the
// service has room, or knows its peers yet, is no matter here: nothing is sent.
func (s *State) decideKeyed(e Event, d CallReceived) []Data {
	if d.Key == "" || d.Problem != "" || d.goesOn() || s.Stopped {
		return nil
	}
	if code, _ := s.Config.stranger(d); code != "" {
		return nil
	}
	refuse := func(code Code, format string, args ...any) []Data {
		return []Data{CallRefused{CallID: d.CallID, Code: code, Reason: fmt.Sprintf(format, args...)}}
	}
	window := s.Config.IdempotencyWindow()
	x := s.keys.known[d.slot()]
	switch {
	case x == nil:
		if _, ok := s.keys.room(d.Host, e.Time, window); !ok {
			return refuse(CodeOverloaded, "%d idempotency keys of this host and %d of all hosts are known, and none has expired (idempotency_window); try again later, or without a key",
				s.keys.of[d.Host], len(s.keys.queue))
		}
		return nil
	case d.Same != x.same:
		return refuse(CodeIdempotencyConflict, "call %s has this idempotency_key (event %d), and is another call: tool and arguments must be the same byte for byte; choose another key",
			x.call.CallKey(), x.received)
	case e.Time-x.since >= window:
		return refuse(CodeOutcomeExpired, "call %s was made under this idempotency_key longer ago than idempotency_window (event %d), and is not run again; "+
			"see waybill calls outcome, and choose another key if it is to run once more", x.call.CallKey(), x.received)
	}
	if c := s.calls[x.call.CallKey()]; c != nil && c.story == x.received && c.joined >= mostJoined {
		return refuse(CodeOverloaded, "%d submissions wait for call %s already; try again when it has ended", c.joined, x.call.CallKey())
	}
	return []Data{CallJoined{CallID: d.CallID, First: x.call.CallKey(), Received: x.received}}
}

// KeyTaken returns the call that has the idempotency key of a submission that comes
// now, by the wall clock, so that this one will be no call of its own; false where
// there is none.
func (s *State) KeyTaken(now int64, d CallReceived) (CallID, bool) {
	x := s.keys.known[d.slot()]
	if d.Key == "" || x == nil || now-x.since > keyWindows*s.Config.IdempotencyWindow() {
		return CallID{}, false
	}
	return x.call, true
}

// applyJoined counts who waits for a call that is under way.
func (s *State) applyJoined(d CallJoined) {
	if c := s.calls[d.First]; c != nil && c.story == d.Received {
		c.joined++
	}
}

// takeKey gives the key of a submission that is accepted to its call.
func (s *State) takeKey(c *call) {
	d := c.received
	if d.Key != "" && s.keys.known[d.slot()] == nil {
		s.keys.take(&keyed{slot: d.slot(), call: c.id, received: c.story, same: d.Same, since: c.receivedAt}, c.receivedAt, s.Config.IdempotencyWindow())
	}
}
