package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// answered sends a request to a handler and returns what Do does.
func answered(t *testing.T, h http.HandlerFunc, change func(*Options)) *Answer {
	t.Helper()
	s := httptest.NewServer(h)
	o := settings(t, s.URL)
	change(&o)
	a, err := client(t, o).Do(t.Context(), post("{}"))
	t.Cleanup(s.Close) // before which the answer is closed, for cleanups run backwards
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func unchanged(*Options) {}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
}

func TestABodyIsReadUpToItsLimit(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 513, 4096, 4097, 100_000} {
		body := strings.Repeat("x", size)
		a := answered(t, text(body), func(o *Options) { o.MaxBody = 4096 })
		got, err := a.Body()
		switch {
		case size <= 4096 && (err != nil || string(got) != body):
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		case size > 4096 && (!errors.Is(err, ErrTooLarge) || got != nil):
			t.Errorf("%d bytes over the limit: %d, %v", size, len(got), err)
		}
		if e := a.Excerpt(); string(e) != body[:min(size, 512)] {
			t.Errorf("%d bytes: the excerpt has %d", size, len(e))
		}
	}
}

func TestAnExcerptTakesNothingFromTheBody(t *testing.T) {
	body := strings.Repeat("0123456789", 1000)
	a := answered(t, text(body), unchanged)
	for range 2 {
		if e := a.Excerpt(); string(e) != body[:512] {
			t.Errorf("%q", e)
		}
	}
	if got, err := a.Body(); err != nil || string(got) != body {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestTypes(t *testing.T) {
	for field, want := range map[string]string{
		"text/event-stream": "text/event-stream", "Application/JSON; charset=utf-8": "application/json", "": "",
		" TEXT/html ; broken;;=": "text/html",
	} {
		a := &Answer{Header: http.Header{"Content-Type": {field}}}
		if got := a.Type(); got != want {
			t.Errorf("%q is %q, want %q", field, got, want)
		}
	}
}

func zipped(w http.ResponseWriter) *gzip.Writer {
	w.Header().Set("Content-Encoding", "gzip")
	return gzip.NewWriter(w)
}

func TestGzipIsUndoneAndItsBombsAreStopped(t *testing.T) {
	limited := func(o *Options) { o.MaxBody, o.MaxStream = 1<<20, 1<<20 }
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		z := zipped(w)
		defer z.Close()
		zeros := make([]byte, 1<<20)
		for range 64 {
			z.Write(zeros)
		}
	}
	if _, err := answered(t, bomb, limited).Body(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a body: %v", err)
	}
	if _, err := all(answered(t, bomb, limited)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an event: %v", err)
	}
	body, err := answered(t, func(w http.ResponseWriter, _ *http.Request) {
		z := zipped(w)
		z.Write([]byte("decoded"))
		z.Close()
	}, limited).Body()
	if err != nil || string(body) != "decoded" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestAZippedStreamIsReadAsItComes(t *testing.T) {
	read := make(chan struct{})
	a := answered(t, func(w http.ResponseWriter, _ *http.Request) {
		z := zipped(w)
		for range 3 {
			io.WriteString(z, "data: x\r\r")
			z.Flush()
			w.(http.Flusher).Flush()
			<-read
		}
		z.Close()
	}, unchanged)
	n := 0
	for e, err := range a.Events() {
		if err != nil || string(e.Data) != "x" {
			t.Fatalf("%+v, %v", e, err)
		}
		n++
		read <- struct{}{}
	}
	if n != 3 {
		t.Errorf("%d events", n)
	}
}

func TestBodiesThatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ name, answer, kind string }{
		{"cut short", "Content-Length: 10\r\n\r\nsecret", KindCut},
		{"chunks cut short", "Transfer-Encoding: chunked\r\n\r\n6\r\nsecret\r\n", KindCut},
		{"no chunks", "Transfer-Encoding: chunked\r\n\r\nsecret\r\n", KindMalformed},
		{"no gzip", "Content-Encoding: gzip\r\nContent-Length: 17\r\n\r\nsecret is no gzip", KindMalformed},
		{"another encoding", "Content-Encoding: br\r\nContent-Length: 6\r\n\r\nsecret", KindMalformed},
	} {
		addr := raw(t, func(_ int, conn net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+c.answer)
		})
		for how, read := range map[string]func(*Answer) error{
			"body":   func(a *Answer) error { _, err := a.Body(); return err },
			"events": func(a *Answer) error { _, err := all(a); return err },
		} {
			a, err := client(t, settings(t, "http://"+addr)).Do(t.Context(), post("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if f := wantFailure(t, read(a), c.kind, true); strings.Contains(f.Error(), "secret") {
				t.Errorf("%s, %s: %v", c.name, how, f)
			}
			a.Close()
		}
	}
}

func TestASlowBodyEndsWithTheContext(t *testing.T) {
	addr := raw(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		readRequest(in)
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
		in.ReadByte()
	})
	for range 2 {
		a, err := client(t, settings(t, "http://"+addr)).Do(soon(t), post("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Body()
		wantFailure(t, err, KindTimeout, true)
		a.Close()
	}
}

func TestFinishKeepsTheConnection(t *testing.T) {
	for _, c := range []struct {
		finish      bool
		connections int32
	}{{true, 1}, {false, 2}} {
		var connections atomic.Int32
		read := make(chan struct{})
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
			<-read
		}))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		s.Start()
		defer s.Close()
		cl := client(t, settings(t, s.URL))
		for range 2 {
			a, err := cl.Do(t.Context(), post("{}"))
			if err != nil {
				t.Fatal(err)
			}
			for range a.Events() {
				break
			}
			if c.finish {
				read <- struct{}{}
				a.Finish(time.Minute)
			} else {
				a.Finish(0)
				read <- struct{}{}
			}
		}
		if n := connections.Load(); n != c.connections {
			t.Errorf("finish %v: %d connections", c.finish, n)
		}
	}
}

// piped is an answer whose body the test writes, within a bubble where time is the test's.
func piped(t *testing.T, o Options) (*Answer, *io.PipeWriter) {
	in, out := io.Pipe()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) }) // as net/http does
	t.Cleanup(func() { stop() })
	return newAnswer(ctx, cancel, &http.Response{StatusCode: 200, Header: http.Header{}, Body: in}, &o), out
}

func TestAStreamThatBringsNothingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := settings(t, "http://127.0.0.1/")
		o.Idle = 10 * time.Second
		a, out := piped(t, o)
		defer a.Close()
		go func() {
			for _, s := range []string{":", " ping", "\n", "data: x\n", "\n", "data: y"} { // each of them in time
				<-time.After(9 * time.Second)
				io.WriteString(out, s)
			}
		}()
		began := time.Now()
		got, err := all(a)
		wantFailure(t, err, KindIdle, true)
		if took := time.Since(began); took != 64*time.Second || len(got) != 1 {
			t.Errorf("given up after %v with %d events", took, len(got))
		}
	})
}

func TestAReaderMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := settings(t, "http://127.0.0.1/")
		o.Idle = time.Second
		a, out := piped(t, o)
		defer a.Close()
		go func() {
			io.WriteString(out, "data: x\n\n")
			io.WriteString(out, "data: y\n\n")
			out.Close()
		}()
		var got []Event
		for e, err := range a.Events() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
			<-time.After(time.Hour)
		}
		if show(got) != `"x";"y";` {
			t.Errorf("%s", show(got))
		}
	})
}

func TestFinishWaitsNoLongerThanItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := settings(t, "http://127.0.0.1/")
		o.Idle = time.Hour
		a, out := piped(t, o)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for {
				if _, err := io.WriteString(out, "data: x\n\n"); err != nil {
					return
				}
				<-time.After(time.Second)
			}
		}()
		for range a.Events() {
			break
		}
		began := time.Now()
		a.Finish(1500 * time.Millisecond)
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		<-gone
	})
}

func TestAnAnswerThatIsClosedLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine stays
		o := settings(t, "http://127.0.0.1/")
		o.Idle = time.Second
		a, _ := piped(t, o)
		left := 0
		a.leave = func() { left++ }
		ended := make(chan error)
		go func() {
			_, err := all(a)
			ended <- err
		}()
		synctest.Wait()
		a.Close()
		wantFailure(t, <-ended, KindCancelled, true)
		if left != 1 {
			t.Errorf("left %d times", left)
		}
	})
}

func all(a *Answer) (events []Event, err error) {
	for e, err := range a.Events() {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

func TestErrorsSayWhichLimit(t *testing.T) {
	for _, c := range []struct{ body, said string }{
		{"data: " + strings.Repeat("x", 11) + "\n\n", "an event is larger than 10 bytes"},
		{strings.Repeat("data: x\n\n", 10), "the stream is larger than 50 bytes"},
	} {
		_, err := all(answered(t, text(c.body), func(o *Options) { o.MaxBody, o.MaxStream = 10, 50 }))
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), c.said) {
			t.Errorf("%v, want %s", err, c.said)
		}
	}
	_, err := answered(t, text("12345678901"), func(o *Options) { o.MaxBody = 10 }).Body()
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "the body is larger than 10 bytes") {
		t.Error(err)
	}
}

func TestABigEventIsReadWhole(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	a := answered(t, func(w http.ResponseWriter, _ *http.Request) {
		for rest := fmt.Appendf(nil, "data: %s\n\n", big); len(rest) > 0; rest = rest[min(1400, len(rest)):] {
			w.Write(rest[:min(1400, len(rest))])
		}
	}, func(o *Options) { o.MaxBody = int64(len(big)) })
	got, err := all(a)
	if err != nil || len(got) != 1 || !bytes.Equal(got[0].Data, big) {
		t.Errorf("%d events, %v", len(got), err)
	}
}
