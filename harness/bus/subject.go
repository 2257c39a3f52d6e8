package bus

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

	protocol      = "v1"
	opToken       = "op"
	progressToken = "progress"
)

var (
	namePattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	logPattern    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,79}$`)
	prefixPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*$`)
	verbPattern   = regexp.MustCompile(`^[a-z]+$`)
)

// ValidName reports whether name can be the name of a host or an operator:
// [a-z0-9][a-z0-9_-]{0,62}.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// RequestSubject is the subject on which host asks for verb.
func RequestSubject(prefix, verb, host string) string {
	return prefix + "." + protocol + "." + verb + "." + host
}

// CommandSubject is the subject on which an operator, who says that their name is
// by, orders verb.
func CommandSubject(prefix, verb, by string) string {
	return prefix + "." + protocol + "." + opToken + "." + verb + "." + by
}

// ProgressSubject is the subject of the progress of one call, which the host of
// the call alone may read.
func ProgressSubject(prefix, host, call string) string {
	return progressRoot(prefix, host) + call
}

func progressRoot(prefix, host string) string {
	return prefix + "." + protocol + "." + progressToken + "." + host + "."
}

// CheckpointSubject is the subject of the signed tree heads of the log.
func CheckpointSubject(prefix, logID string) string {
	return prefix + "." + protocol + ".checkpoint." + logID
}

// StreamName is the name of the JetStream stream that holds the copy of the
// log.
func StreamName(logID string) string { return "WAYBILL_" + logID }

// CheckpointStreamName is the name of the JetStream stream that holds the newest
// signed tree heads of the log.
func CheckpointStreamName(logID string) string { return StreamName(logID) + "_CHECKPOINTS" }

// EventRoot is what the subjects of all events of the log begin with.
func EventRoot(prefix, logID string) string {
	return prefix + "." + protocol + ".events." + logID + "."
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
