package bustest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Wire is a TCP relay in front of a server. It can lose what one side says, read
// nothing of what the server says, and be cut, and its address stays when the server
// behind it is another.
type Wire struct {
	listener net.Listener
	mu       sync.Mutex
	backend  string
	loseUp   bool          // what the client says
	loseDown bool          // what the server says
	stalled  chan struct{} // closed when the server is listened to again
	open     map[net.Conn]struct{}
	relays   sync.WaitGroup
}

// NewWire relays to backend, HOST:PORT or a nats:// URL, until the test ends.
func NewWire(t testing.TB, backend string) *Wire {
	t.Helper()
	w := &Wire{
		listener: Must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")),
		backend:  strings.TrimPrefix(backend, "nats://"),
		open:     map[net.Conn]struct{}{},
	}
	w.relays.Go(w.accept)
	t.Cleanup(func() {
		_ = w.listener.Close()
		w.Cut()
		w.relays.Wait()
	})
	return w
}

// URL is the address of the relay.
func (w *Wire) URL() string { return "nats://" + w.listener.Addr().String() }

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		backend := w.backend
		w.mu.Unlock()
		server, err := net.Dial("tcp", backend)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.open[client], w.open[server] = struct{}{}, struct{}{}
		w.mu.Unlock()
		w.relays.Go(func() { w.relay(server, client, &w.loseUp) })
		w.relays.Go(func() { w.relay(client, server, &w.loseDown) })
	}
}

func (w *Wire) relay(to, from net.Conn, lose *bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		if lose == &w.loseDown {
			w.mu.Lock()
			stalled := w.stalled
			w.mu.Unlock()
			if stalled != nil {
				<-stalled
			}
		}
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		w.mu.Lock()
		lost := *lose
		w.mu.Unlock()
		if lost {
			continue
		}
		if _, err := io.Copy(to, bytes.NewReader(buf[:n])); err != nil {
			return
		}
	}
}

// Lose sets what is lost from now on.
func (w *Wire) Lose(up, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loseUp, w.loseDown = up, down
}

// Stall stops to read what the server says, as a client does that hangs. Cut ends it.
func (w *Wire) Stall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled == nil {
		w.stalled = make(chan struct{})
	}
}

// Cut closes every connection.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled != nil {
		close(w.stalled)
		w.stalled = nil
	}
	for c := range w.open {
		_ = c.Close()
	}
	clear(w.open)
}

// To sends new connections to another server.
func (w *Wire) To(backend string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backend = strings.TrimPrefix(backend, "nats://")
}
