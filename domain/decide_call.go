package domain

import "fmt"

// MovedWindow is how long a call that names no generation is refused after its
// tool's name changed owner: 10 minutes, in nanoseconds.
const MovedWindow = 10 * 60 * 1_000_000_000

// decideCall routes a call or refuses it: canonical name, then peer and local
// name, then a new request id. Nothing is routed while the owner is ambiguous,
// unavailable or of unknown era (seed 2.1.0, rule 7 and refusal rules).
func (s *State) decideCall(e Event, d CallReceived) []Data {
	if out := s.decideKeyed(e, d); out != nil {
		return out
	}
	if code, reason := s.admitCall(d); code != "" {
		return d.hold("", code, reason)
	}
	if d.goesOn() {
		return s.decideContinuation(e, d)
	}
	out := s.route(e, d, taken{})
	if missed(out) {
		out = append(out, s.decideMissed(contextKey(d.Context), e.Mono)...)
	}
	return out
}

// missed reports whether a call was refused because nobody has its tool.
func missed(list []Data) bool {
	if len(list) == 0 {
		return false
	}
	d, ok := list[0].(CallRefused)
	return ok && d.Code == CodeUnknownTool
}

// taken counts what decisions claim that are not applied yet.
type taken struct {
	ids   int64          // of requests
	calls map[string]int // routed, by peer
}

func (t *taken) add(peer string) {
	t.ids++
	t.calls[peer]++
}

// crowded says why a peer takes no further call: as many are under way as the
// configuration allows.
func (p *Peer) crowded(t taken) (Code, string) {
	n := p.calls + t.calls[p.Name]
	if p.Config.Inflight == 0 || n < p.Config.Inflight {
		return "", ""
	}
	return CodeOverloaded, fmt.Sprintf("%d calls are under way at peer %s (inflight); try again later", n, p.Name)
}

// crowded says why no further call is taken at all.
func (s *State) crowded() (Code, string) {
	if len(s.calls) < s.Config.Inflight {
		return "", ""
	}
	return CodeOverloaded, fmt.Sprintf("%d calls are under way (limits.inflight); try again later", len(s.calls))
}

// route finds where a call goes.
func (s *State) route(e Event, d CallReceived, claimed taken) []Data {
	ns := s.space(d.Context)
	if ns == nil || ns.generation == 0 {
		return d.hold("", CodeNotReady, notReady)
	}
	name, b, code, reason := s.lookUp(ns, e.Time, d)
	if code == "" {
		code, reason = s.Config.permits(d, name, b.owner.Peer)
	}
	if code != "" {
		return []Data{CallRefused{CallID: d.CallID, Code: code, Reason: reason}}
	}
	p := s.Peer(b.owner.Peer)
	if code, reason := p.closedFor(b.owner, d.Context, e.Mono); code != "" {
		return d.hold(b.owner.Peer, code, reason)
	}
	if code, reason := p.crowded(claimed); code != "" {
		return []Data{CallRefused{CallID: d.CallID, Code: code, Reason: reason}}
	}
	t := p.timing(d)
	c, _ := p.usable(contextKey(d.Context), e.Mono)
	cache := ""
	if p.rules() != nil {
		cache, _ = p.verdict(contextKey(d.Context), e.Mono)
	}
	return []Data{CallRouted{CallID: d.CallID, At: p.at(), RequestID: s.nextRequest + 1 + claimed.ids, Tool: name, Local: b.owner.Local,
		Era: p.Era, Version: p.Version, Capabilities: p.declared(d), Generation: ns.generation, Namespace: ns.seq, Catalog: c.Seq,
		Deadline: t.deadline, Idle: t.idle, Limit: t.limit, Progress: t.progress, Context: contextWord(p.asked(contextKey(d.Context))), Cache: cache}}
}

const notReady = "the peers are still being probed and listed; try again shortly"

// admitCall checks what does not depend on the tool.
func (s *State) admitCall(d CallReceived) (Code, string) {
	switch {
	case d.Problem != "":
		return CodeBadRequest, d.Problem
	case s.Stopped:
		return CodeShuttingDown, "the service is stopping"
	case !d.goesOn() && (d.DuplicateOf != "" || s.CallTaken(d.CallKey())):
		return CodeDuplicateCall, "this host has used this call_id within 24 hours; choose another"
	}
	if code, reason := s.Config.stranger(d); code != "" {
		return code, reason
	}
	if code, reason := s.crowded(); code != "" {
		return code, reason
	}
	switch {
	case s.Rejected != nil:
		return s.Rejected.Code, s.Rejected.Reason
	case s.space(d.Context) == nil || s.space(d.Context).generation == 0:
		return CodeNotReady, notReady
	}
	return "", ""
}

// lookUp finds the owner of a canonical name.
func (s *State) lookUp(ns *namespace, now int64, d CallReceived) (string, binding, Code, string) {
	name, code, reason := ns.canonical(d)
	if code != "" {
		return name, binding{}, code, reason
	}
	b, ok := ns.bindings[name]
	if !ok {
		if c, contested := ns.collisions[name]; contested && c.Winner == nil {
			return name, b, CodeAmbiguousOwner, fmt.Sprintf("%d tools claim this name and none owns it (event %d)", len(c.Candidates), c.seq)
		}
		if canonical, ok := ns.table.FromModel(name); ok && s.Config.Partial {
			return name, b, CodeUnknownTool, "this is the model_name of " + canonical + ", not its name: call that, or name it by model_name"
		}
		return name, b, CodeUnknownTool, "no peer has a tool of this name; see waybill tools"
	}
	moved, hasMoved := ns.movedAt[name]
	switch {
	case d.Generation > ns.generation:
		return name, b, CodeUnknownGen, fmt.Sprintf("generation %d does not exist yet; the namespace is at %d", d.Generation, ns.generation)
	case d.Generation != 0 && b.since > d.Generation:
		return name, b, CodeStaleRoute, fmt.Sprintf("the route of this name changed at generation %d; read the tools again", b.since)
	case d.Generation == 0 && hasMoved && now-moved < s.Config.movedWindow():
		return name, b, CodeNameMoved, s.Config.movedReason()
	}
	return name, b, "", ""
}

// ModelForm is the form of names that model APIs take.
const ModelForm = "model"

// canonical finds the canonical name that a call means. A name in the form of
// models is found by lookup alone.
func (ns *namespace) canonical(d CallReceived) (string, Code, string) {
	if d.Form != ModelForm {
		return d.Tool, "", ""
	}
	name, ok := ns.table.FromModel(d.Tool)
	if !ok {
		return d.Tool, CodeUnknownTool, "no tool has this name in the form of models, or two have; see model_name in waybill tools --json"
	}
	return name, "", ""
}

func (c Config) movedReason() string {
	if c.Moved > 0 {
		return fmt.Sprintf("this name changed its owner less than %d ms ago (moved_window); read the tools again and name the generation", c.Moved)
	}
	return "this name changed its owner less than ten minutes ago; read the tools again and name the generation"
}

func (c Config) movedWindow() int64 {
	if c.Moved > 0 {
		return c.Moved * 1_000_000
	}
	return MovedWindow
}

// closedFor says why no call can go to the peer now.
func (p *Peer) closedFor(o Owner, context string, mono int64) (Code, string) {
	c, l := p.served(context, mono)
	switch {
	case p == nil:
		return CodePeerUnavailable, "peer " + o.Peer + " is not configured any more"
	case !p.live || p.waiting || p.closing:
		return CodePeerUnavailable, "peer " + p.Name + " is not running: " + p.why()
	case p.Era == EraUnknown:
		return CodeEraUnknown, "the era of peer " + p.Name + " is not known: " + p.why()
	case c == nil || !l.listed:
		return CodePeerUnavailable, "peer " + p.Name + " has not listed its tools yet: " + p.why()
	case l.overdue(mono):
		return CodePeerUnavailable, "peer " + p.Name + ": " + l.unread()
	case !c.Has(o.Local):
		return CodeUnknownTool, "peer " + p.Name + " does not list this tool any more"
	}
	return l.held(o.Local)
}

// served is usable of a peer that may not be there.
func (p *Peer) served(context string, mono int64) (*Catalog, *line) {
	if p == nil {
		return nil, nil
	}
	return p.usable(contextKey(context), mono)
}

func (p *Peer) why() string {
	if p.Reason == "" {
		return "it is being started"
	}
	return p.Reason
}

// waiting returns the call that waits for a request of this incarnation.
func (s *State) waiting(at At, id int64) *call {
	if c := s.byRequest[id]; c != nil && c.at == at {
		return c
	}
	return nil
}

// decideCancelled gives up a call for its host: the peer is told, and the call
// ends here and now. One that has ended already stays as it ended.
func (s *State) decideCancelled(d CallCancelled) []Data {
	c := s.calls[d.CallKey()]
	if c == nil {
		return nil
	}
	if c.held != nil {
		return []Data{CallSettled{CallID: c.id, Status: StatusCancelled, Code: CodeCancelled, Ran: c.held.ran}}
	}
	return []Data{
		CallAbandoned{CallID: c.id, At: c.at, RequestID: c.reqID, Reason: "cancelled by the host"},
		CallSettled{CallID: c.id, Status: StatusCancelled, Code: CodeCancelled, Ran: RanMaybe},
	}
}

// ranIf says what can be known of a call whose last exchange had no answer. What
// an exchange before it may have run stays so.
func (c *call) ranIf(written string) Ran {
	if written == "no" && !c.mayHaveRun {
		return RanNo
	}
	return RanMaybe
}

// decideFailed ends what waited for a request whose transport is gone.
func (s *State) decideFailed(mono int64, d ExchangeFailed) []Data {
	if c := s.waiting(d.At, d.RequestID); c != nil {
		return s.decideLost(mono, c, d)
	}
	if l := s.reading(d.At, d.RequestID); l != nil {
		out := CatalogRefused{At: d.At, Context: contextWord(l.context), Code: d.Code, Reason: d.unreadable(MethodList)}
		if d.Code == CodeTransportLost {
			out.Code = CodeListLost
			if d.Reason == "" {
				out.Reason = "the transport was lost while tools/list was under way"
			}
		}
		return []Data{out}
	}
	if l := s.listening(d.At, d.RequestID); l != nil {
		return l.decideListenLost(mono, d)
	}
	p := s.current(d.At)
	switch {
	case p == nil:
		return nil
	case p.http() && p.health == d.RequestID && d.RequestID != 0: // where a process is lost, its end is told
		return p.decideUnhealthy()
	case p.probing(d.RequestID) && d.Code != CodeTransportLost:
		return refuse(p, d.Code, d.unreadable(p.probe.method)+"; the peer stays closed, see limits.frame and capabilities:", "")
	}
	return nil // a lost transport is followed by peer.exited, which decides
}

// unreadable says what kept a request, or its answer, from getting through.
func (d ExchangeFailed) unreadable(method string) string {
	switch {
	case d.Status != 0:
		return fmt.Sprintf("%s was answered with HTTP %d (%s)", method, d.Status, clipped(d.Reason))
	case d.Reason != "":
		return method + " was not answered: " + clipped(d.Reason)
	case d.Code == CodeFrameTooLarge:
		return "the answer to " + method + " was longer than limits.frame"
	}
	return method + " could not be written (" + string(d.Code) + ")"
}

// probing reports whether the request is the probe that is waited for.
func (p *Peer) probing(id int64) bool { return p.probe.id == id && id != 0 && !p.probe.closed }

// decideDeadline ends what waited longer than it may.
func (s *State) decideDeadline(d DeadlinePassed) []Data {
	if c := s.waiting(d.At, d.RequestID); c != nil {
		out := []Data{
			CallAbandoned{CallID: c.id, At: c.at, RequestID: c.reqID, Reason: "deadline passed"},
			CallSettled{CallID: c.id, Status: StatusTimedOut, Code: CodeTimedOut, Ran: c.ranIf(d.Written)},
		}
		if p := s.current(d.At); p != nil {
			out = append(out, p.decideHung()...)
		}
		return out
	}
	p := s.current(d.At)
	if l := s.reading(d.At, d.RequestID); l != nil {
		return []Data{CatalogRefused{At: p.at(), Context: contextWord(l.context), Code: CodeListTimeout,
			Reason: fmt.Sprintf("tools/list was not answered within %d ms (%s)", p.Config.listTimeout(), p.Config.listKey())}}
	}
	if l := s.listening(d.At, d.RequestID); l != nil {
		return l.decideUnheard()
	}
	switch {
	case p == nil:
		return nil
	case p.health == d.RequestID && d.RequestID != 0:
		return p.decideUnhealthy()
	case p.probing(d.RequestID):
		return s.decideProbeDeadline(p)
	}
	return nil
}
