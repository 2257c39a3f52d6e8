package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// The kinds of failure. They are words for programs and stay as they are.
const (
	KindRequest        = "request"          // the request cannot be sent as it was given
	KindAddress        = "address"          // the endpoint's name stands for an address that may not be reached
	KindResolve        = "resolve"          // the endpoint's name stands for nothing
	KindConnect        = "connect"          // no connection came about
	KindTLS            = "tls"              // the endpoint did not prove who it is, or speaks no TLS
	KindRedirect       = "redirect"         // the answer sends elsewhere, or in another way, than may be followed
	KindHeaderTooLarge = "header_too_large" // the header of the answer is over the limit
	KindClosed         = "closed"           // the connection ended before the header of an answer
	KindCut            = "cut"              // the body ended before its end
	KindMalformed      = "malformed"        // the answer is no HTTP, or its body is not encoded as it says
	KindTimeout        = "timeout"          // a time limit passed: that of the context or that for connecting
	KindIdle           = "idle"             // a stream brought nothing for as long as is allowed
	KindCancelled      = "cancelled"        // by the context, or by Close
)

// ErrTooLarge says that a body, an event or a stream is over its limit.
var ErrTooLarge = errors.New("the answer is larger than the limit")

var (
	errIdle   = errors.New("the stream brought nothing for as long as is allowed")
	errClosed = errors.New("the answer was closed")
)

// Failure is the error of everything that goes wrong between two endpoints, for programs and for people. It never holds the value of
// a header, nor more of the URL than the origin, nor words of the peer, which could repeat either.
type Failure struct {
	Kind string // one of the constants of this package
	Sent bool   // a byte of the request may have left; it is false only if none did and none will, and then Began was not called

	Err error // what failed, and what the operator can do

	Passed []byte // the beginning of the bodies of redirects that were met

	origin string // of the endpoint
}

// Error is one sentence for the operator.
func (f *Failure) Error() string {
	if f.origin == "" {
		return f.Err.Error()
	}
	return f.origin + ": " + f.Err.Error()
}

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

func failed(kind string, err error) *Failure { return &Failure{Kind: kind, Err: err} }

// ended says why a context ended, nil if it has not.
func ended(ctx context.Context) *Failure {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errIdle):
		return failed(KindIdle, errIdle)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed(KindTimeout, fmt.Errorf("the time for the request has passed: %w", context.DeadlineExceeded))
	}
	return failed(KindCancelled, fmt.Errorf("the request was given up: %w", cause))
}

// unconnected names what kept a connection from coming about. Nothing secret has been sent by then, so these errors may be shown.
func unconnected(err error, handshake bool) *Failure {
	var known *Failure
	var dns *net.DNSError
	var slow net.Error
	switch {
	case errors.As(err, &known):
		return failed(known.Kind, known.Err)
	case errors.As(err, &dns):
		return failed(KindResolve, fmt.Errorf("the name cannot be resolved, see the endpoint's URL and the resolver: %w", dns))
	case errors.As(err, &slow) && slow.Timeout():
		return failed(KindTimeout, errors.New("the time for connecting has passed"))
	case untrusted(err):
		return failed(KindTLS, fmt.Errorf("the certificate cannot be trusted; if its authority is your own, give this peer that authority's certificate: %w", err))
	case handshake:
		return failed(KindTLS, fmt.Errorf("TLS 1.2 or later could not be agreed on, see that the port speaks https: %w", brief(err)))
	}
	return failed(KindConnect, fmt.Errorf("no connection, see that the endpoint runs and that nothing is in between: %w", brief(err)))
}

func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// brief bounds what a proxy or a peer can make us say.
func brief(err error) error {
	if text := err.Error(); len(text) > 300 {
		return errors.New(text[:300])
	}
	return err
}

// unread names what ended the reading of a body. As with unanswered, words of the peer are not shown.
func unread(ctx context.Context, err error) *Failure {
	if f := ended(ctx); f != nil {
		return f
	}
	if gone(err, err.Error()) || strings.Contains(err.Error(), "stream error") || errors.Is(err, net.ErrClosed) {
		return failed(KindCut, fmt.Errorf("the answer ended before its end%s", number(err)))
	}
	return failed(KindMalformed, errors.New("the body of the answer is not encoded as its header says"))
}

// unanswered names what went wrong on a connection. The text of these errors is not shown: it quotes what the peer sent, which may be
// what it was sent.
func unanswered(err error, limit int64) *Failure {
	text := err.Error()
	switch {
	case strings.Contains(text, "server response headers exceeded"), strings.Contains(text, "response header list larger than"):
		return failed(KindHeaderTooLarge, fmt.Errorf("the header of the answer is larger than %d bytes", limit))
	case gone(err, text):
		return failed(KindClosed, fmt.Errorf("the connection ended before an answer came%s", number(err)))
	}
	return failed(KindMalformed, errors.New("the answer is no HTTP that can be read"))
}

// gone tells an end of the connection from an answer that cannot be read. Where net/http exports no error its words are the only
// way; the tests hold it to them.
func gone(err error, text string) bool {
	var broken *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &broken):
		return true
	case errors.Is(err, errAgain), errors.Is(err, errSealed):
		return true
	}
	for _, words := range []string{"server closed idle connection", "GOAWAY", "client connection lost", "client conn not usable",
		"received from peer", "client conn is closed"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// number is the word of the system for what it did to a connection, which holds nothing of either side.
func number(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return ": " + errno.Error()
	}
	return ""
}
