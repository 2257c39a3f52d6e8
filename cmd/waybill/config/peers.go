package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill/config/redact"
	"waybill/domain"
)

func (f *File) readPeer(d *document, e entry, lookup func(string) (string, bool)) Peer {
	key := join("peers", e.key)
	if kind := e.value.kind; kind != mapping && kind != null {
		d.section(e.value, key) // reports it
		return Peer{Name: e.key}
	}
	if !domain.ValidName(e.key) {
		d.fail(e.line, e.column, key, "%s", nameRule)
	}
	refuseOAuth(d, e.value, key)
	if e.value.kind == null {
		e.value.kind = mapping // nothing is said, and the command will be missed
	}
	s := d.section(e.value, key)
	s.line, s.column = e.line, e.column
	p := Peer{Name: e.key, Transport: transport(s)}
	p.Command = f.command(s)
	p.Args = s.texts("args", true)
	p.readEnvironment(s, lookup)
	p.Cwd = f.beside(s.path("cwd", "."))
	p.readProtocol(s)
	p.readCalls(s)
	p.Keep = f.keeps(s)
	p.readHealth(s)
	p.readLists(s)
	p.UnpinnedCode = s.oneOf("unpinned_code", "refused", "accepted") == "accepted"
	p.DataFiles = s.distinct("data_files", func(v string) bool { return v != "" }, "a path")
	p.TrustHints = s.boolean("trust_hints", false)
	p.Repeatable = s.distinct("repeatable", validTool, "the name of a tool")
	s.order = slices.DeleteFunc(s.order, isOAuth) // reported already
	s.end()
	return p
}

// keeps reads whether the bytes of a peer's calls are kept; the file says it for
// those that do not.
func (f *File) keeps(s *section) bool {
	if f.Payloads == payloadsFull {
		return s.oneOf("payloads", payloadsFull, payloadsNone) == payloadsFull
	}
	return s.oneOf("payloads", payloadsNone, payloadsFull) == payloadsFull
}

func transport(s *section) string {
	switch value := s.text("transport", transportStdio); value {
	case transportStdio:
	case "http":
		s.fail("transport", "http "+later+", or write %s", transportStdio)
	default:
		s.fail("transport", "%q is not %s, the only choice", value, transportStdio)
	}
	return transportStdio
}

// command leaves a bare name to PATH and another as it was written: where it
// is relative, it is so to the folder of the file.
func (f *File) command(s *section) string {
	n := s.typed("command", text)
	switch {
	case n == nil && s.has("command"):
		return "" // reported already
	case n == nil:
		s.fail("command", "missing: name the program of this peer")
		return ""
	case strings.TrimSpace(n.text) == "":
		s.fail("command", "is empty: name the program of this peer")
	case strings.ContainsRune(n.text, 0):
		s.fail("command", "contains a NUL byte, which no path can")
	}
	return n.text
}

// readEnvironment reads env, set and secret_env. One variable has one source.
func (p *Peer) readEnvironment(s *section, lookup func(string) (string, bool)) {
	const rule = "the name of a variable: letters, digits and _, not beginning with a digit"
	p.Env = s.distinct("env", validVariable, rule)
	p.SecretEnv = s.distinct("secret_env", validVariable, rule)
	p.Set = make(map[string]string)
	set := s.doc.section(s.typed("set", mapping), join(s.key, "set"))
	for _, name := range set.order {
		p.Set[name] = set.variable(name)
		switch {
		case !validVariable(name):
			set.fail(name, "is not %s", rule)
		case slices.Contains(p.Env, name) || slices.Contains(p.SecretEnv, name):
			set.fail(name, "is named by env or secret_env too: a variable is either set or copied")
		}
	}
	for i, name := range p.SecretEnv {
		if s.count("secret_env") != len(p.SecretEnv) {
			break // an item was no text and has been reported
		}
		if slices.Contains(p.Env, name) {
			s.failItem("secret_env", i, "%s is named by env too: keep it here only", name)
		}
		if value, ok := lookup(name); ok && redact.Unfit(value) {
			s.failItem("secret_env", i, "the value of %s cannot be found and redacted, because it has fewer than %d bytes or is "+
				"a part of %s: use another, unset it, or copy it with env if it is no secret", name, redact.MinSecret, redact.Word)
		}
	}
}

func (s *section) variable(name string) string {
	n := s.value(name)
	switch {
	case n == nil:
		return ""
	case !scalar(n, true):
		s.fail(name, "must be text, not %s", n.kind)
	case strings.ContainsRune(n.text, 0):
		s.fail(name, "contains a NUL byte")
	}
	return n.text
}

func validVariable(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	return name != "" && strings.Trim(name, letters+"0123456789") == "" && strings.IndexByte(letters, name[0]) >= 0
}

func (p *Peer) readProtocol(s *section) {
	p.Capabilities = s.object("capabilities")
	p.AllowLegacy = s.boolean("allow_legacy", false)
	p.LegacyRevisions = slices.Clone(domain.LegacyRevisions)
	if s.has("legacy_revisions") {
		known := func(v string) bool { return slices.Contains(domain.LegacyRevisions, v) }
		p.LegacyRevisions = s.distinct("legacy_revisions", known, "one of "+strings.Join(domain.LegacyRevisions, ", "))
		if n := s.values["legacy_revisions"].value; n.kind == list && len(n.items) == 0 {
			s.fail("legacy_revisions", "is empty: name a revision; to allow none, leave allow_legacy out")
		}
	}
	p.ProbeTimeout = s.duration("probe_timeout", 10*time.Second, 10*time.Minute)
	p.LegacyProbeTimeout = s.duration("legacy_probe_timeout", 5*time.Second, 10*time.Minute)
	p.ListTimeout = s.duration("list_timeout", p.ProbeTimeout, 10*time.Minute)
	p.ShutdownTimeout = s.duration("shutdown_timeout", 2*time.Second, time.Minute)
}

// readCalls reads what bounds a call and what may be done for it.
func (p *Peer) readCalls(s *section) {
	p.CallTimeout = s.duration("call_timeout", 60*time.Second, time.Hour)
	p.CallLimit = s.durationOrNone("call_limit", 0, time.Millisecond, longest)
	if p.CallLimit != 0 && p.CallLimit < p.CallTimeout {
		s.fail("call_limit", "must not be less than call_timeout (%s), or 0 for none", short(p.CallTimeout))
	}
	p.IdleTimeout = s.duration("idle_timeout", p.CallTimeout, time.Hour)
	p.Inflight = int(s.number("inflight", 256, 1, mostInflight))
	p.Resends = int(s.number("resends", 1, 0, 10))
	p.Idempotency = s.idempotency("idempotency")
	p.InputRounds = int(s.number("input_rounds", 10, 1, 1000))
	p.InputWindow = s.duration("input_window", 10*time.Minute, longest)
	p.RefuseOutput = s.oneOf("output_schema", "record", "refuse") == "refuse"
}

// longest bounds times that a person may wait through.
const longest = 24 * time.Hour

// readHealth reads how a peer is found to be hung, and started again.
func (p *Peer) readHealth(s *section) {
	p.HungAfter = int(s.number("hung_after", 3, 0, 1000))
	p.HealthInterval = s.durationOrNone("health_interval", 0, time.Second, longest)
	p.HealthTimeout = s.duration("health_timeout", p.ProbeTimeout, 10*time.Minute)
	if p.HealthInterval != 0 && p.HealthTimeout > p.HealthInterval {
		if s.has("health_timeout") {
			s.fail("health_timeout", "must not be more than health_interval (%s)", short(p.HealthInterval))
		}
		p.HealthTimeout = p.HealthInterval
	}
	p.Restarts = int(s.number("restarts", 8, 1, 1000))
	p.Quarantine = s.duration("quarantine", 10*time.Minute, longest)
}

// readLists reads how the lists of a peer are kept, and what a change of a tool
// leads to.
func (p *Peer) readLists(s *section) {
	p.ListInterval = s.bounded("list_interval", time.Second, 10*time.Millisecond, 10*time.Minute, "")
	p.ListRefresh = s.durationOrNone("list_refresh", 0, time.Second, longest)
	if p.ListRefresh != 0 && p.ListRefresh < p.ListInterval {
		s.fail("list_refresh", "must not be less than list_interval (%s), or 0 for none", short(p.ListInterval))
	}
	p.StaleLists = s.duration("stale_lists", time.Hour, longest)
	p.Subscribe = s.boolean("subscribe", true)
	p.ListenTimeout = s.duration("listen_timeout", 10*time.Second, 10*time.Minute)
	p.HoldChanged = s.oneOf("on_tool_change", "record", "quarantine") == "quarantine"
	p.SharePublic = s.boolean("share_public", true)
}

func validTool(name string) bool { return name != "" && len(name) <= 128 }

// idempotency reads, for each tool, the name of the argument it honours as a key.
func (s *section) idempotency(name string) map[string]string {
	tools := s.doc.section(s.typed(name, mapping), join(s.key, name))
	keys := make(map[string]string)
	for _, tool := range tools.order {
		n := tools.typed(tool, text)
		if !validTool(tool) {
			tools.fail(tool, "the key is not the name of a tool")
		}
		if n == nil {
			continue
		}
		if keys[tool] = n.text; !validTool(n.text) {
			tools.fail(tool, "must be the name of an argument, of 1 to 128 bytes")
		}
	}
	return keys
}

// object reads a mapping as JSON: the same mapping gives the same bytes.
func (s *section) object(name string) jsontext.Value {
	n := s.typed(name, mapping)
	if n == nil {
		return jsontext.Value("{}")
	}
	value, err := n.plain()
	if err == nil {
		var b []byte
		if b, err = json.Marshal(value, json.Deterministic(true)); err == nil {
			return b
		}
	}
	s.fail(name, "cannot be written as JSON: %s", err)
	return jsontext.Value("{}")
}

// plain turns a value into what package json writes.
func (n *node) plain() (any, error) {
	switch n.kind {
	case text:
		return n.text, nil
	case boolean:
		return strings.EqualFold(n.text, "true"), nil
	case integer, decimal:
		return n.numeral()
	case list:
		values := make([]any, len(n.items))
		for i, item := range n.items {
			var err error
			if values[i], err = item.plain(); err != nil {
				return nil, err
			}
		}
		return values, nil
	case mapping:
		values := make(map[string]any)
		for _, e := range n.entries {
			var err error
			if values[e.key], err = e.value.plain(); err != nil {
				return nil, fmt.Errorf("%s: %w", e.key, err)
			}
		}
		return values, nil
	}
	return nil, nil
}

func (n *node) numeral() (any, error) {
	if v, err := strconv.ParseInt(n.text, 10, 64); err == nil {
		return v, nil
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, fmt.Errorf("%s is no JSON number", n.text)
	}
	return v, nil
}

const noOAuth = "obtaining tokens is the work of another program: have it provide a token " +
	"as a file, a variable (secret_env) or a command, and take this block out"

// refuseOAuth refuses such a block beside the peers.
func (s *section) refuseOAuth() {
	for _, key := range slices.Clone(s.order) {
		if isOAuth(key) {
			s.fail(key, noOAuth)
		}
	}
	s.order = slices.DeleteFunc(s.order, isOAuth)
}

func isOAuth(key string) bool {
	return strings.EqualFold(key, "oauth") || strings.EqualFold(key, "oauth2")
}

// refuseOAuth looks everywhere in a peer but among the variables of set.
func refuseOAuth(d *document, n *node, key string) {
	for i, item := range n.items {
		refuseOAuth(d, item, fmt.Sprintf("%s[%d]", key, i))
	}
	for _, e := range n.entries {
		name := join(key, e.key)
		if isOAuth(e.key) {
			d.fail(e.line, e.column, name, noOAuth)
			continue
		}
		if e.key != "set" {
			refuseOAuth(d, e.value, name)
		}
	}
}
