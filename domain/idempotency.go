package domain

import "fmt"

// IdempotencyWindow is how long a host gets the outcome of its first call under an
// idempotency key, where the configuration does not say: 24 hours, in nanoseconds,
// from when the call was received.
const IdempotencyWindow = 24 * 60 * 60 * 1_000_000_000

const (
	// keyWindows is for how many windows a key is known. After the first it has
	// expired: it is refused, and still leads to no second run.
	keyWindows = 8

	// mostKeys bounds the keys that are known, of all hosts together.
	mostKeys = 100_000

	// mostJoined bounds the submissions that wait for one call.
	mostJoined = 64
)

// keyring knows the calls that hosts have made under idempotency keys. A key is a
// host's own. It is taken when its first call is routed or held, and given back if
// that call ends without ever being sent: a call that did not run may be made under
// it. It is known for keyWindows windows from when the call was received, by the
// clock of the events, and then forgotten: from then on it could lead to a second
// run. There are never more than mostKeys; the oldest make room once they have expired.
type keyring struct {
	known map[string]*keyed // by host/digest
	queue []*keyed          // in the order they were taken; one that was given back stays until it comes first
}

// keyed is the call that has a key.
type keyed struct {
	slot     string // host/digest
	call     CallID
	received int64  // seq of its call.received
	same     string // digest of what makes another submission the same call
	since    int64  // wall clock of call.received
}

func (d CallReceived) slot() string { return d.Host + "/" + d.Key }

func (k *keyring) take(x *keyed) {
	if len(k.known) >= mostKeys {
		k.dropFirst()
	}
	k.known[x.slot] = x
	k.queue = append(k.queue, x)
}

func (k *keyring) dropFirst() {
	for len(k.queue) > 0 {
		x := k.queue[0]
		k.queue[0] = nil
		k.queue = k.queue[1:]
		if k.known[x.slot] == x {
			delete(k.known, x.slot)
			return
		}
	}
}

// giveBack frees the key of a call that was never sent.
func (k *keyring) giveBack(c *call) {
	if x := k.known[c.received.slot()]; c.received.Key != "" && x != nil && x.received == c.story {
		delete(k.known, x.slot)
	}
}

// expire forgets the keys whose time is over, and what was given back. One behind
// another with more time waits with it.
func (k *keyring) expire(now, window int64) {
	for len(k.queue) > 0 {
		x := k.queue[0]
		if k.known[x.slot] == x && now-x.since <= keyWindows*window {
			return
		}
		k.queue[0] = nil
		if k.queue = k.queue[1:]; k.known[x.slot] == x {
			delete(k.known, x.slot)
		}
	}
}

// full reports whether no further key can be known: none has expired.
func (k *keyring) full(now, window int64) bool {
	return len(k.known) >= mostKeys && len(k.queue) > 0 && now-k.queue[0].since < window
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
	case x == nil && s.keys.full(e.Time, window):
		return refuse(CodeOverloaded, "%d idempotency keys are known, and none has expired (idempotency_window); try again later, or without a key", mostKeys)
	case x == nil:
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

// KeyTaken returns the call that has the idempotency key of a submission, so that
// this one will be no call of its own; false where there is none.
func (s *State) KeyTaken(d CallReceived) (CallID, bool) {
	x := s.keys.known[d.slot()]
	if d.Key == "" || x == nil {
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
		s.keys.take(&keyed{slot: d.slot(), call: c.id, received: c.story, same: d.Same, since: c.receivedAt})
	}
}
