package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	connectPatience = 5 * time.Second
	reconnectPause  = 250 * time.Millisecond
	pingEvery       = 20 * time.Second
)

// Target says where to connect and how.
type Target struct {
	// URL is the address of a server. It is not used if Server is set.
	URL string

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

// Connect connects as one user. The connection's inboxes are under that user's
// own prefix, and it reconnects for ever. The caller closes it.
//
// While disconnected the service's connection refuses to publish rather than
// keep messages for later: the publisher reads the log again instead.
func Connect(id Identity, to Target) (*nats.Conn, error) {
	if id.pair == nil {
		return nil, errors.New("connect to NATS: no credentials: run waybill init")
	}
	nc, err := nats.Connect(to.URL, connectOptions(id, to)...)
	if err == nil {
		return nc, nil
	}
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, fmt.Errorf("the NATS server at %s does not accept the key of %s: the credentials belong to another data directory, or the server's configuration lacks them: %w",
			place(to), id, err)
	}
	return nil, fmt.Errorf("connect to NATS at %s as %s: %w", place(to), id.name, err)
}

func connectOptions(id Identity, to Target) []nats.Option {
	log := logger(to.Logger)
	opts := []nats.Option{
		nats.Name("waybill " + id.name),
		nats.Nkey(id.Public(), id.pair.Sign),
		nats.CustomInboxPrefix(InboxPrefix(id.name)),
		nats.Timeout(connectPatience),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectPause),
		nats.PingInterval(pingEvery),
		nats.RetryOnFailedConnect(to.KeepTrying),
		nats.IgnoreAuthErrorAbort(), // the server's configuration may be put right
		nats.ErrorHandler(errorHandler(id.name, to)),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats connection lost, connecting again", "user", id.name, "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("nats connected again", "user", id.name) }),
	}
	if id.name == serviceUser {
		opts = append(opts, nats.ReconnectBufSize(-1))
	}
	if to.Server != nil {
		opts = append(opts, to.Server.InProcess())
	}
	return opts
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
