package bus

import (
	"time"

	"github.com/nats-io/nats.go"
)

// Users are the two connections of a running service. The one that replies may
// not publish events, so a forged reply subject cannot write into the record.
type Users struct {
	Events  *nats.Conn // publishes events
	Replies *nats.Conn // receives requests and replies
}

// ConnectUsers connects both users.
func ConnectUsers(c Credentials, to Target) (u Users, err error) {
	if u.Events, err = Connect(c.Service(), to); err != nil {
		return u, err
	}
	u.Replies, err = Connect(c.Replier(), to)
	return u, err
}

// Connected reports whether both connections stand.
func (u Users) Connected() bool { return u.Events.IsConnected() && u.Replies.IsConnected() }

// Close sends what is still buffered, for at most a second each, and closes
// the connections. A reply that cannot leave any more is in the log.
func (u Users) Close() {
	for _, nc := range []*nats.Conn{u.Replies, u.Events} {
		if nc != nil {
			_ = nc.FlushTimeout(time.Second)
			nc.Close()
		}
	}
}
