package bus

import (
	"time"

	"github.com/nats-io/nats.go"
)

// Users are the connections of a running service, each in an account of its own. The
// one that replies may not publish events, so a forged reply subject cannot write
// into the record.
type Users struct {
	Events  *nats.Conn // publishes events and checkpoints
	Replies *nats.Conn // receives requests and replies
	Public  *nats.Conn // makes the stream that dashboards read; nil without a curator
}

// ConnectUsers connects all users. One that has no curator among its credentials goes
// without.
func ConnectUsers(c Credentials, to Target) (u Users, err error) {
	if u.Events, err = Connect(c.Service(), to); err != nil {
		return u, err
	}
	if u.Replies, err = Connect(c.Replier(), to); err != nil || !c.Curator().Valid() {
		return u, err
	}
	u.Public, err = Connect(c.Curator(), to)
	return u, err
}

// Connected reports whether the connections stand without which there is no service.
func (u Users) Connected() bool { return u.Events.IsConnected() && u.Replies.IsConnected() }

// Close sends what is still buffered, for at most a second each, and closes
// the connections. A reply that cannot leave any more is in the log.
func (u Users) Close() {
	for _, nc := range []*nats.Conn{u.Replies, u.Events, u.Public} {
		if nc != nil {
			_ = nc.FlushTimeout(time.Second)
			nc.Close()
		}
	}
}
