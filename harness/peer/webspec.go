package peer

import (
	"waybill/harness/peer/credential"
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

// Credential says where the header comes from that authorizes requests.
type Credential = credential.Spec

// TokenCommand is a program that prints a token and exits.
type TokenCommand = credential.Command
