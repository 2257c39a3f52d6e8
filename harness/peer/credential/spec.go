package credential

import "waybill/domain"

// Spec says where the header comes from that authorizes requests. At most one of Token, File and Command is set.
type Spec struct {
	Name    string // of the authorization, for messages
	Token   string // as it is
	File    string // absolute path; read again when it has changed, white space around it taken away
	Command *Command
	Scheme  string            // before the token in Authorization; "" for Bearer
	Fixed   map[string]string // further headers, with their values
}

// Command is a program that prints a token and exits. It is run when a token is needed and none is known, or the last one was refused.
type Command struct {
	Path  string // executed as given, without a shell and without a search
	Argv0 string // argv[0]; Path where empty
	Args  []string
	Env   []string // the complete environment, KEY=VALUE
	Dir   string
	Limit int64 // milliseconds

	// Verify is called right before each start. A code other than "" refuses it, with a reason for the operator. Nil accepts.
	Verify func() (domain.Code, string)
}
