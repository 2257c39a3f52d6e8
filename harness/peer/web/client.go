package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	redirects = 3 // followed for one request

	idleConnection = 30 * time.Second // after which an unused connection is closed
	ping           = 15 * time.Second // of silence after which an HTTP/2 connection is asked whether it still lives

	passing     = 64 << 10               // bytes of the body of a redirect that are looked at
	passingTime = 250 * time.Millisecond // for them

	streamWindow = 1 << 20 // bytes that an HTTP/2 stream may send unread; net/http would keep four times as much
)

// A Client sends requests to one endpoint. It may be used by several goroutines at once.
type Client struct {
	options  Options
	requests *lane
	stays    *lane
}

// A lane bounds what is under way at once. Requests wait here, where nothing of them has been written.
type lane struct {
	transport *http.Transport
	room      chan struct{} // holds one for each request under way
}

func (l *lane) enter(ctx context.Context) *Failure {
	if f := ended(ctx); f != nil {
		return f
	}
	select {
	case l.room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func (l *lane) leave() { <-l.room }

// New checks the options. An error is for the operator and begins with the name of the option.
func New(o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	roots, err := o.roots()
	if err != nil {
		return nil, err
	}
	endpoint := *o.Endpoint
	o.Endpoint, o.RootCAs = &endpoint, nil
	if o.Proxy != nil {
		proxy := *o.Proxy
		o.Proxy = &proxy
	}
	c := &Client{options: o}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	c.requests, c.stays = c.lane(tlsConfig), c.lane(tlsConfig.Clone())
	return c, nil
}

// Close closes the connections that no request uses. An answer that is being read keeps its own.
func (c *Client) Close() {
	c.requests.transport.CloseIdleConnections()
	c.stays.transport.CloseIdleConnections()
}

func (c *Client) lane(config *tls.Config) *lane {
	return &lane{c.transport(config), make(chan struct{}, c.options.Connections)}
}

// transport leaves to net/http what it is good at and nothing that it decides by itself: no proxy of the environment, no cookies, no
// redirects. Compression it asks for and undoes itself. StrictMaxConcurrentRequests stays off: in Go 1.26 requests that wait for a
// busy connection then count as being on it, and wait for ever.
func (c *Client) transport(config *tls.Config) *http.Transport {
	t := &http.Transport{
		DialContext:            c.dial,
		TLSClientConfig:        config,
		ForceAttemptHTTP2:      true,
		MaxConnsPerHost:        c.options.Connections,
		MaxIdleConnsPerHost:    c.options.Connections,
		IdleConnTimeout:        idleConnection,
		MaxResponseHeaderBytes: c.options.MaxHeader,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamWindow,
			SendPingTimeout:           ping,
			PingTimeout:               ping,
		},
	}
	if c.options.Proxy != nil {
		t.Proxy = http.ProxyURL(c.options.Proxy)
	}
	return t
}

// dial connects to the endpoint, or to the proxy, whose address is the operator's word.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	deadline := time.Now().Add(c.options.Connect)
	dialer := net.Dialer{Deadline: deadline}
	if c.options.Proxy == nil {
		dialer.ControlContext = c.options.guard
	}
	plain, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return newConn(plain, deadline)
}

// Do sends one request and returns when the header of the answer is there, whatever its status. The context bounds everything, the
// reading of the answer included; cancelling it closes the stream of HTTP/2 or the connection of HTTP/1. The answer must be closed.
// An error is a *Failure.
//
// At most Connections requests are under way at once, over HTTP/1 as over HTTP/2, from Do to Close of the answer: each may hold as much as
// its answer may be large. The others wait.
// Over HTTP/2 a request counts as begun when it has its connection, though it may still wait for the peer to take it.
//
// Where the request says so, redirects are followed that keep the method, 307 and 308, to the same origin, and at most three of them.
// Whoever redirects has had the whole request by then: what the last one says of it says nothing of the others.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	header, err := r.check()
	if err != nil {
		return nil, c.named(failed(KindRequest, err))
	}
	ctx, cancel := context.WithCancelCause(ctx) // ends with the answer
	l := c.requests
	if r.Stays {
		l = c.stays
	}
	if f := l.enter(ctx); f != nil {
		cancel(context.Canceled)
		return nil, c.named(f)
	}
	b := &beginning{told: r.Began}
	response, way, failure := c.follow(ctx, l, &r, header, b)
	sent := b.seal()
	if failure != nil {
		cancel(context.Canceled)
		l.leave()
		failure.Sent = sent
		return nil, c.named(failure)
	}
	a := newAnswer(ctx, cancel, response, &c.options)
	a.URL, a.Passed = way.to, way.passed
	a.leave = sync.OnceFunc(l.leave)
	return a, nil
}

// named says in a failure whom the request was for.
func (c *Client) named(f *Failure) *Failure {
	f.origin = origin(c.options.Endpoint)
	return f
}

// way is where a request came to, and the bodies that it met on its way there.
type way struct {
	to     *url.URL
	passed []byte
}

func (c *Client) follow(ctx context.Context, l *lane, r *Request, header http.Header, b *beginning) (*http.Response, way, *Failure) {
	w := way{to: c.options.Endpoint}
	if r.To != nil {
		if origin(r.To) != origin(w.to) {
			return nil, w, failed(KindRequest, errors.New("the request is for another origin than that of the endpoint"))
		}
		w.to = r.To
	}
	for hop := 0; ; hop++ {
		response, failure := c.send(ctx, l, r, w.to, header, b)
		if failure != nil || !redirecting(response.StatusCode) {
			return response, w, failure
		}
		w.passed = append(w.passed, glimpse(response)...)
		next, err := redirected(w.to, response)
		switch {
		case err == nil && !r.Follow:
			err = fmt.Errorf("it redirects (%d), which is followed for the probe alone; give the URL where it ends", response.StatusCode)
		case err == nil && hop == redirects:
			err = fmt.Errorf("it redirects more than %d times, give the URL where it ends", redirects)
		}
		if err != nil {
			f := failed(KindRedirect, err)
			f.Passed = w.passed
			return nil, w, f
		}
		w.to = next
		b.read.Store(false)
	}
}

// glimpse reads the beginning of the body of a redirect, as far as it is there, and closes it.
func glimpse(r *http.Response) (body []byte) {
	within(passingTime, func() { _ = r.Body.Close() }, func() {
		body, _ = io.ReadAll(io.LimitReader(r.Body, passing)) // what came before an error is all there is
	})
	_ = r.Body.Close() // it is given up
	return body
}

// send makes one attempt at one URL.
func (c *Client) send(ctx context.Context, l *lane, r *Request, target *url.URL, header http.Header, b *beginning) (*http.Response, *Failure) {
	var got, handshake atomic.Bool
	request := (&http.Request{
		Method: r.Method, URL: target, Header: header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(httptrace.WithClientTrace(ctx, b.trace(&got, &handshake)))
	if len(r.Body) > 0 {
		request.Body, request.GetBody, request.ContentLength = b.body(r.Body), b.again(r.Body), int64(len(r.Body))
	}
	response, err := l.transport.RoundTrip(request)
	if err != nil {
		return nil, c.failure(ctx, err, got.Load(), handshake.Load())
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		_ = response.Body.Close() // another protocol follows, which nobody asked for
		return nil, failed(KindMalformed, errors.New("it changes to another protocol, which was not asked for"))
	}
	return response, nil
}

func (c *Client) failure(ctx context.Context, err error, got, handshake bool) *Failure {
	if f := ended(ctx); f != nil {
		return f
	}
	if !got {
		return unconnected(err, handshake)
	}
	return unanswered(err, c.options.MaxHeader)
}

func redirecting(status int) bool {
	return status >= 301 && status <= 303 || status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
}

// redirected gives the URL that a redirect leads to, if it may be followed.
func redirected(from *url.URL, response *http.Response) (*url.URL, error) {
	to, err := from.Parse(response.Header.Get("Location"))
	switch {
	case err != nil || response.Header.Get("Location") == "":
		return nil, fmt.Errorf("it redirects (%d) without a target that can be read", response.StatusCode)
	case origin(to) != origin(from):
		// Not where: it is the peer's word, which may repeat what it was sent.
		return nil, fmt.Errorf("it redirects (%d) to another origin, where nothing is sent; if that is where it is now, change the URL of this peer",
			response.StatusCode)
	case response.StatusCode < http.StatusTemporaryRedirect:
		return nil, fmt.Errorf("it redirects (%d) within %s in a way that would change the method; give the URL where it ends",
			response.StatusCode, origin(to))
	case to.User != nil:
		return nil, fmt.Errorf("it redirects (%d) to a URL with a user in it", response.StatusCode)
	}
	next := *from
	next.Path, next.RawPath, next.RawQuery, next.ForceQuery = to.Path, to.RawPath, to.RawQuery, to.ForceQuery
	return &next, nil
}

// origin is scheme, host and port, which is all of a URL that messages say.
func origin(u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		return u.Scheme + "://" + host
	}
	return u.Scheme + "://" + host + ":" + port
}
