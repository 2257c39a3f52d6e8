package web

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

// TestARequestThatMayHaveBeenReadIsNotSentAgain closes a connection that was kept alive when the second request is on it, which is
// where net/http would send a request again that says of itself that it may run twice.
func TestARequestThatMayHaveBeenReadIsNotSentAgain(t *testing.T) {
	for _, part := range []string{"all of it", "its first byte"} {
		var requests, connections atomic.Int32
		addr := raw(t, func(n int, c net.Conn, in *bufio.Reader) {
			connections.Store(int32(n))
			for {
				if requests.Load() == 1 && part == "its first byte" {
					in.ReadByte()
					requests.Add(1)
					return
				}
				if _, err := readRequest(in); err != nil {
					return
				}
				if requests.Add(1) > 1 {
					return
				}
				io.WriteString(c, okAnswer)
			}
		})
		c := client(t, settings(t, "http://"+addr))
		exchange(t, c, post("first"))
		var began atomic.Int32
		r := post("second")
		r.Header = append(r.Header, Header{"Idempotency-Key", "1"})
		r.Began = func() { began.Add(1) }
		_, err := c.Do(t.Context(), r)
		wantFailure(t, err, KindClosed, true)
		if requests.Load() != 2 || connections.Load() != 1 || began.Load() != 1 {
			t.Errorf("%s: %d requests, %d connections, began %d times", part, requests.Load(), connections.Load(), began.Load())
		}
	}
}

// TestAConnectionThatWasClosedMeanwhileIsReplaced closes a connection that was kept alive before the second request. Whether net/http
// sees that before or after it has taken the connection, the request arrives once.
func TestAConnectionThatWasClosedMeanwhileIsReplaced(t *testing.T) {
	for range 20 {
		var second atomic.Int32
		addr := raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
			r, err := readRequest(in)
			if err == nil && r.Header.Get("Second") != "" {
				second.Add(1)
			}
			io.WriteString(c, okAnswer) // and closes, without having said so
		})
		c := client(t, settings(t, "http://"+addr))
		exchange(t, c, post("first"))
		var began atomic.Int32
		r := post("second")
		r.Header = append(r.Header, Header{"Second", "1"})
		r.Began = func() { began.Add(1) }
		a, err := c.Do(t.Context(), r)
		if err == nil {
			a.Close()
			if began.Load() != 1 || second.Load() != 1 {
				t.Fatalf("began %d times, arrived %d times", began.Load(), second.Load())
			}
			continue
		}
		// The end of the connection can be on its way while we write, and then nobody knows whether the request was read.
		wantFailure(t, err, KindClosed, began.Load() == 1)
		if second.Load() > 0 {
			t.Fatalf("arrived, and failed: %v", err)
		}
	}
}

// TestNothingIsWrittenOnceARequestWasGivenUp seals a beginning before its connection writes, as when a context ends between the two.
func TestNothingIsWrittenOnceARequestWasGivenUp(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	c := &conn{Conn: here}
	called := false
	b := &beginning{told: func() { called = true }}
	begin := b.begin
	c.first.Store(&begin)
	if b.seal() {
		t.Error("it had begun")
	}
	if n, err := c.Write([]byte("x")); n != 0 || err == nil || called {
		t.Errorf("wrote %d, %v, began %v", n, err, called)
	}
}

func TestWhatMayBeSentAgain(t *testing.T) {
	for _, c := range []struct{ begun, read, again bool }{
		{false, false, true}, {false, true, true}, {true, false, true}, {true, true, false},
	} {
		b := &beginning{begun: c.begun}
		b.read.Store(c.read)
		body, err := b.again([]byte("x"))()
		if (err == nil) != c.again {
			t.Errorf("begun %v, read %v: %v", c.begun, c.read, err)
		}
		if err == nil {
			if text, _ := io.ReadAll(body); string(text) != "x" || !b.read.Load() {
				t.Errorf("the body is %q, read %v", text, b.read.Load())
			}
		}
	}
}

// TestHTTP2RefusalsAreNotAnsweredWithTheRequest has a server that reads the request and then says each of the things upon which
// net/http would send it again.
func TestHTTP2RefusalsAreNotAnsweredWithTheRequest(t *testing.T) {
	const protocolError, refusedStream = 1, 7
	for name, answer := range map[string]func(stream uint32) []byte{
		"REFUSED_STREAM": func(s uint32) []byte { return frame(3, s, binary.BigEndian.AppendUint32(nil, refusedStream)) },
		"PROTOCOL_ERROR": func(s uint32) []byte { return frame(3, s, binary.BigEndian.AppendUint32(nil, protocolError)) },
		"GOAWAY":         func(uint32) []byte { return frame(7, 0, append(make([]byte, 8), "Bearer secret"...)) },
	} {
		var bodies atomic.Int32
		o := rawHTTP2(t, func(c net.Conn, kind byte, stream uint32, payload []byte) bool {
			if kind == 0 && strings.Contains(string(payload), "message") {
				bodies.Add(1)
				c.Write(answer(stream))
			}
			return true
		})
		began := 0
		r := post("message")
		r.Began = func() { began++ }
		_, err := client(t, o).Do(t.Context(), r)
		f := wantFailure(t, err, KindClosed, true)
		if bodies.Load() != 1 || began != 1 || strings.Contains(f.Error(), "secret") {
			t.Errorf("%s: arrived %d times, began %d times: %v", name, bodies.Load(), began, f)
		}
	}
}

func frame(kind byte, stream uint32, payload []byte) []byte {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, 0}
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

func TestACancelledRequestClosesItsConnection(t *testing.T) {
	closed := make(chan error, 1)
	arrived := make(chan struct{})
	addr := raw(t, func(_ int, _ net.Conn, in *bufio.Reader) {
		readRequest(in)
		close(arrived)
		_, err := in.ReadByte()
		closed <- err
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(fmt.Errorf("no longer wanted"))
	}()
	_, err := client(t, settings(t, "http://"+addr)).Do(ctx, post("{}"))
	f := wantFailure(t, err, KindCancelled, true)
	if !strings.Contains(f.Error(), "no longer wanted") {
		t.Errorf("%v does not say why", f)
	}
	if err := <-closed; err == nil {
		t.Error("the connection brought a byte")
	}
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
	var requests atomic.Int32
	addr := raw(t, func(int, net.Conn, *bufio.Reader) { requests.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client(t, settings(t, "http://"+addr)).Do(ctx, Request{Method: http.MethodGet, Began: func() { t.Error("began") }})
	wantFailure(t, err, KindCancelled, false)
	if requests.Load() != 0 {
		t.Error("a connection was made")
	}
}

// TestARequestBeginsWithItsFirstByte shows that having a connection is not yet a beginning, and that the caller knows before the peer.
func TestARequestBeginsWithItsFirstByte(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	c := &conn{Conn: here}
	began := make(chan struct{}, 2)
	b := &beginning{told: func() { began <- struct{}{} }}
	b.got(httptrace.GotConnInfo{Conn: c})
	if len(began) != 0 {
		t.Error("it began without a byte")
	}
	go func() {
		c.Write([]byte("x"))
		c.Write([]byte("y"))
		here.Close()
	}()
	read := make([]byte, 1)
	if _, err := there.Read(read); err != nil || len(began) != 1 {
		t.Errorf("%v, began %d times before its first byte was read", err, len(began))
	}
	if _, err := io.ReadAll(there); err != nil || len(began) != 1 || !b.seal() {
		t.Errorf("%v, began %d times", err, len(began))
	}
}
