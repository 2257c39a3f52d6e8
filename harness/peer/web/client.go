package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	redirects = 3 // followed for one request

	idleConnection = 30 * time.Second // after which an unused connection is closed
	ping           = 15 * time.Second // of silence after which an HTTP/2 connection is asked whether it still lives

	streamWindow = 1 << 20 // bytes that an HTTP/2 stream may send unread; net/http would keep four times as much
)

// A Client sends requests to one endpoint. It may be used by several goroutines at once.
type Client struct {
	options  Options
	requests *http.Transport
	stays    *http.Transport
}

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
	c.requests, c.stays = c.transport(tlsConfig), c.transport(tlsConfig.Clone())
	return c, nil
}

// Close closes the connections that no request uses. An answer that is being read keeps its own.
func (c *Client) Close() {
	c.requests.CloseIdleConnections()
	c.stays.CloseIdleConnections()
}

// transport leaves to net/http what it is good at and nothing that it decides by itself: no proxy of the environment, no cookies, no
// redirects. Compression it asks for and undoes itself. Strict keeps a request waiting on a busy HTTP/2 connection: another would have
// to be dialled, which the bound on connections holds up until the first one ends.
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
			StrictMaxConcurrentRequests: true,
			MaxReceiveBufferPerStream:   streamWindow,
			SendPingTimeout:             ping,
			PingTimeout:                 ping,
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
// Redirects are followed that keep the method, 307 and 308, to the same origin, and at most three of them.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	header, err := r.check()
	if err != nil {
		return nil, c.named(failed(KindRequest, err))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b := &beginning{told: r.Began}
	response, failure := c.follow(ctx, r, header, b)
	sent := b.seal()
	if failure != nil {
		cancel(context.Canceled)
		failure.Sent = sent
		return nil, c.named(failure)
	}
	return newAnswer(ctx, cancel, response, &c.options), nil
}

// named says in a failure whom the request was for.
func (c *Client) named(f *Failure) *Failure {
	f.origin = origin(c.options.Endpoint)
	return f
}

func (c *Client) follow(ctx context.Context, r Request, header http.Header, b *beginning) (*http.Response, *Failure) {
	target := c.options.Endpoint
	for hop := 0; ; hop++ {
		response, failure := c.send(ctx, r, target, header, b)
		if failure != nil || !redirecting(response.StatusCode) {
			return response, failure
		}
		_ = response.Body.Close() // its text is for browsers
		next, err := redirected(target, response)
		if err == nil && hop == redirects {
			err = fmt.Errorf("it redirects more than %d times, give the URL where it ends", redirects)
		}
		if err != nil {
			return nil, failed(KindRedirect, err)
		}
		target = next
		b.read.Store(false)
	}
}

// send makes one attempt at one URL.
func (c *Client) send(ctx context.Context, r Request, target *url.URL, header http.Header, b *beginning) (*http.Response, *Failure) {
	var got, handshake atomic.Bool
	request := (&http.Request{
		Method: r.Method, URL: target, Header: header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(httptrace.WithClientTrace(ctx, b.trace(&got, &handshake)))
	if len(r.Body) > 0 {
		request.Body, request.GetBody, request.ContentLength = b.body(r.Body), b.again(r.Body), int64(len(r.Body))
	}
	transport := c.requests
	if r.Stays {
		transport = c.stays
	}
	response, err := transport.RoundTrip(request)
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
		return nil, fmt.Errorf("it redirects (%d) to %.200s, another origin, where nothing is sent; if that is where it is now, change the URL of this peer",
			response.StatusCode, origin(to))
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
