package peer

import (
	"waybill/domain"
	"waybill/harness/peer/web"
)

// Web says how a peer is reached that is an endpoint and no process.
type Web struct {
	Options web.Options

	// Credentials are what requests are made with, by the name of the authorization context, domain.DefaultContext where the peer
	// has no contexts of its own. A context without one is asked without.
	Credentials map[string]Credential

	// Learn is told of every token before it is used: from then on Redact knows it. An error says why it cannot be redacted; then it
	// is not used. Nil accepts. It may be called by several goroutines at once.
	Learn func(token string) error
}

// Credential says where the header comes from that authorizes requests. At most one of Token, File and Command is set.
type Credential struct {
	Name    string // of the authorization, for messages
	Token   string // as it is
	File    string // absolute path; read again when it has changed, white space around it taken away
	Command *TokenCommand
	Scheme  string            // before the token in Authorization; "" for Bearer
	Fixed   map[string]string // further headers, with their values
}

// TokenCommand is a program that prints a token and exits. It is run when a token is needed and none is known, or the last one was refused.
type TokenCommand struct {
	Path  string // executed as given, without a shell and without a search
	Argv0 string // argv[0]; Path where empty
	Args  []string
	Env   []string // the complete environment, KEY=VALUE
	Dir   string
	Limit int64 // milliseconds

	// Verify is called right before each start. A code other than "" refuses it, with a reason for the operator. Nil accepts.
	Verify func() (domain.Code, string)
}
