package access

import (
	"fmt"
	"sort"
)

// The names of the users that there is one of. No host may have the name of one of
// those that are in its account, or were.
const (
	ServiceUser  = "service"
	CuratorUser  = "curator"
	ReplierUser  = "replier"
	OperatorUser = "operator"
)

// user is one NATS user: who it is, by its public key, and what it may do in its
// account.
type user struct {
	name      string
	public    string
	publish   []string
	refuse    []string // never published, whatever publish allows
	subscribe []string
	blind     []string // never received, whatever subscribe allows
}

// neverOfStreams is what no user of ours may ask of JetStream: a stream itself
// denies removing messages, but not that it is removed or altered.
var neverOfStreams = []string{
	"$JS.API.STREAM.DELETE.>",
	"$JS.API.STREAM.PURGE.>",
	"$JS.API.STREAM.UPDATE.>",
	"$JS.API.STREAM.MSG.DELETE.>",
}

// serviceRole publishes the events and checkpoints of its one log, makes their
// streams, and makes consumers for who may read them.
func serviceRole(prefix, logID, public string) user {
	return user{
		name:    ServiceUser,
		public:  public,
		publish: []string{EventRoot(prefix, logID) + ">", CheckpointSubject(prefix, logID), "$JS.API.>", serviceReplies},
		refuse:  neverOfStreams,
		subscribe: []string{
			InboxPrefix(ServiceUser) + ".>",
			prefix + "." + Protocol + ".events.>",
			prefix + "." + Protocol + ".checkpoint.>",
			prefix + "." + Protocol + ".read.>",
		},
	}
}

// curatorRole makes the public stream and consumers for who may read it. It can
// publish no event, so that the stream has what the server itself takes from the
// log, and nothing else. It can remove that stream, which is a copy of a copy, to
// have it filled anew; it can alter nothing in it.
func curatorRole(prefix, logID, public string) user {
	stream := PublicStreamName(logID)
	publish := []string{"$JS.API.INFO", "$JS.API.STREAM.NAMES"}
	for _, what := range []string{"CREATE", "DELETE", "INFO", "MSG.GET"} {
		publish = append(publish, "$JS.API.STREAM."+what+"."+stream)
	}
	return user{
		name:      CuratorUser,
		public:    public,
		publish:   append(publish, "$JS.API.DIRECT.GET."+stream, "$JS.API.DIRECT.GET."+stream+".>", "$JS.API.CONSUMER.>", serviceReplies),
		subscribe: []string{InboxPrefix(CuratorUser) + ".>", prefix + "." + Protocol + ".read.>"},
	}
}

// replierRole receives what hosts, operators and the service discovery of NATS
// ask, and publishes into inboxes and the progress of calls only. What a host
// names as its reply subject is published by this user, so this user must not be
// able to write events.
func replierRole(prefix, public string) user {
	return user{
		name:    ReplierUser,
		public:  public,
		publish: []string{"_INBOX.>", progressRoot(prefix, "*") + "*"},
		subscribe: []string{
			InboxPrefix(ReplierUser) + ".>",
			RequestSubject(prefix, "*", "*"),
			CommandSubject(prefix, "*", "*"),
			"$SRV.>",
		},
		// To the server a * in a permission also matches a > in a
		// subscription, so that the requests would take in the progress.
		blind: []string{
			prefix + "." + Protocol + ".events.>",
			prefix + "." + Protocol + ".checkpoint.>",
			prefix + "." + Protocol + "." + ProgressToken + ".>",
		},
	}
}

// operatorRole orders, asks what services there are (nats micro), and reads nothing
// but the answers. Who holds its key says under which name each order is recorded.
func operatorRole(prefix, public string) user {
	return user{
		name:      OperatorUser,
		public:    public,
		publish:   []string{CommandSubject(prefix, "*", "*"), "$SRV.PING.>", "$SRV.INFO.>", "$SRV.STATS.>", "$SRV.PING", "$SRV.INFO", "$SRV.STATS"},
		subscribe: []string{InboxPrefix(OperatorUser) + ".>"},
	}
}

// hostRole asks under its own name and reads its own inbox and the progress of its
// own calls. The refusals matter if a host has the name of a log. It may not ask what
// services there are: they answer to any inbox that is named.
func hostRole(prefix, name, public string) user {
	return user{
		name:    name,
		public:  public,
		publish: []string{RequestSubject(prefix, "*", name)},
		refuse: []string{
			prefix + "." + Protocol + ".events.>",
			prefix + "." + Protocol + ".checkpoint.>",
			prefix + "." + Protocol + "." + OpToken + ".>",
			prefix + "." + Protocol + "." + ProgressToken + ".>",
		},
		subscribe: []string{InboxPrefix(name) + ".>", progressRoot(prefix, name) + ">"},
	}
}

// readerRole may ask what its account imports and hear what it imports.
func readerRole(id Identity, into []passage) user {
	u := user{name: id.name, public: id.Public(), subscribe: []string{InboxPrefix(id.name) + ".>"}}
	for _, p := range into {
		if p.service {
			u.publish = append(u.publish, p.local)
		} else {
			u.subscribe = append(u.subscribe, p.heard...)
		}
	}
	return u
}

// checkHosts refuses names that are not names, and those that would share an
// inbox with one of our own users.
func checkHosts(hosts []string) error {
	sorted := append([]string(nil), hosts...)
	sort.Strings(sorted)
	for i, name := range sorted {
		if err := checkHost(name); err != nil {
			return err
		}
		if i > 0 && sorted[i-1] == name {
			return fmt.Errorf("host %q is named twice", name)
		}
	}
	return nil
}

func checkHost(name string) error {
	if !ValidName(name) {
		return fmt.Errorf("host name %q: want %s", name, namePattern)
	}
	if name == ServiceUser || name == ReplierUser || name == OperatorUser {
		return fmt.Errorf("host name %q is taken by one of Waybill's own NATS users", name)
	}
	return nil
}
