package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A Header is one line of a header.
type Header struct{ Name, Value string }

// A Request is what is sent. Its parts are only read, and may be used again when Do has returned.
type Request struct {
	Method string   // POST, GET or DELETE; a POST has a body and the others have none
	Header []Header // all of it but Host, Content-Length and what belongs to the connection; credentials too
	Body   []byte

	To     *url.URL // in the place of the endpoint, of the same origin; nil for the endpoint
	Follow bool     // redirects are followed

	// Stays says that the answer is a stream that stays open: it takes none of the connections of other requests.
	Stays bool

	// Began is called right before the first byte may be written, at most once, by any goroutine, before Do returns an error. If it
	// was not called, nothing was written and nothing will be. It must not wait for anything, nor use the Client. Nil for nobody.
	Began func()
}

// kept are the headers that Client or net/http answer for. With one of them a caller would say something else than what is done, or, with
// Accept-Encoding, get the answer compressed and its limits not kept.
var kept = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "Te", "Trailer", "Expect",
	"Accept-Encoding", "Proxy-Authorization", "Proxy-Connection"}

// check returns the header to send. An error names a header, never its value.
func (r *Request) check() (http.Header, error) {
	switch r.Method {
	case http.MethodPost:
		if len(r.Body) == 0 {
			return nil, errors.New("a POST needs a body")
		}
	case http.MethodGet, http.MethodDelete:
		if len(r.Body) > 0 {
			return nil, fmt.Errorf("a %s has no body", r.Method)
		}
	default:
		return nil, fmt.Errorf("the method %.20q is none of an MCP endpoint", r.Method)
	}
	header := http.Header{"User-Agent": {"waybill"}}
	for _, h := range r.Header {
		name := http.CanonicalHeaderKey(h.Name)
		switch {
		case !token(h.Name):
			return nil, fmt.Errorf("%.100q is no name of a header", h.Name)
		case slices.Contains(kept, name):
			return nil, fmt.Errorf("the header %s belongs to the connection and cannot be set", name)
		case strings.ContainsFunc(h.Value, control):
			return nil, fmt.Errorf("the value of the header %s has a character that no header may have", name)
		case name == "User-Agent":
			header.Set(name, h.Value)
		default:
			header.Add(name, h.Value)
		}
	}
	return header, nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

// token tells whether a name is one of RFC 9110, section 5.6.2.
func token(name string) bool { return name != "" && strings.Trim(name, letters) == "" }

// control tells which characters a value may not have: RFC 9110, section 5.5.
func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
