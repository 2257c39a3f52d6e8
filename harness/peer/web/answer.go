package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	readBuffer = 16 << 10
	excerpt    = 512      // bytes of a body that messages may show
	finishing  = 64 << 10 // bytes that are passed over for the sake of a connection
)

// An Answer is what came back: its header, and a body that is still to be read, by Body, Events or Excerpt and by one goroutine. Only
// Close may be called meanwhile by another.
type Answer struct {
	Status int
	Header http.Header
	Proto  string // HTTP/1.1 or HTTP/2.0

	URL    *url.URL // where it came from, after redirects
	Passed []byte   // the beginning of the bodies of redirects

	options *Options
	ctx     context.Context
	cancel  context.CancelCauseFunc
	body    io.Closer
	leave   func() // makes room for another request; once
	watch   *watch
	in      *bufio.Reader
	head    []byte // the beginning of the body, once it was looked at
	events  *stream
	ended   bool // the body was read to its end
}

func newAnswer(ctx context.Context, cancel context.CancelCauseFunc, r *http.Response, o *Options) *Answer {
	a := &Answer{Status: r.StatusCode, Header: r.Header, Proto: r.Proto, options: o, ctx: ctx, cancel: cancel, body: r.Body, leave: func() {}}
	a.watch = &watch{source: r.Body, fire: func() { cancel(errIdle) }}
	a.in = bufio.NewReaderSize(a.watch, readBuffer)
	return a
}

// Type is the media type of the body without its parameters, in lower case; "" where there is none.
func (a *Answer) Type() string {
	field := a.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(field); err == nil {
		return media
	}
	media, _, _ := strings.Cut(field, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// Body reads the whole body. The error is ErrTooLarge where it is larger than MaxBody, or a *Failure. The bytes are the caller's.
func (a *Answer) Body() ([]byte, error) { return a.BodyUpTo(a.options.MaxBody) }

// BodyUpTo is Body with a limit of its own.
func (a *Answer) BodyUpTo(limit int64) ([]byte, error) {
	if err := a.decoded(); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(a.in, limit+1))
	if a.head == nil {
		a.head = append([]byte{}, body[:min(len(body), excerpt)]...)
	}
	switch {
	case err != nil:
		return nil, a.failure(unread(a.ctx, err))
	case int64(len(body)) > limit:
		return nil, a.tooLarge("the body", limit)
	}
	a.ended = true
	return body, nil
}

// Excerpt is the beginning of the body, at most 512 bytes, for messages. It waits for them, or for the end of the body or the context,
// and may be called before and after Body; once Events has been called there is none. It may repeat what the peer was sent.
func (a *Answer) Excerpt() []byte {
	if a.head == nil && a.decoded() == nil {
		head, _ := a.in.Peek(excerpt) // what came before an error is all there is to show
		a.head = append([]byte{}, head...)
	}
	return a.head
}

// Finish reads on to the end of the body, for at most the time that is given and 64 KiB, and closes: a connection of HTTP/1 is used
// again only after an answer that was read to its end, which may come a moment after the message that was waited for.
func (a *Answer) Finish(limit time.Duration) {
	if !a.ended && limit > 0 {
		within(limit, a.watch.fire, func() {
			_, _ = io.Copy(io.Discard, io.LimitReader(a.in, finishing)) // how it ends does not matter any more
		})
	}
	a.Close()
}

// Close gives the answer up. What is still being read or sent ends at once. It may be called more than once.
func (a *Answer) Close() {
	a.cancel(errClosed)
	_ = a.body.Close() // the body is given up, so nobody misses what it could not do
	a.leave()
}

// decoded refuses a body that net/http has not decoded: it does so with gzip, which is all that it asks for.
func (a *Answer) decoded() error {
	if coding := a.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return a.failure(failed(KindMalformed, errors.New("the body is compressed in a way that was not asked for")))
	}
	return nil
}

// failure names the endpoint in what went wrong after the request was sent.
func (a *Answer) failure(f *Failure) *Failure {
	f.Sent, f.origin = true, origin(a.options.Endpoint)
	return f
}

func (a *Answer) tooLarge(what string, limit int64) error {
	return fmt.Errorf("%s: %s is larger than %d bytes: %w", origin(a.options.Endpoint), what, limit, ErrTooLarge)
}
