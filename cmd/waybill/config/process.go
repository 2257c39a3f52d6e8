package config

import (
	"maps"
	"slices"
	"strings"

	"waybill/cmd/waybill/config/redact"
	"waybill/cmd/waybill/config/syntax"
	"waybill/cmd/waybill/config/yamldoc"
)

// A Process is a program with all that it is given.
type Process struct {
	Command   string
	Args      []string
	Env       []string          // names, in the order of the file
	Set       map[string]string // never nil in a peer that is a process
	SecretEnv []string          // names
	Cwd       string            // absolute
}

// readProcess reads what a program is started with, but for set.
func (r *reader) readProcess(p *Process, s *yamldoc.Section, of string) {
	p.Command = command(s, of)
	p.Args = s.Texts("args", true)
	p.readEnvironment(s, r.lookup)
	p.Cwd = r.beside(s.Path("cwd", "."))
}

// command leaves a bare name to PATH and another as it was written: where it
// is relative, it is so to the folder of the file.
func command(s *yamldoc.Section, of string) string {
	n := s.Typed("command", yamldoc.Text)
	switch {
	case n == nil && (s.Has("command") || s.Has("endpoint")):
		return "" // reported already
	case n == nil:
		s.Fail("command", "missing: name the program of this %s", of)
		return ""
	case strings.TrimSpace(n.Text) == "":
		s.Fail("command", "is empty: name the program of this %s", of)
	case strings.ContainsRune(n.Text, 0):
		s.Fail("command", "contains a NUL byte, which no path can")
	}
	return n.Text
}

// readEnvironment reads env and secret_env. One variable has one source.
func (p *Process) readEnvironment(s *yamldoc.Section, lookup func(string) (string, bool)) {
	p.Env = s.Distinct("env", syntax.Variable, syntax.VariableRule)
	p.SecretEnv = s.Distinct("secret_env", syntax.Variable, syntax.VariableRule)
	for i, name := range p.SecretEnv {
		if s.Count("secret_env") != len(p.SecretEnv) {
			break // an item was no text and has been reported
		}
		if slices.Contains(p.Env, name) {
			s.FailItem("secret_env", i, "%s is named by env too: keep it here only", name)
		}
		if value, ok := lookup(name); ok && redact.Unfit(value) {
			s.FailItem("secret_env", i, "the value of %s "+unfit+": use another, unset it, or copy it with env if it is no secret",
				name, redact.MinSecret, redact.Word)
		}
	}
}

const unfit = "cannot be found and redacted, because it has fewer than %d bytes or is a part of %s"

// readSet reads the variables that have fixed values.
func (p *Process) readSet(s *yamldoc.Section) {
	p.Set = make(map[string]string)
	set := s.Under("set")
	for _, name := range set.Order {
		p.Set[name] = variable(set, name)
		switch {
		case !syntax.Variable(name):
			set.Fail(name, "is not %s", syntax.VariableRule)
		case slices.Contains(p.Env, name) || slices.Contains(p.SecretEnv, name):
			set.Fail(name, "is named by env or secret_env too: a variable is either set or copied")
		}
	}
}

func variable(s *yamldoc.Section, name string) string {
	n := s.Value(name)
	switch {
	case n == nil:
		return ""
	case !yamldoc.Scalar(n, true):
		s.Fail(name, "must be text, not %s", n.Kind)
	case strings.ContainsRune(n.Text, 0):
		s.Fail(name, "contains a NUL byte")
	}
	return n.Text
}

// environment is the whole environment, as NAME=VALUE and sorted. A variable that
// lookup does not know is left out.
func (p *Process) environment(lookup func(string) (string, bool)) []string {
	vars := make(map[string]string)
	maps.Copy(vars, p.Set)
	for _, from := range slices.Concat(p.Env, p.SecretEnv) {
		if value, ok := lookup(from); ok {
			vars[from] = value
		}
	}
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// path returns the PATH that the program sees.
func (p *Process) path(lookup func(string) (string, bool)) string {
	if value, ok := p.Set["PATH"]; ok {
		return value
	}
	if slices.Contains(p.Env, "PATH") || slices.Contains(p.SecretEnv, "PATH") {
		value, _ := lookup("PATH")
		return value
	}
	return ""
}
