package peer

import (
	"io"
	"sync"
)

const (
	tailSize = 8 << 10
	// tailKept is more than is shown, so that a secret cut in two at the far end is not shown in part.
	tailKept = 2 * tailSize
)

// tail keeps the end of what a peer writes to its standard error, and its size. It is no sign of an error.
type tail struct {
	mu   sync.Mutex
	kept []byte
	size int64
}

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size += int64(len(b))
	t.kept = append(t.kept, b[max(0, len(b)-tailKept):]...)
	if over := len(t.kept) - tailKept; over > 0 {
		t.kept = t.kept[:copy(t.kept, t.kept[over:])]
	}
	return len(b), nil
}

func (t *tail) read() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte{}, t.kept...)
}

func (t *tail) total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

// drain reads to the end, whatever it is: a pipe that is not drained stops its writer.
func (t *tail) drain(r io.Reader) { _, _ = io.Copy(t, r) }
