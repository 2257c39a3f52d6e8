package bus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	serviceUser  = "service"
	replierUser  = "replier"
	operatorUser = "operator"
)

// user is one NATS user: who it is, by its public key, and what it may do.
// The embedded server and the written configuration are both made from it, so
// that they cannot differ.
type user struct {
	name      string
	public    string
	publish   []string
	refuse    []string // never published, whatever publish allows
	subscribe []string
	blind     []string // never received, whatever subscribe allows
}

// users lists the users of a data directory in a fixed order.
func users(prefix, logID string, c Credentials) []user {
	list := []user{
		serviceRole(prefix, logID, c.service.Public()),
		replierRole(prefix, c.replier.Public()),
	}
	if c.operator.pair != nil {
		list = append(list, operatorRole(prefix, c.operator.Public()))
	}
	for _, name := range c.HostNames() {
		list = append(list, hostRole(prefix, name, c.hosts[name].Public()))
	}
	return list
}

// serviceRole publishes the events and checkpoints of its one log. It may make
// a stream and read it, and may not change, empty or remove one: the stream
// itself denies removing messages, but not removing or altering the stream.
func serviceRole(prefix, logID, public string) user {
	return user{
		name:   serviceUser,
		public: public,
		publish: []string{
			EventRoot(prefix, logID) + ">",
			CheckpointSubject(prefix, logID),
			"$JS.API.>",
			"$SRV.>",
		},
		refuse: []string{
			"$JS.API.STREAM.DELETE.>",
			"$JS.API.STREAM.PURGE.>",
			"$JS.API.STREAM.UPDATE.>",
			"$JS.API.STREAM.MSG.DELETE.>",
		},
		subscribe: []string{
			InboxPrefix(serviceUser) + ".>",
			prefix + "." + protocol + ".events.>",
			prefix + "." + protocol + ".checkpoint.>",
		},
	}
}

// replierRole receives what hosts, operators and the service discovery of NATS
// ask, and publishes into inboxes and the progress of calls only. What a host
// names as its reply subject is published by this user, so this user must not be
// able to write events.
func replierRole(prefix, public string) user {
	return user{
		name:    replierUser,
		public:  public,
		publish: []string{"_INBOX.>", progressRoot(prefix, "*") + "*"},
		subscribe: []string{
			InboxPrefix(replierUser) + ".>",
			RequestSubject(prefix, "*", "*"),
			CommandSubject(prefix, "*", "*"),
			"$SRV.>",
		},
		// To the server a * in a permission also matches a > in a
		// subscription, so that the requests would take in the events.
		blind: []string{
			prefix + "." + protocol + ".events.>",
			prefix + "." + protocol + ".checkpoint.>",
			prefix + "." + protocol + "." + progressToken + ".>",
		},
	}
}

// operatorRole orders, and reads nothing but the answers. Who holds its key says
// under which name each order is recorded.
func operatorRole(prefix, public string) user {
	return user{
		name:      operatorUser,
		public:    public,
		publish:   []string{CommandSubject(prefix, "*", "*")},
		subscribe: []string{InboxPrefix(operatorUser) + ".>"},
	}
}

// hostRole asks under its own name and reads its own inbox, the progress of its
// own calls, the events and the signed heads, as they are published. It may not ask
// JetStream for what was published before: what JetStream answers goes to any reply
// subject that the host names, so that it could write into the copy. The refusals matter if a host has the name of a log.
func hostRole(prefix, name, public string) user {
	return user{
		name:    name,
		public:  public,
		publish: []string{RequestSubject(prefix, "*", name)},
		refuse: []string{
			prefix + "." + protocol + ".events.>",
			prefix + "." + protocol + ".checkpoint.>",
			prefix + "." + protocol + "." + opToken + ".>",
			prefix + "." + protocol + "." + progressToken + ".>",
		},
		subscribe: []string{
			InboxPrefix(name) + ".>",
			progressRoot(prefix, name) + ">",
			prefix + "." + protocol + ".events.>",
			prefix + "." + protocol + ".checkpoint.>",
		},
	}
}

func (u user) nkeyUser() *server.NkeyUser {
	return &server.NkeyUser{
		Nkey: u.public,
		Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: u.publish, Deny: u.refuse},
			Subscribe: &server.SubjectPermission{Allow: u.subscribe, Deny: u.blind},
		},
	}
}

const accountsHeader = `# The NATS users of this Waybill log and what each may do.
#
# Written once by "waybill init"; the embedded server does not read it. To use
# a NATS server of your own, include this file in its configuration, which must
# also enable JetStream, and set nats.url. The file has public keys only; the
# seeds stay beside it in *.nk.
`

// accountsConfig renders the users as a snippet of nats-server configuration.
func accountsConfig(list []user) []byte {
	var b bytes.Buffer
	b.WriteString(accountsHeader)
	b.WriteString("authorization {\n  users = [\n")
	for _, u := range list {
		fmt.Fprintf(&b, "    # %s\n    {\n      nkey: %s\n      permissions: {\n", u.name, u.public)
		fmt.Fprintf(&b, "        publish: { allow: %s%s }\n", quoted(u.publish), refusal(u.refuse))
		fmt.Fprintf(&b, "        subscribe: { allow: %s%s }\n", quoted(u.subscribe), refusal(u.blind))
		b.WriteString("      }\n    }\n")
	}
	b.WriteString("  ]\n}\n")
	return b.Bytes()
}

func refusal(subjects []string) string {
	if len(subjects) == 0 {
		return ""
	}
	return ", deny: " + quoted(subjects)
}

// quoted renders subjects as a list of quoted strings: unquoted, a leading $
// would be read as a variable.
func quoted(subjects []string) string {
	items := make([]string, len(subjects))
	for i, s := range subjects {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(s) // a string into a buffer cannot fail
		items[i] = strings.TrimSpace(b.String())
	}
	return "[" + strings.Join(items, ", ") + "]"
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
	if name == serviceUser || name == replierUser || name == operatorUser {
		return fmt.Errorf("host name %q is taken by one of Waybill's own NATS users", name)
	}
	return nil
}
