package web

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// rawHTTP2 serves connections on which the test answers each frame after the settings; it returns whether to go on.
func rawHTTP2(t *testing.T, answer func(c net.Conn, kind byte, stream uint32, payload []byte) bool) Options {
	t.Helper()
	ca, cert := authority(t, "127.0.0.1")
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	addr := raw(t, func(_ int, plain net.Conn, _ *bufio.Reader) {
		c := tls.Server(plain, config)
		in := bufio.NewReader(c)
		if _, err := in.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
			return
		}
		c.Write(frame(4, 0, nil))
		for {
			head := make([]byte, 9)
			if _, err := io.ReadFull(in, head); err != nil {
				return
			}
			payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
			if _, err := io.ReadFull(in, payload); err != nil || !answer(c, head[3], binary.BigEndian.Uint32(head[5:]), payload) {
				return
			}
		}
	})
	o := settings(t, "https://"+addr)
	o.RootCAs = ca
	return o
}

func TestHTTP2IsUsedWhereItIsOfferedAndConnectionsAreReused(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		var mu sync.Mutex
		remotes := map[string]bool{}
		o := secure(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			remotes[r.RemoteAddr] = true
			mu.Unlock()
			io.Copy(w, r.Body)
		}))
		c := client(t, o)
		want := "HTTP/1.1"
		if http2 {
			want = "HTTP/2.0"
		}
		for n := range 3 {
			began := 0
			r := post(fmt.Sprint("message ", n))
			r.Began = func() { began++ }
			a, body := exchange(t, c, r)
			if a.Proto != want || body != string(r.Body) || began != 1 {
				t.Errorf("%s: %q, began %d times; want %s", a.Proto, body, began, want)
			}
		}
		if len(remotes) != 1 {
			t.Errorf("%s: %d connections for three requests", want, len(remotes))
		}
	}
}

// TestAsManyRequestsAreUnderWayOverHTTP2AsMayBe has more requests at once than the server has streams: the others wait, written nowhere.
func TestAsManyRequestsAreUnderWayOverHTTP2AsMayBe(t *testing.T) {
	const streams = 40
	var under, most atomic.Int32
	var once sync.Once
	full := make(chan struct{})
	o := secureWith(t, &http.HTTP2Config{MaxConcurrentStreams: 2 * streams}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := under.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if n == streams {
			once.Do(func() { close(full) })
		}
		<-full
		io.Copy(w, r.Body)
		under.Add(-1)
	}))
	o.Connections = streams
	c := client(t, o)
	var all sync.WaitGroup
	for n := range 3 * streams {
		all.Go(func() {
			a, err := c.Do(t.Context(), post(fmt.Sprint(n)))
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Close()
			if body, err := a.Body(); err != nil || string(body) != fmt.Sprint(n) {
				t.Errorf("%q, %v", body, err)
			}
		})
	}
	all.Wait()
	if most.Load() != streams {
		t.Errorf("%d at once", most.Load())
	}
}

func TestClosingAnHTTP2StreamLeavesTheConnection(t *testing.T) {
	ended := make(chan struct{})
	var remotes sync.Map
	o := secure(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remotes.Store(r.RemoteAddr, true)
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(ended)
		}
	}))
	c := client(t, o)
	a, err := c.Do(t.Context(), Request{Method: http.MethodGet})
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	<-ended
	exchange(t, c, post("{}"))
	n := 0
	remotes.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d connections", n)
	}
}
