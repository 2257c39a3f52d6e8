package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill/cmd/waybill/config/redact"
	"waybill/cmd/waybill/config/syntax"
	"waybill/cmd/waybill/config/yamldoc"
	"waybill/domain"
	"waybill/harness"
)

// An Authorization is what requests to one origin are made with: a token, further
// headers, or both. At most one of TokenFile, TokenEnv and Command is set.
type Authorization struct {
	Name      string
	TokenFile string // absolute
	TokenEnv  string // the name of a variable
	Command   *TokenCommand
	Scheme    string   // before the token; "" where there is none
	Headers   []Header // sorted by name; no two differ in case alone
}

// A TokenCommand is a program that prints a token and exits.
type TokenCommand struct {
	Process
	Timeout time.Duration
}

// A Header is one that every request carries. Its value is that of a variable, or
// what was written, or read from a file, when the configuration was loaded.
type Header struct {
	Name  string
	Env   string // the name of a variable; "" where Value is it
	Value hidden
}

// hidden is a text that no print shows.
type hidden string

// Format implements fmt.Formatter.
func (hidden) Format(f fmt.State, _ rune) { fmt.Fprint(f, redact.Word) }

// fixed returns the headers with their values. A variable that lookup does not know
// leaves its header out.
func (a *Authorization) fixed(lookup func(string) (string, bool)) map[string]string {
	values := make(map[string]string)
	for _, h := range a.Headers {
		if h.Env == "" {
			values[h.Name] = string(h.Value)
		} else if value, ok := lookup(h.Env); ok {
			values[h.Name] = value
		}
	}
	return values
}

// Authorization returns the one of that name, or nil.
func (f *File) Authorization(name string) *Authorization {
	for i := range f.Authorizations {
		if f.Authorizations[i].Name == name {
			return &f.Authorizations[i]
		}
	}
	return nil
}

// tokenKeys are the three ways in.
var tokenKeys = []string{"token_file", "token_env", "token_command"}

func (r *reader) readAuthorizations(s *yamldoc.Section) {
	all := s.Under("authorizations")
	for _, name := range all.Order {
		if !domain.ValidName(name) {
			all.Doc.Fail(all.Values[name].Line, all.Values[name].Column, yamldoc.Join(all.Key, name), "%s", nameRule)
		}
		a := Authorization{Name: name}
		if n := all.Typed(name, yamldoc.Mapping); n != nil {
			r.readAuthorization(&a, all.Doc.Section(n, yamldoc.Join(all.Key, name)))
		}
		r.Authorizations = append(r.Authorizations, a)
	}
	slices.SortFunc(r.Authorizations, func(a, b Authorization) int { return strings.Compare(a.Name, b.Name) })
}

func (r *reader) readAuthorization(a *Authorization, s *yamldoc.Section) {
	if path := s.Path("token_file", ""); path != "" {
		a.TokenFile = r.beside(path)
	} else if n := s.Values["token_file"].Value; n != nil && n.Kind == yamldoc.Text {
		s.Fail("token_file", "is empty: name a path, or take the key out")
	}
	if a.TokenEnv = s.Text("token_env", ""); s.Has("token_env") {
		r.checkVariable(s, "token_env", a.TokenEnv)
	}
	if n := s.Typed("token_command", yamldoc.Mapping); n != nil {
		a.Command = r.readTokenCommand(s.Doc.Section(n, yamldoc.Join(s.Key, "token_command")))
	}
	given := slices.DeleteFunc(slices.Clone(tokenKeys), func(key string) bool { return !s.Has(key) })
	switch {
	case len(given) > 1:
		s.Fail(given[1], "is given beside %s: keep one", given[0])
	case len(given) == 0 && !s.Has("headers"):
		s.Doc.Fail(s.Line, s.Column, s.Key, "says nothing: give one of %s, or headers", strings.Join(tokenKeys, ", "))
	}
	a.Scheme = readScheme(s, len(given) > 0)
	r.readHeaders(a, s, len(given) > 0)
	s.End()
}

func readScheme(s *yamldoc.Section, token bool) string {
	scheme := s.Text("scheme", "Bearer")
	switch {
	case !syntax.Token(scheme):
		s.Fail("scheme", "must be a word such as Bearer: letters, digits and !#$%%&'*+-.^_`|~")
	case !token && s.Has("scheme"):
		s.Fail("scheme", "stands before a token, and none is given: name one with %s, or take it out", strings.Join(tokenKeys, ", "))
	}
	if !token {
		return ""
	}
	return scheme
}

func (r *reader) readTokenCommand(s *yamldoc.Section) *TokenCommand {
	c := &TokenCommand{}
	r.readProcess(&c.Process, s, "token_command")
	c.Timeout = s.Duration("timeout", 10*time.Second, 10*time.Minute)
	s.End()
	return c
}

// checkVariable holds a variable whose value goes into a header to what can be sent
// and redacted. The message never holds the value.
func (r *reader) checkVariable(s *yamldoc.Section, key, name string) {
	if n := s.Values[key].Value; n == nil || n.Kind != yamldoc.Text {
		return // reported already
	}
	value, ok := r.lookup(name)
	switch {
	case !syntax.Variable(name):
		s.Fail(key, "%q is not %s", name, syntax.VariableRule)
	case !ok: // whoever needs it is refused, see unset
	default:
		checkSecret(s, key, "the value of "+name, value)
	}
}

// unset names the first variable of an authorization that is not set; "" for none.
// Commands that send no requests need none of them.
func (a *Authorization) unset(lookup func(string) (string, bool)) string {
	names := []string{a.TokenEnv}
	for _, h := range a.Headers {
		names = append(names, h.Env)
	}
	for _, name := range names {
		if _, ok := lookup(name); name != "" && !ok {
			return name
		}
	}
	return ""
}

// checkSecret reports a value that cannot be redacted, or that no header can carry.
func checkSecret(s *yamldoc.Section, key, what, value string) {
	switch {
	case redact.Unfit(value):
		s.Fail(key, "%s "+unfit+": use another", what, redact.MinSecret, redact.Word)
	case !syntax.FieldValue(value):
		s.Fail(key, "%s %s", what, syntax.FieldRule)
	}
}

func (r *reader) readHeaders(a *Authorization, s *yamldoc.Section, token bool) {
	headers := s.Under("headers")
	if n := s.Values["headers"].Value; n != nil && n.Kind == yamldoc.Mapping && len(n.Entries) == 0 {
		s.Fail("headers", "is empty: name a header, or take the key out")
	}
	seen := make(map[string]string) // in small letters, to as it was written
	for _, name := range headers.Order {
		h := Header{Name: name}
		low := strings.ToLower(name)
		switch reason := syntax.BadHeader(name); {
		case reason != "":
			headers.Fail(name, "%s", reason)
		case low == "authorization" && token:
			headers.Fail(name, "is the header that the token goes into: keep one of the two")
		case seen[low] != "":
			headers.Fail(name, "is %s in other letters, and header names differ in more than that: keep one", seen[low])
		}
		seen[low] = name
		r.readHeader(&h, headers)
		a.Headers = append(a.Headers, h)
	}
	slices.SortFunc(a.Headers, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
}

// readHeader reads a value: a text, or {env: VAR}, or {file: PATH}.
func (r *reader) readHeader(h *Header, headers *yamldoc.Section) {
	n := headers.Value(h.Name)
	switch {
	case n == nil:
	case n.Kind == yamldoc.Mapping:
		r.readHeaderSource(h, headers.Doc.Section(n, yamldoc.Join(headers.Key, h.Name)))
	case !yamldoc.Scalar(n, true):
		headers.Fail(h.Name, "must be text, {env: NAME} or {file: PATH}, not %s", n.Kind)
	case !syntax.FieldValue(n.Text):
		headers.Fail(h.Name, "the value %s", syntax.FieldRule)
	default:
		h.Value = hidden(n.Text)
	}
}

func (r *reader) readHeaderSource(h *Header, s *yamldoc.Section) {
	if h.Env = s.Text("env", ""); s.Has("env") {
		r.checkVariable(s, "env", h.Env)
	}
	if s.Has("env") == s.Has("file") {
		s.Doc.Fail(s.Line, s.Column, s.Key, "must be {env: NAME} or {file: PATH}, and not both")
		s.Ask("file")
	} else if path := s.Path("file", ""); path != "" {
		b, err := harness.ReadSmall(r.beside(path))
		if h.Value = hidden(strings.TrimSpace(string(b))); err != nil {
			s.Fail("file", "cannot be read: %v", err)
		} else {
			checkSecret(s, "file", "what is in "+path, string(h.Value))
		}
	}
	s.End()
}
