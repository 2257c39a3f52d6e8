package bus

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"waybill/harness/bus/access"
	"waybill/harness/bus/secure"
)

const (
	connectPatience = 5 * time.Second
	reconnectPause  = 250 * time.Millisecond
	pingEvery       = 20 * time.Second
	sayEvery        = time.Minute
)

// Target says where to connect and how.
type Target struct {
	// URL is the address of a server, or those of several, joined by commas, any of
	// which will do. It is not used if Server is set.
	URL string

	// TLS says how connections to URL are encrypted.
	TLS secure.TLS

	// Server is a server in this process.
	Server *Server

	// KeepTrying makes Connect return at once even if no server can be
	// reached, and go on trying behind the scenes until the connection is
	// closed. A refused key is then reported to the logger only.
	KeepTrying bool

	// OnViolation is told of each subject that this connection was refused,
	// from a goroutine of the connection; it must not block. NATS reports a
	// refusal here and nowhere else: who waits for a reply sees a timeout.
	OnViolation func(Violation)

	// Logger receives what goes wrong in the background; slog.Default if nil.
	Logger *slog.Logger
}

// Violation is a refusal by the server for want of permission.
type Violation struct {
	Publish bool // else a subscription was refused
	Subject string
}

// ErrUnreachable says that no server answers, or none that can be spoken to.
var ErrUnreachable = errors.New("no NATS server can be reached")

// ErrKeyRefused says that a server answers and does not know the key.
var ErrKeyRefused = errors.New("they were made after the server was started (restart the service, or have an outside server load nats-accounts.conf again), or belong to another data directory")

// ErrRequestTooLarge says that a request does not fit one message. It was not sent.
var ErrRequestTooLarge = errors.New("the request is larger than one NATS message may be")

// Connect connects as one user. The connection's inboxes are under that user's
// own prefix, and it reconnects for ever. The caller closes it. An error wraps
// ErrUnreachable or ErrKeyRefused unless the identity or a file of the target is
// no good.
//
// While disconnected the service's connection refuses to publish rather than
// keep messages for later: the publisher reads the log again instead.
func Connect(id Identity, to Target) (*nats.Conn, error) {
	if !id.Valid() {
		return nil, errors.New("connect to NATS: no credentials: run waybill init")
	}
	if which, reason := to.TLS.Fault(); which != "" {
		return nil, fmt.Errorf("connect to NATS at %s: nats.tls.%s %s", place(to), which, reason)
	}
	nc, err := nats.Connect(to.URL, connectOptions(id, to)...)
	if err == nil {
		return nc, nil
	}
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, fmt.Errorf("the NATS server at %s does not accept the key of %s: %w: %w", place(to), id, ErrKeyRefused, err)
	}
	return nil, fmt.Errorf("%w: connect to NATS at %s as %s: %w%s", ErrUnreachable, place(to), id.Name(), err, advice(err))
}

// advice says what to do where the words of the client library do not.
func advice(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.Is(err, nats.ErrNoServers):
		return " (connection refused)"
	case errors.Is(err, nats.ErrAuthorization):
		return ": " + ErrKeyRefused.Error()
	case errors.Is(err, nats.ErrSecureConnWanted):
		return ": it offers no TLS, and nats.tls or a tls:// address asks for it"
	case errors.As(err, &unknown):
		return ": name the file of its authority with nats.tls.ca"
	case errors.As(err, &name):
		return ": name it in nats.url as its certificate does"
	case errors.Is(err, secure.ErrOtherCertificate):
		return ": if its certificate was renewed, start the service again"
	case errors.Is(err, nats.ErrTLS), strings.Contains(err.Error(), "certificate required"):
		return ": if it asks for a client certificate, name one with nats.tls.cert and nats.tls.key"
	}
	return ""
}

func connectOptions(id Identity, to Target) []nats.Option {
	log := logger(to.Logger)
	opts := []nats.Option{
		nats.Name("waybill " + id.Name()),
		nats.Nkey(id.Public(), id.Sign),
		nats.CustomInboxPrefix(InboxPrefix(id.Name())),
		nats.Timeout(connectPatience),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectPause),
		nats.PingInterval(pingEvery),
		nats.RetryOnFailedConnect(to.KeepTrying),
		nats.IgnoreAuthErrorAbort(), // the server's configuration may be put right
		nats.ErrorHandler(errorHandler(id.Name(), to)),
		nats.ReconnectErrHandler(attempts(id.Name(), to)),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats connection lost, connecting again", "user", id.Name(), "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("nats connected again", "user", id.Name()) }),
	}
	if id.Name() == access.ServiceUser {
		opts = append(opts, nats.ReconnectBufSize(-1))
	}
	if to.Server != nil {
		return append(opts, to.Server.InProcess())
	}
	return append(opts, to.TLS.Options()...)
}

// attempts logs why connecting fails, at most once a minute. The client library
// calls it from one goroutine.
func attempts(name string, to Target) nats.ConnErrHandler {
	log := logger(to.Logger)
	var said time.Time
	return func(_ *nats.Conn, err error) {
		if err == nil || time.Since(said) < sayEvery {
			return
		}
		said = time.Now()
		log.Warn("nats cannot be reached, trying again", "user", name, "url", place(to), "error", err.Error()+advice(err))
	}
}

func errorHandler(name string, to Target) nats.ErrHandler {
	log := logger(to.Logger)
	return func(_ *nats.Conn, sub *nats.Subscription, err error) {
		if v, ok := violation(err); ok {
			if to.OnViolation != nil {
				to.OnViolation(v)
				return
			}
			log.Error("nats refused a subject", "user", name, "publish", v.Publish, "subject", v.Subject)
			return
		}
		subject := ""
		if sub != nil {
			subject = sub.Subject
		}
		log.Warn("nats connection", "user", name, "subject", subject, "error", err)
	}
}

var violationPattern = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "(.+?)"`)

// violation reads the subject out of the server's words, which is the only
// place that names it.
func violation(err error) (Violation, bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return Violation{}, false
	}
	m := violationPattern.FindStringSubmatch(err.Error())
	if m == nil {
		return Violation{}, false
	}
	return Violation{Publish: m[1][0]|0x20 == 'p', Subject: m[2]}, true
}

func place(to Target) string {
	if to.Server != nil {
		return "the embedded server"
	}
	return to.URL
}
