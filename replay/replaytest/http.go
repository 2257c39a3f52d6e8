package replaytest

import (
	"fmt"

	"waybill/domain"
)

// httpConfig has an endpoint for each way in which one may be met, a process beside
// them, and hosts.
func httpConfig() domain.Config {
	c := Config(domain.PrefixOnCollision, "archive", "gate", "late", "lists", "moved", "notes", "old", "wiki")
	c.Partial = true
	c.Hosts = []domain.HostConfig{
		{Name: "ben", Context: "bob", Peers: []string{"notes", "wiki"}, Tools: []string{"add", "pa*"}},
		{Name: "local", Context: "alice"},
	}
	for i := range c.Peers {
		p := &c.Peers[i]
		if p.Name == "wiki" {
			continue
		}
		p.Transport, p.Command, p.Endpoint = domain.TransportHTTP, "", "https://"+p.Name+".example/mcp"
		p.Resends, p.HealthEvery, p.HealthWithin = 2, 30_000, 5_000
		p.Lists = &domain.ListRules{Interval: 1_000, Stale: 60_000, Listen: 5_000}
		switch p.Name {
		case "gate", "notes":
			p.Contexts = []string{"alice", "bob"}
			p.Credentials = map[string]string{"alice": "alice-token", "bob": "bob-token"}
		}
	}
	return c
}

func httpPeers() map[string]*Peer {
	ambiguous, unauthorized := Failure{domain.ClassAmbiguous, 404}, Failure{domain.ClassUnauthorized, 401}
	one := func(name string) listScript {
		return func(string, int) string { return plainTools(private, name) }
	}
	return map[string]*Peer{
		"archive": {HTTP: true, Fails: []Failure{ambiguous, {}, ambiguous, {}, ambiguous}, Lists: func(string, int) string { return plainTools("", "find") }},
		"gate":    {HTTP: true, Modern: true, Fails: []Failure{unauthorized, {domain.ClassUnauthorized, 0}, unauthorized}, Lists: one("enter")},
		"late":    {HTTP: true, Modern: true, Fails: []Failure{{domain.ClassUnavailable, 503}, {domain.ClassUnavailable, 0}}, Lists: one("later")},
		"lists":   {HTTP: true, Modern: true, Announces: true, Grants: map[string]string{"": `"toolsListChanged":true`}, Lists: httpTools},
		"moved":   {HTTP: true, Fails: []Failure{{domain.ClassRedirect, 302}}},
		"notes":   {HTTP: true, Modern: true, Fails: []Failure{{domain.ClassUnauthorized, 403}}, Lists: notesOverHTTP},
		"old":     {HTTP: true, Fails: []Failure{ambiguous}},
		"wiki":    {Modern: true, Pages: [][]string{{"page", "secret"}}},
	}
}

func notesOverHTTP(context string, _ int) string {
	return plainTools(private, "add", context+"_only")
}

// httpTools mirror arguments in headers, which one of them may not; the list cannot
// be read a fourth time.
func httpTools(_ string, n int) string {
	if n == 4 {
		return `"resultType":"complete","tools":"none"`
	}
	mirrors := func(name, kind string) string {
		return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object","properties":{"region":{"type":%q,"x-mcp-header":"Region"}}}}`, name, kind)
	}
	return public + `"tools":[` + mirrors("mirror", "string") + "," + mirrors("odd", "number") + `]`
}

// HTTP is a log of endpoints: modern, legacy with sessions that are gone, not
// authorized, not there yet, elsewhere, ambiguous; and of hosts.
func HTTP() *Log {
	w := NewWorld()
	w.Start(httpConfig(), httpPeers())
	w.sessions()
	w.headers()
	w.turnedAway()
	w.hosts()
	w.endpoints()
	w.Observe(domain.ServiceStopped{Reason: "interrupt"}, nil)
	return Make(w.Events)
}

// fails reports a probe that fails, if the next one of the peer does.
func (w *World) fails(p *Peer, s domain.Send) bool {
	if len(p.Fails) == 0 {
		return false
	}
	f := p.Fails[0]
	p.Fails = p.Fails[1:]
	if f.Class == "" {
		return false
	}
	d := domain.ProbeFailed{At: s.At, RequestID: s.RequestID, Class: f.Class, Status: f.Status, Reason: "no message in it"}
	if f.Status == 0 {
		d.Reason = "https://" + s.Peer + ".example: no connection came about"
		w.step(d, nil)
		return true
	}
	body := fmt.Appendf(nil, "<html>%d</html>", f.Status)
	d.Frame = domain.RefTo(body)
	w.step(d, body)
	return true
}

// ask is a call of the host "local" in its context.
func (w *World) ask(id, tool string) {
	w.submit(id, tool, func(d *domain.CallReceived) { d.Context = "alice" })
}

// unanswered is an answer of HTTP to a call that has no message in it; status 0 is
// that of none.
func (w *World) unanswered(id, written string, code domain.Code, status int) {
	s := w.request(id)
	d := domain.ExchangeFailed{At: s.At, RequestID: s.RequestID, Call: s.Call, Written: written, Code: code, Status: status}
	if status != 0 {
		d.Reason = "no message in it"
	}
	w.Observe(d, nil)
}

// retire ends an incarnation; what it releases is performed with the next
// observation.
func (w *World) retire(peer, cause string) {
	w.step(domain.PeerExited{At: w.at(peer), Cause: cause}, nil)
}

func (w *World) sessions() {
	w.ask("session", "find")
	w.retire("archive", "session_gone")
	w.unanswered("session", "maybe", domain.CodeSessionGone, 404) // held, negotiated again, sent again
	w.ask("answered", "find")
	w.retire("archive", "session_gone")
	w.unanswered("session", "maybe", domain.CodeSessionGone, 404) // once more than it may
	w.Answer("answered", Complete)                                // by the incarnation that is over
}

func (w *World) headers() {
	mismatch := domain.Facts{Kind: domain.FactError, ErrorCode: -32020}
	w.Pass(5_000)
	w.ask("headers", "mirror")
	w.Answer("headers", mismatch) // the list is read again first
	w.Answer("headers", Complete)
	w.ask("deferred", "mirror")
	w.Answer("deferred", mismatch) // it was read a moment ago
	w.Pass(1_000)
	w.Observe(domain.ListDue{At: w.at("lists")}, nil)
	w.Answer("deferred", mismatch)
	w.Pass(2_000)
	w.ask("unread", "mirror")
	w.Answer("unread", mismatch) // and cannot be read now
}

func (w *World) turnedAway() {
	w.ask("unauthorized", "add")
	w.unanswered("unauthorized", "maybe", domain.CodeUnauthorized, 401)
	w.ask("forbidden", "add")
	w.unanswered("forbidden", "maybe", domain.CodeForbidden, 403)
	w.ask("unconnected", "add")
	w.retire("notes", "unreachable")
	w.unanswered("unconnected", "no", domain.CodeTransportLost, 0)
	w.Answer("unconnected", Complete)
}

func (w *World) hosts() {
	ben := func(tool, context string) {
		w.submit(tool, tool, func(d *domain.CallReceived) { d.Host, d.Context = "ben", context })
	}
	ben("add", "bob")
	ben("secret", "bob")     // not among his tools
	ben("find", "bob")       // nor this peer among his peers
	ben("page", "alice")     // not his context
	ben("alice_only", "bob") // which he does not see
	w.submit("nobody", "page", func(d *domain.CallReceived) { d.Host = "mallory" })
}

func (w *World) endpoints() {
	listen := w.subscribed[""]
	w.Observe(domain.ExchangeFailed{At: listen.At, RequestID: listen.RequestID, Written: "maybe", Code: domain.CodeTransportLost,
		Reason: "the stream ended without the answer"}, nil)
	w.Pass(3_000)
	w.Observe(domain.SubscriptionDue{At: listen.At}, nil)
	w.Observe(domain.HealthDue{At: w.at("notes")}, nil)
	w.peers["late"].Mute = true
	w.Observe(domain.HealthDue{At: w.at("late")}, nil)
	w.Observe(domain.OperatorCommanded{By: "oncall", Verb: domain.VerbRevive, Peer: "gate"}, nil)
}
