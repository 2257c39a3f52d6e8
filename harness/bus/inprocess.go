package bus

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// buffered is what may wait in each direction of a connection inside the process.
	buffered = 256 << 10

	// lastWords is how long a connection that is closed may take to send what waits.
	lastWords = time.Second
)

// inProcess connects clients to a server in this process. The server hands out the end
// of a pipe that holds nothing: who writes waits for who reads, and the client does so
// with its lock held, while the server may be busy with what it read before. So each
// connection has buffers of its own, as a socket has.
type inProcess struct{ ns *server.Server }

// InProcessConn implements nats.InProcessConnProvider.
func (p inProcess) InProcessConn() (net.Conn, error) {
	conn, err := p.ns.InProcessConn()
	if err != nil {
		return nil, err
	}
	return newBuffered(conn), nil
}

var _ nats.InProcessConnProvider = inProcess{}

// bufferedConn is one end of a connection with buffers. Its methods may be called at
// once; Close waits for what it has started.
type bufferedConn struct {
	net.Conn
	in, out *half
	pumps   sync.WaitGroup
	close   sync.Once
}

func newBuffered(conn net.Conn) *bufferedConn {
	c := &bufferedConn{Conn: conn, in: newHalf(), out: newHalf()}
	c.pumps.Go(c.receive)
	c.pumps.Go(c.send)
	return c
}

// receive reads ahead until the other side has closed.
func (c *bufferedConn) receive() {
	b := make([]byte, 32<<10)
	for {
		n, err := c.Conn.Read(b)
		if n > 0 {
			if _, failed := c.in.write(b[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			c.in.end(err)
			return
		}
	}
}

// send writes what waits, and when there is no more, closes.
func (c *bufferedConn) send() {
	var b []byte
	for {
		var ok bool
		if b, ok = c.out.take(b); !ok {
			_ = c.Conn.Close() // a pipe, whose closing does not fail
			return
		}
		if _, err := c.Conn.Write(b); err != nil {
			c.out.end(err)
		}
	}
}

// Read implements net.Conn.
func (c *bufferedConn) Read(p []byte) (int, error) { return c.in.read(p) }

// Write implements net.Conn. It returns when p is in the buffer.
func (c *bufferedConn) Write(p []byte) (int, error) { return c.out.write(p) }

// Close sends what waits, for a second at most.
func (c *bufferedConn) Close() error {
	c.close.Do(func() {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(lastWords)) // a pipe has deadlines
		c.out.end(net.ErrClosed)
		c.in.end(net.ErrClosed)
	})
	c.pumps.Wait()
	return nil
}

// SetDeadline implements net.Conn.
func (c *bufferedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *bufferedConn) SetReadDeadline(t time.Time) error { return c.in.setDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *bufferedConn) SetWriteDeadline(t time.Time) error { return c.out.setDeadline(t) }

// half is one direction: bytes that were written and not yet read.
type half struct {
	mu       sync.Mutex
	changed  *sync.Cond
	bytes    []byte
	from     int   // of bytes, what was read
	err      error // why nothing more is written; what is there can still be read
	deadline time.Time
}

func newHalf() *half {
	h := &half{}
	h.changed = sync.NewCond(&h.mu)
	return h
}

// write waits for room. One write may go beyond it, so that none is cut.
func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.bytes)-h.from >= buffered && h.err == nil && !h.late() {
		h.wait()
	}
	switch {
	case h.err != nil:
		return 0, h.err
	case h.late():
		return 0, os.ErrDeadlineExceeded
	}
	if h.from > 0 && len(h.bytes)+len(p) > cap(h.bytes) { // rather than grow
		h.bytes, h.from = h.bytes[:copy(h.bytes, h.bytes[h.from:])], 0
	}
	h.bytes = append(h.bytes, p...)
	h.changed.Broadcast()
	return len(p), nil
}

// read waits for bytes.
func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.from == len(h.bytes) && h.err == nil && !h.late() {
		h.wait()
	}
	switch {
	case h.late():
		return 0, os.ErrDeadlineExceeded
	case h.from == len(h.bytes):
		return 0, h.err
	}
	n := copy(p, h.bytes[h.from:])
	if h.from += n; h.from == len(h.bytes) {
		h.bytes, h.from = h.bytes[:0], 0
	}
	h.changed.Broadcast()
	return n, nil
}

// take waits for bytes and returns all of them, in exchange for a buffer that is not
// used any more; false where no more come.
func (h *half) take(spare []byte) ([]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.bytes) == 0 && h.err == nil {
		h.changed.Wait()
	}
	b := h.bytes
	h.bytes = spare[:0]
	h.changed.Broadcast()
	return b, len(b) > 0
}

// end says that nothing more is written.
func (h *half) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
	}
	h.changed.Broadcast()
}

func (h *half) setDeadline(t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = t
	h.changed.Broadcast()
	return nil
}

func (h *half) late() bool { return !h.deadline.IsZero() && !time.Now().Before(h.deadline) }

// wait waits for a change, or for the deadline.
func (h *half) wait() {
	if h.deadline.IsZero() {
		h.changed.Wait()
		return
	}
	timer := time.AfterFunc(time.Until(h.deadline), h.changed.Broadcast)
	h.changed.Wait()
	timer.Stop()
}
