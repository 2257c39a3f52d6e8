package bus

import "waybill/harness/bus/access"

// What package access says of subjects and users, under the names that those know who
// speak to the bus.
type (
	// Identity is one NATS user and its key.
	Identity = access.Identity

	// Credentials are the NATS users of one data directory with their keys.
	Credentials = access.Credentials

	// Role is what a user may do, for those of which there can be any number.
	Role = access.Role
)

const (
	DefaultPrefix = access.DefaultPrefix // the first token of every subject unless the operator chose another
	MaxMessage    = access.MaxMessage    // bytes over which nothing is published
	LocalHost     = access.LocalHost     // the host that the commands on the same machine use
	CallVerb      = access.CallVerb      // the verb under which hosts submit calls
	AccountsFile  = access.AccountsFile  // the name of the configuration for outside servers

	protocol      = access.Protocol
	opToken       = access.OpToken
	progressToken = access.ProgressToken
)

// ErrStaleAccounts says that AccountsFile is not what an outside server needs.
var ErrStaleAccounts = access.ErrStaleAccounts

// Credentials on disk.
var (
	WriteCredentials = access.WriteCredentials
	CheckAccounts    = access.CheckAccounts
	LoadCredentials  = access.LoadCredentials
	LoadHost         = access.LoadHost
	LoadOperator     = access.LoadOperator
	LoadReader       = access.LoadReader
)

// Names and subjects.
var (
	ValidName            = access.ValidName
	CheckSpace           = access.CheckSpace
	RequestSubject       = access.RequestSubject
	CommandSubject       = access.CommandSubject
	ProgressSubject      = access.ProgressSubject
	CheckpointSubject    = access.CheckpointSubject
	EventRoot            = access.EventRoot
	InboxPrefix          = access.InboxPrefix
	StreamName           = access.StreamName
	CheckpointStreamName = access.CheckpointStreamName
	PublicStreamName     = access.PublicStreamName
)
