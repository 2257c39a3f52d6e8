package config

import (
	"slices"
	"strings"
	"time"

	"waybill/cmd/waybill/config/yamldoc"
	"waybill/domain"
)

func (r *reader) readPeer(d *yamldoc.Document, e yamldoc.Entry) Peer {
	key := yamldoc.Join("peers", e.Key)
	if kind := e.Value.Kind; kind != yamldoc.Mapping && kind != yamldoc.Null {
		d.Section(e.Value, key) // reports it
		return Peer{Name: e.Key}
	}
	if !domain.ValidName(e.Key) {
		d.Fail(e.Line, e.Column, key, "%s", nameRule)
	}
	if e.Value.Kind == yamldoc.Null {
		e.Value.Kind = yamldoc.Mapping // nothing is said, and the command will be missed
	}
	s := d.Section(e.Value, key)
	s.Line, s.Column = e.Line, e.Column
	p := Peer{Name: e.Key, Transport: transport(s)}
	p.readProtocol(s)
	if p.Transport == transportHTTP {
		p.HTTP = r.readHTTP(s, &p)
	} else {
		r.readStdio(s, &p)
	}
	p.readCalls(s)
	p.Keep = r.keeps(s)
	p.readHealth(s)
	p.readLists(s)
	p.TrustHints = s.Boolean("trust_hints", false)
	p.Repeatable = s.Distinct("repeatable", validTool, "the name of a tool")
	s.End()
	return p
}

// readStdio reads what only a peer has that is a process.
func (r *reader) readStdio(s *yamldoc.Section, p *Peer) {
	r.readProcess(&p.Process, s, "peer")
	p.readSet(s)
	p.ShutdownTimeout = s.Duration("shutdown_timeout", 2*time.Second, time.Minute)
	p.UnpinnedCode = s.OneOf("unpinned_code", "refused", "accepted") == "accepted"
	p.DataFiles = s.Distinct("data_files", func(v string) bool { return v != "" }, "a path")
}

// keeps reads whether the bytes of a peer's calls are kept; the file says it for
// those that do not.
func (f *File) keeps(s *yamldoc.Section) bool {
	if f.Payloads == payloadsFull {
		return s.OneOf("payloads", payloadsFull, payloadsNone) == payloadsFull
	}
	return s.OneOf("payloads", payloadsNone, payloadsFull) == payloadsFull
}

func (p *Peer) readProtocol(s *yamldoc.Section) {
	p.Capabilities = s.Object("capabilities")
	p.AllowLegacy = s.Boolean("allow_legacy", false)
	p.readRevisions(s)
	p.ProbeTimeout = s.Duration("probe_timeout", 10*time.Second, 10*time.Minute)
	p.LegacyProbeTimeout = s.Duration("legacy_probe_timeout", 5*time.Second, 10*time.Minute)
	p.ListTimeout = s.Duration("list_timeout", p.ProbeTimeout, 10*time.Minute)
}

// sseRevision is the one whose HTTP is another transport than Streamable HTTP.
const sseRevision = "2024-11-05"

func (p *Peer) readRevisions(s *yamldoc.Section) {
	p.LegacyRevisions = slices.Clone(domain.LegacyRevisions)
	over := p.Transport == transportHTTP
	if over {
		p.LegacyRevisions = slices.DeleteFunc(p.LegacyRevisions, func(v string) bool { return v == sseRevision })
	}
	if !s.Has("legacy_revisions") {
		return
	}
	known := func(v string) bool { return slices.Contains(p.LegacyRevisions, v) || over && v == sseRevision }
	named := s.Distinct("legacy_revisions", known, "one of "+strings.Join(p.LegacyRevisions, ", "))
	if i := slices.Index(named, sseRevision); over && i >= 0 && len(named) == s.Count("legacy_revisions") {
		s.FailItem("legacy_revisions", i, "%s is the HTTP+SSE transport, which is not spoken here: take it out", sseRevision)
	}
	if n := s.Values["legacy_revisions"].Value; n.Kind == yamldoc.List && len(n.Items) == 0 {
		s.Fail("legacy_revisions", "is empty: name a revision; to allow none, leave allow_legacy out")
	}
	p.LegacyRevisions = named
}

// readCalls reads what bounds a call and what may be done for it.
func (p *Peer) readCalls(s *yamldoc.Section) {
	p.CallTimeout = s.Duration("call_timeout", 60*time.Second, time.Hour)
	p.CallLimit = s.DurationOrNone("call_limit", 0, time.Millisecond, longest)
	if p.CallLimit != 0 && p.CallLimit < p.CallTimeout {
		s.Fail("call_limit", "must not be less than call_timeout (%s), or 0 for none", yamldoc.Short(p.CallTimeout))
	}
	p.IdleTimeout = s.Duration("idle_timeout", p.CallTimeout, time.Hour)
	p.Inflight = int(s.Number("inflight", 256, 1, mostInflight))
	p.Resends = int(s.Number("resends", 1, 0, 10))
	p.Idempotency = idempotency(s, "idempotency")
	p.InputRounds = int(s.Number("input_rounds", 10, 1, 1000))
	p.InputWindow = s.Duration("input_window", 10*time.Minute, longest)
	p.RefuseOutput = s.OneOf("output_schema", "record", "refuse") == "refuse"
}

// longest bounds times that a person may wait through.
const longest = 24 * time.Hour

// readHealth reads how a peer is found to be hung, and started again.
func (p *Peer) readHealth(s *yamldoc.Section) {
	p.HungAfter = int(s.Number("hung_after", 3, 0, 1000))
	p.HealthInterval = s.DurationOrNone("health_interval", 0, time.Second, longest)
	p.HealthTimeout = s.Duration("health_timeout", p.ProbeTimeout, 10*time.Minute)
	if p.HealthInterval != 0 && p.HealthTimeout > p.HealthInterval {
		if s.Has("health_timeout") {
			s.Fail("health_timeout", "must not be more than health_interval (%s)", yamldoc.Short(p.HealthInterval))
		}
		p.HealthTimeout = p.HealthInterval
	}
	p.Restarts = int(s.Number("restarts", 8, 1, 1000))
	p.Quarantine = s.Duration("quarantine", 10*time.Minute, longest)
}

// readLists reads how the lists of a peer are kept, and what a change of a tool
// leads to.
func (p *Peer) readLists(s *yamldoc.Section) {
	p.ListInterval = s.Bounded("list_interval", time.Second, 10*time.Millisecond, 10*time.Minute, "")
	p.ListRefresh = s.DurationOrNone("list_refresh", 0, time.Second, longest)
	if p.ListRefresh != 0 && p.ListRefresh < p.ListInterval {
		s.Fail("list_refresh", "must not be less than list_interval (%s), or 0 for none", yamldoc.Short(p.ListInterval))
	}
	p.StaleLists = s.Duration("stale_lists", time.Hour, longest)
	p.Subscribe = s.Boolean("subscribe", true)
	p.ListenTimeout = s.Duration("listen_timeout", 10*time.Second, 10*time.Minute)
	p.HoldChanged = s.OneOf("on_tool_change", "record", "quarantine") == "quarantine"
	p.SharePublic = s.Boolean("share_public", true)
}

func validTool(name string) bool { return name != "" && len(name) <= 128 }

// idempotency reads, for each tool, the name of the argument it honours as a key.
func idempotency(s *yamldoc.Section, name string) map[string]string {
	tools := s.Under(name)
	keys := make(map[string]string)
	for _, tool := range tools.Order {
		n := tools.Typed(tool, yamldoc.Text)
		if !validTool(tool) {
			tools.Fail(tool, "the key is not the name of a tool")
		}
		if n == nil {
			continue
		}
		if keys[tool] = n.Text; !validTool(n.Text) {
			tools.Fail(tool, "must be the name of an argument, of 1 to 128 bytes")
		}
	}
	return keys
}
