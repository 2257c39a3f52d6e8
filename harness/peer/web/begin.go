package web

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

var (
	errSealed = errors.New("the request was given up before it was written")
	errAgain  = errors.New("the request may have been read, it is not sent again")
)

// A beginning knows whether a byte of one request may have left. It is the point where never written and perhaps run part ways, so
// once the request is given up nothing may begin any more.
type beginning struct {
	told func() // by the caller, may be nil

	mu     sync.Mutex
	begun  bool
	sealed bool

	read atomic.Bool // a byte of the body was handed out, to be written
}

// begin is called right before bytes are written. An error forbids them.
func (b *beginning) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sealed && !b.begun {
		return errSealed
	}
	if !b.begun && b.told != nil {
		b.told()
	}
	b.begun = true
	return nil
}

// seal forbids a beginning from now on, and tells whether there was one. Without it net/http could go on writing, in a goroutine of
// its own, a request that was reported as never written.
func (b *beginning) seal() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sealed = true
	return b.begun
}

// got makes a connection announce its next write. One of HTTP/2 writes for many requests, so there the request begins now.
func (b *beginning) got(info httptrace.GotConnInfo) {
	c, shared := ours(info.Conn)
	if c != nil {
		c.ready()
	}
	if c == nil || shared {
		_ = b.begin() // cannot be sealed: this is called within RoundTrip
		return
	}
	begin := b.begin
	c.first.Store(&begin)
}

// trace returns what net/http tells about one attempt. Handshakes may go on in other goroutines after the request has ended.
func (b *beginning) trace(got, handshake *atomic.Bool) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { got.Store(false) }, // also for another attempt of net/http
		GotConn: func(info httptrace.GotConnInfo) {
			got.Store(true)
			b.got(info)
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				handshake.Store(true)
			}
		},
	}
}

// body is the body of one attempt.
func (b *beginning) body(message []byte) io.ReadCloser {
	return io.NopCloser(&noted{Reader: bytes.NewReader(message), read: &b.read})
}

// again is http.Request.GetBody: net/http asks for it when it wants to send the request once more. That is what it may do:
//   - HTTP/1: a reused connection turned out to be closed before a byte was written; and, for methods and headers that say the request
//     may run twice, whenever a reused connection failed.
//   - HTTP/2: the connection went away before the request was put on it, or the peer said that it has not looked at it (REFUSED_STREAM,
//     GOAWAY), or it answered with PROTOCOL_ERROR, which says no such thing.
//
// The last words of a peer are not ours to rely on: the body is given again only where no byte of it has been read before, so a
// message leaves at most once. Without a GetBody the first case of HTTP/1 would fail for no reason.
func (b *beginning) again(message []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		b.mu.Lock()
		begun := b.begun
		b.mu.Unlock()
		if begun && b.read.Load() {
			return nil, errAgain
		}
		b.read.Store(false)
		return b.body(message), nil
	}
}

// noted notes that it was read.
type noted struct {
	*bytes.Reader
	read *atomic.Bool
}

func (n *noted) Read(p []byte) (int, error) {
	n.read.Store(true)
	return n.Reader.Read(p)
}

func (n *noted) WriteTo(w io.Writer) (int64, error) {
	n.read.Store(true)
	return n.Reader.WriteTo(w)
}

// A conn is a connection that announces the first byte of a request, and has to be ready within the time for connecting, the
// handshakes with proxy and endpoint included.
type conn struct {
	net.Conn

	first atomic.Pointer[func() error]
	once  sync.Once
}

func newConn(c net.Conn, deadline time.Time) (*conn, error) {
	if err := c.SetDeadline(deadline); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &conn{Conn: c}, nil
}

// ready ends the time for connecting.
func (c *conn) ready() {
	c.once.Do(func() { _ = c.SetDeadline(time.Time{}) }) // if it fails, the connection is closed, which the next read says
}

// Write announces the request that the connection was given to last, if this is its first byte.
func (c *conn) Write(p []byte) (int, error) {
	if begin := c.first.Swap(nil); begin != nil {
		if err := (*begin)(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// ours finds our connection below the layers of TLS, and tells whether requests share it.
func ours(c net.Conn) (own *conn, shared bool) {
	for {
		switch layer := c.(type) {
		case *conn:
			return layer, shared
		case *tls.Conn:
			shared = shared || layer.ConnectionState().NegotiatedProtocol == "h2"
			c = layer.NetConn()
		default:
			return nil, false
		}
	}
}
