package domain

// shelfSize bounds a shelf; the oldest call falls off first.
const shelfSize = 10_000

// shelf keeps calls that are over for now, by key, each until a time of its own
// on the wall clock: those that wait for a host's input, and those an operator
// may send again.
type shelf struct {
	calls map[string]*shelved
	kept  map[string]*shelved // of them, those whose bytes are kept
	queue []*shelved          // in the order they were put; one that was taken stays until it comes first
}

type shelved struct {
	call  *call
	until int64 // wall clock, nanoseconds
}

func newShelf() shelf { return shelf{calls: map[string]*shelved{}, kept: map[string]*shelved{}} }

func (s *shelf) put(c *call, until int64) {
	e, key := &shelved{call: c, until: until}, c.id.CallKey()
	s.calls[key] = e
	if delete(s.kept, key); c.received.Kept {
		s.kept[key] = e
	}
	s.queue = append(s.queue, e)
	if len(s.queue) > shelfSize {
		s.dropFirst()
	}
}

func (s *shelf) get(key string) *call {
	if e := s.calls[key]; e != nil {
		return e.call
	}
	return nil
}

func (s *shelf) take(key string) *call {
	c := s.get(key)
	s.drop(key)
	return c
}

// expire drops what has had its time. One behind another with more time waits
// with it.
func (s *shelf) expire(now int64) {
	for len(s.queue) > 0 && now > s.queue[0].until {
		s.dropFirst()
	}
}

func (s *shelf) dropFirst() {
	e := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	if key := e.call.id.CallKey(); s.calls[key] == e {
		s.drop(key)
	}
}

func (s *shelf) drop(key string) {
	delete(s.calls, key)
	delete(s.kept, key)
}
