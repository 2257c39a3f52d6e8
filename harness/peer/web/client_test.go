package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestARequestIsSentAsItIsToldAndWithNothingElse(t *testing.T) {
	got := make(chan *http.Request, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=b")
		got <- r
	}))
	defer s.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	c := client(t, settings(t, s.URL+"/mcp?key=1"))
	r := post("{}")
	r.Header = append(r.Header, Header{"Authorization", "Bearer x"}, Header{"X-Two", "1"}, Header{"x-two", "2"})
	for range 2 {
		exchange(t, c, r)
		r := <-got
		want := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer x"}, "X-Two": {"1", "2"},
			"User-Agent": {"waybill"}, "Accept-Encoding": {"gzip"}, "Content-Length": {"2"}}
		if fmt.Sprint(r.Header) != fmt.Sprint(want) || r.RequestURI != "/mcp?key=1" || r.Method != "POST" {
			t.Errorf("%s %s %v", r.Method, r.RequestURI, r.Header)
		}
	}
	exchange(t, c, Request{Method: "DELETE", Header: []Header{{"User-Agent", "other"}}})
	if r := <-got; r.UserAgent() != "other" || r.Method != "DELETE" || r.ContentLength != 0 {
		t.Errorf("%s %v", r.Method, r.Header)
	}
}

func TestStreamsThatStayTakeNoConnectionFromRequests(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	o := settings(t, s.URL)
	o.Connections = 1
	c := client(t, o)
	stay := Request{Method: "GET", Stays: true}
	a, err := c.Do(t.Context(), stay)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	exchange(t, c, post("{}"))
	stay.Began = func() { t.Error("a second stream has a connection") }
	_, err = c.Do(soon(t), stay)
	wantFailure(t, err, KindTimeout, false)
}

func TestWhatKeepsAConnectionFromComingAbout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	silent := raw(t, func(_ int, _ net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) })
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	trusted := secure(t, true, http.NotFoundHandler())
	other, _ := authority(t, "127.0.0.1")
	change := func(o Options, f func(*Options)) Options { f(&o); return o }
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.Config.ErrorLog = quiet
	old.StartTLS()
	defer old.Close()
	for _, c := range []struct {
		name, kind string
		o          Options
	}{
		{"nobody listens", KindConnect, settings(t, "http://"+nobody)},
		{"no such name", KindResolve, settings(t, "https://no.such.name.invalid/")},
		{"silence instead of TLS", KindTimeout, change(settings(t, "https://"+silent), func(o *Options) { o.Connect = 50 * time.Millisecond })},
		{"silence of a proxy", KindTimeout, change(settings(t, "https://a.example"), func(o *Options) {
			o.Connect, o.Proxy = 50*time.Millisecond, &url.URL{Scheme: "http", Host: silent}
		})},
		{"no TLS", KindTLS, settings(t, strings.Replace(plain.URL, "http:", "https:", 1))},
		{"TLS 1.1", KindTLS, settings(t, old.URL)},
		{"the system's authorities", KindTLS, change(trusted, func(o *Options) { o.RootCAs = nil })},
		{"another authority", KindTLS, change(trusted, func(o *Options) { o.RootCAs = other })},
		{"another name", KindTLS, change(trusted, func(o *Options) {
			u := *o.Endpoint
			u.Host = "localhost:" + u.Port()
			o.Endpoint = &u
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := post("{}")
			r.Began = func() { t.Error("began") }
			_, err := client(t, c.o).Do(t.Context(), r)
			if f := wantFailure(t, err, c.kind, false); !strings.HasPrefix(f.Error(), origin(c.o.Endpoint)+": ") {
				t.Errorf("%v does not name the endpoint", f)
			}
		})
	}
}

// TestAnswersThatAreNone has raw answers, each of which ends the request by itself, and shows nothing of what the peer wrote.
func TestAnswersThatAreNone(t *testing.T) {
	for _, c := range []struct{ name, answer, kind string }{
		{"the end", "", KindClosed},
		{"half a header", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n", KindClosed},
		{"half a line", "HTTP/1.1 200 OK\r\nContent-", KindMalformed},
		{"another protocol", "Bearer secret\r\n\r\n", KindMalformed},
		{"a line that is none", "HTTP/1.1 200 OK\r\nBearer secret\r\n\r\n", KindMalformed},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", KindMalformed},
		{"a change of protocol", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: secret\r\n\r\n", KindMalformed},
		{"a big header", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", KindHeaderTooLarge},
		{"interim answers without end", strings.Repeat("HTTP/1.1 100 Continue\r\nX: y\r\n\r\n", 10<<10), KindHeaderTooLarge},
	} {
		addr := raw(t, func(_ int, conn net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(conn, c.answer)
			conn.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, in) // so that what is unread does not reset the connection
		})
		_, err := client(t, settings(t, "http://"+addr+"/path?query=secret")).Do(t.Context(), post("{}"))
		if f := wantFailure(t, err, c.kind, true); strings.Contains(f.Error(), "secret") {
			t.Errorf("%s: %v", c.name, f)
		}
	}
}

// TestABigHeaderOfHTTP2IsRefused has a header that is big only when it is decoded. One that is big on the wire as well ends the
// connection, without a word of net/http about why.
func TestABigHeaderOfHTTP2IsRefused(t *testing.T) {
	for _, c := range []struct {
		value func(n int) string
		kind  string
	}{
		{func(int) string { return strings.Repeat("x", 1000) }, KindHeaderTooLarge},
		{func(n int) string { return strings.Repeat(fmt.Sprint(n), 1000) }, KindMalformed},
	} {
		o := secure(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for n := range 200 {
				w.Header().Add("X-Many", c.value(n))
			}
		}))
		_, err := client(t, o).Do(t.Context(), post("{}"))
		wantFailure(t, err, c.kind, true)
	}
}

func TestAFailureUnwrapsToWhatTheContextSays(t *testing.T) {
	addr := raw(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		readRequest(in)
		io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\n")
		io.Copy(io.Discard, in)
	})
	_, err := client(t, settings(t, "http://"+addr)).Do(soon(t), post("{}"))
	wantFailure(t, err, KindTimeout, true)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestOnlyTheProxyOfTheOptionsIsUsed(t *testing.T) {
	var through atomic.Int32
	o := secure(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	inside := o.Endpoint.Host
	proxy := raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
		r, err := readRequest(in)
		if err != nil || r.Method != "CONNECT" || r.Host != "127.0.0.1:1" || r.Header.Get("Authorization") != "" {
			return
		}
		out, err := net.Dial("tcp", inside)
		if err != nil {
			return
		}
		defer out.Close()
		through.Add(1)
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(out, in)
		io.Copy(c, out)
	})
	o.Endpoint = &url.URL{Scheme: "https", Host: "127.0.0.1:1"}
	o.Proxy = &url.URL{Scheme: "http", Host: proxy}
	began := 0
	r := post("message")
	r.Header = append(r.Header, Header{"Authorization", "Bearer x"})
	r.Began = func() { began++ }
	a, body := exchange(t, client(t, o), r)
	if body != "message" || a.Proto != "HTTP/2.0" || through.Load() != 1 || began != 1 {
		t.Errorf("%q by %s, %d times through the proxy, began %d times", body, a.Proto, through.Load(), began)
	}
}

// TestWhatIsOverMakesRoom has more failures, and more answers, than may be under way at once.
func TestWhatIsOverMakesRoom(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	addr := raw(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		if readRequest(in); !fails.Load() {
			io.WriteString(conn, okAnswer)
		}
	})
	c := client(t, settings(t, "http://"+addr))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range c.options.Connections + 1 {
		_, err := c.Do(ctx, post("{}"))
		wantFailure(t, err, KindClosed, true)
	}
	fails.Store(false)
	for range c.options.Connections + 1 {
		a, err := c.Do(ctx, Request{Method: http.MethodGet}) // which net/http sends again where the connection is gone
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		a.Close()
	}
	if len(c.requests.room) != 0 {
		t.Errorf("%d requests are under way", len(c.requests.room))
	}
}
