package access

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// DefaultPrefix is the first token of every subject unless the operator
	// chose another.
	DefaultPrefix = "waybill"

	// MaxMessage is the size in bytes over which nothing is published,
	// headers included, whatever the server would allow.
	MaxMessage = 1 << 20

	// LocalHost is the name of the host that the commands on the same machine
	// use.
	LocalHost = "local"

	// CallVerb is the verb under which hosts submit calls.
	CallVerb = "call"

	// Protocol is the second token of every subject.
	Protocol = "v1"

	// OpToken is where the subjects of orders have their verb.
	OpToken = "op"

	// ProgressToken is where the subjects of progress have their verb.
	ProgressToken = "progress"
)

var (
	namePattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	logPattern    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,79}$`)
	prefixPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*$`)
)

// ValidName reports whether name can be the name of a host or an operator:
// [a-z0-9][a-z0-9_-]{0,62}.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// RequestSubject is the subject on which host asks for verb.
func RequestSubject(prefix, verb, host string) string {
	return prefix + "." + Protocol + "." + verb + "." + host
}

// CommandSubject is the subject on which an operator, who says that their name is
// by, orders verb.
func CommandSubject(prefix, verb, by string) string {
	return prefix + "." + Protocol + "." + OpToken + "." + verb + "." + by
}

// ProgressSubject is the subject of the progress of one call, which the host of
// the call alone may read.
func ProgressSubject(prefix, host, call string) string {
	return progressRoot(prefix, host) + call
}

func progressRoot(prefix, host string) string {
	return prefix + "." + Protocol + "." + ProgressToken + "." + host + "."
}

// CheckpointSubject is the subject of the signed tree heads of the log.
func CheckpointSubject(prefix, logID string) string {
	return prefix + "." + Protocol + ".checkpoint." + logID
}

// StreamName is the name of the JetStream stream that holds the copy of the
// log.
func StreamName(logID string) string { return "WAYBILL_" + logID }

// CheckpointStreamName is the name of the JetStream stream that holds the newest
// signed tree heads of the log.
func CheckpointStreamName(logID string) string { return StreamName(logID) + "_CHECKPOINTS" }

// PublicStreamName is the name of the JetStream stream that holds the part of the
// copy which dashboards may read.
func PublicStreamName(logID string) string { return StreamName(logID) + "_PUBLIC" }

// PublicSubjects are the subjects of the events that dashboards may read: what the
// peers are and what they are called, and nothing of calls.
func PublicSubjects(prefix, logID string) []string {
	nouns := []string{"collision", "era", "name", "namespace", "peer"}
	for i, noun := range nouns {
		nouns[i] = EventRoot(prefix, logID) + noun + ".>"
	}
	return nouns
}

// ReadRoot is what the subjects begin with on which readers of a stream ask for a
// consumer, as they come to who keeps the stream. The name of the reader follows, and
// what it asks for.
func ReadRoot(prefix, stream string) string {
	return readRoot(prefix) + stream + "."
}

func readRoot(prefix string) string { return prefix + "." + Protocol + ".read." }

const (
	// CopyAPI is where the account of the public stream finds the part of JetStream's
	// API of the account of the log that sourcing needs.
	CopyAPI = "WAYBILL_LOG.API"

	// CopyDelivery is where the server delivers what it sources.
	CopyDelivery = "WAYBILL_PUBLIC.copy"
)

// EventRoot is what the subjects of all events of the log begin with.
func EventRoot(prefix, logID string) string {
	return prefix + "." + Protocol + ".events." + logID + "."
}

// InboxPrefix is the root of the reply subjects that belong to one user; only
// that user may subscribe below it.
func InboxPrefix(user string) string { return "_INBOX." + user }

// CheckSpace refuses a prefix or a log id that no subject can be made of.
func CheckSpace(prefix, logID string) error {
	if !prefixPattern.MatchString(prefix) || strings.HasPrefix(prefix, "_INBOX") {
		return fmt.Errorf("subject prefix %q: want tokens of letters, digits, - and _, joined by dots", prefix)
	}
	if !logPattern.MatchString(logID) {
		return fmt.Errorf("log id %q: want %s", logID, logPattern)
	}
	return nil
}
