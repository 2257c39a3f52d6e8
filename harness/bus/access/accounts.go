package access

import (
	"slices"
	"strings"
)

// The accounts. One holds nothing that another does not need: subjects, and the
// answers of JetStream, exist in one account only unless they are passed on.
//
//   - Calls are in WAYBILL, which has no JetStream: hosts, the operator, the replier.
//   - The copy of the log and its heads are in WAYBILL_LOG, with their publisher alone.
//   - What dashboards may read is in WAYBILL_PUBLIC: a stream that listens to no
//     subject and that the server fills from the log's.
//   - Each reader has an account of its own, without JetStream, into which is passed
//     what it may ask of a stream and what it may hear.
//
// That readers are elsewhere is what keeps the streams from them. JetStream answers
// on whatever reply subject a request names: in the account of a stream, a request
// for the next message with "$JS.API.STREAM.DELETE.<stream>" as its reply subject
// deletes the stream, because the server takes the word that there is none for a
// request, and one with the subject of an event puts a message into the stream. A
// request that is passed on is answered in the account it came from, where no
// stream listens and only the reader itself could be told something false: that is
// why no two readers share an account.
//
// What readers must not have is a consumer that pushes: it delivers in the account of
// the stream, to any subject. The server delivers only where somebody listens, to
// that very subject, but after a restart it takes "$JS.API.>" for that, and then a
// heartbeat deletes the stream (2.15). So requests for consumers go to the stream's
// keeper, which passes on those for consumers that are pulled from.
const (
	callAccount   = "WAYBILL"
	logAccount    = "WAYBILL_LOG"
	publicAccount = "WAYBILL_PUBLIC"

	// serviceReplies is where the server has answers to requests of other accounts
	// sent. Who asks cannot choose among them.
	serviceReplies = "_R_.>"
)

// account is one NATS account with its users.
type account struct {
	name      string
	jetStream bool
	users     []user
}

// passage is what one account has of another: requests that go there and whose
// answers come back, or messages that come from there.
type passage struct {
	from, to string // accounts: who has it, who gets it
	service  bool
	streamed bool     // a service that answers with more than one message
	subject  string   // as the one calls it
	local    string   // as the other calls it
	heard    []string // of messages: what the other may subscribe to
}

// layout is all accounts of a data directory and what passes between them, in a
// fixed order. The embedded server and the written configuration are both made from
// it, so that they cannot differ.
func layout(prefix, logID string, c Credentials) ([]account, []passage) {
	calls := account{name: callAccount, users: []user{replierRole(prefix, c.replier.Public())}}
	if c.operator.pair != nil {
		calls.users = append(calls.users, operatorRole(prefix, c.operator.Public()))
	}
	for _, name := range c.HostNames() {
		calls.users = append(calls.users, hostRole(prefix, name, c.hosts[name].Public()))
	}
	list := []account{calls, {name: logAccount, jetStream: true, users: []user{serviceRole(prefix, logID, c.service.Public())}}}
	var between []passage
	if c.curator.pair != nil {
		list = append(list, account{name: publicAccount, jetStream: true, users: []user{curatorRole(prefix, logID, c.curator.Public())}})
		between = sourcing(logID)
	}
	for _, r := range c.readers {
		into := r.passages(prefix, logID)
		if r.Role == RoleDashboard && c.curator.pair == nil {
			continue // there is nothing that it may read
		}
		list = append(list, account{name: r.account(), users: []user{readerRole(r.Identity, into)}})
		between = append(between, into...)
	}
	return list, between
}

// sourcing is what the server needs to fill the public stream: to make a consumer on
// the log's, to have its messages, and to say how fast.
func sourcing(logID string) []passage {
	create := "CONSUMER.CREATE." + StreamName(logID)
	list := []passage{
		{subject: "$JS.API." + create, local: CopyAPI + "." + create, service: true},
		{subject: "$JS.API." + create + ".>", local: CopyAPI + "." + create + ".>", service: true},
		{subject: "$JS.FC." + StreamName(logID) + ".>", local: "$JS.FC." + StreamName(logID) + ".>", service: true},
		{subject: "$JS.FC.*.*." + StreamName(logID) + ".>", local: "$JS.FC.*.*." + StreamName(logID) + ".>", service: true},
		{subject: CopyDelivery + ".>"},
	}
	for i := range list {
		list[i].from, list[i].to = logAccount, publicAccount
	}
	return list
}

// passages is what a reader may ask and hear.
func (r Reader) passages(prefix, logID string) []passage {
	var list []passage
	if r.Role == RoleDashboard {
		list = reading(prefix, r.name, publicAccount, PublicStreamName(logID))
		list = append(list, hearing(prefix, logID, PublicSubjects(prefix, logID)...)...)
	} else {
		list = reading(prefix, r.name, logAccount, StreamName(logID), CheckpointStreamName(logID))
		list = append(list, hearing(prefix, logID, EventRoot(prefix, logID)+">", CheckpointSubject(prefix, logID))...)
	}
	for i := range list {
		list[i].to = r.account()
	}
	return list
}

// reading is what a reader may ask of streams and their consumers. That of the account
// keeps the server from answering such requests itself.
func reading(prefix, reader, from string, streams ...string) []passage {
	list := asked(from, false, "$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST")
	for _, s := range streams {
		list = append(list, asked(from, false, "$JS.API.STREAM.INFO."+s, "$JS.API.STREAM.MSG.GET."+s,
			"$JS.API.CONSUMER.NAMES."+s, "$JS.API.CONSUMER.LIST."+s,
			"$JS.API.CONSUMER.INFO."+s+".*", "$JS.API.CONSUMER.DELETE."+s+".*")...)
		list = append(list, asked(from, true, "$JS.API.DIRECT.GET."+s, "$JS.API.DIRECT.GET."+s+".>",
			"$JS.API.CONSUMER.MSG.NEXT."+s+".*", "$JS.ACK."+s+".>", "$JS.ACK.*.*."+s+".>")...)
		for local, kept := range keptOf(prefix, s, reader) {
			list = append(list, passage{from: from, service: true, subject: kept, local: local})
		}
	}
	return slices.Clip(list)
}

// keptOf yields each request for a consumer, as the reader knows it and as it comes to
// the keeper of the stream, who is told by it which reader asks.
func keptOf(prefix, stream, reader string) func(yield func(local, kept string) bool) {
	root, api := ReadRoot(prefix, stream)+reader+".", "$JS.API.CONSUMER."
	return func(yield func(local, kept string) bool) {
		_ = yield(api+"CREATE."+stream, root+"create") &&
			yield(api+"CREATE."+stream+".>", root+"create.>") &&
			yield(api+"DURABLE.CREATE."+stream+".*", root+"durable.*")
	}
}

func asked(from string, streamed bool, subjects ...string) []passage {
	list := make([]passage, len(subjects))
	for i, s := range subjects {
		list[i] = passage{from: from, service: true, streamed: streamed, subject: s, local: s}
	}
	return list
}

// hearing is what may be heard of the log as it is published. A reader may listen
// for that of every log, and hears this one.
func hearing(prefix, logID string, subjects ...string) []passage {
	list := make([]passage, len(subjects))
	for i, s := range subjects {
		heard := []string{s}
		if rest, isEvent := strings.CutPrefix(s, EventRoot(prefix, logID)); isEvent {
			heard = append(heard, EventRoot(prefix, "*")+rest)
		} else {
			heard = append(heard, CheckpointSubject(prefix, "*"))
		}
		list[i] = passage{from: logAccount, subject: s, heard: heard}
	}
	return list
}
