package harness

import (
	"sync"

	"waybill/domain"
)

// listeners are the calls whose hosts asked for progress, until they are answered.
// The calls themselves belong to the loop's goroutine, and progress comes from
// those that read what peers write.
type listeners struct {
	mu    sync.Mutex
	calls map[string]domain.CallID
}

func (s *listeners) add(id domain.CallID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]domain.CallID{}
	}
	s.calls[id.CallKey()] = id
}

// remove returns when no progress of the call is being told, and none will be.
func (s *listeners) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, key)
}

// Progress hands what a peer said of a call under way to Config.Progress, if the
// call's host asked for it and has had no reply yet. It is no event and bears on
// no decision. It never blocks on the loop; safe for concurrent use.
func (l *Loop) Progress(call string, progress []byte) {
	if l.cfg.Progress == nil {
		return
	}
	l.listening.mu.Lock()
	defer l.listening.mu.Unlock() // held meanwhile, so that the reply comes after
	if id, ok := l.listening.calls[call]; ok {
		l.cfg.Progress(id, progress)
	}
}
