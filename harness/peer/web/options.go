package web

import (
	"net/url"
	"time"
)

// Options say how an endpoint is reached. Endpoint and the limits are required.
type Options struct {
	Endpoint *url.URL // https, or http to loopback; no user, no fragment

	RootCAs       []byte   // PEM, in place of the system's; nil for those
	AllowPlain    bool     // http is allowed beyond loopback
	RefusePrivate bool     // addresses that are not public are refused, after resolution
	Proxy         *url.URL // nil for none: the environment is never asked

	// Connections bounds those that are open at once for requests; streams that stay open have as many of their own. HTTP/2 carries
	// up to 100 requests at once over one (more if Connections is more), and opens another only where a server allows less.
	Connections int

	Connect time.Duration // for a connection, TLS included
	Idle    time.Duration // after which a stream that brings nothing is given up; 0 for never

	MaxHeader int64 // bytes of the header of an answer
	MaxBody   int64 // bytes of a body, and of one event, as decoded
	MaxStream int64 // bytes of all events of one stream, as decoded; 0 for no limit
}
