package domain

import (
	"slices"
	"time"
)

// Report is what check, serve and peers show: a copy of the state that a
// person or a program can read. Its JSON form is a contract.
type Report struct {
	Log        string            `json:"log"`
	Peers      []PeerReport      `json:"peers"`
	Namespaces []NamespaceReport `json:"namespaces"`
	Collisions []CollisionReport `json:"collisions"`
}

// PeerReport is one configured peer.
type PeerReport struct {
	Name        string       `json:"name"`
	Endpoint    string       `json:"endpoint,omitempty"` // of a peer over HTTP, which has no process
	State       string       `json:"state"`              // ready, degraded, unavailable
	Era         Era          `json:"era"`
	Version     *string      `json:"version"`
	CacheScope  *string      `json:"cache_scope"`
	Incarnation *int64       `json:"incarnation"`
	Code        *Code        `json:"code"`
	Reason      *string      `json:"reason"`
	Warnings    []string     `json:"warnings"`
	Attempt     *int         `json:"attempt"`        // of the recovery under way; null for none
	NextTry     *string      `json:"next_try"`       // RFC 3339, UTC; null where no start is to come
	LastExit    *ExitReport  `json:"last_exit"`      // of the last process that ended, in this life of the service
	Tools       []ToolReport `json:"tools"`          // routable ones, sorted by canonical name
	Lists       []ListReport `json:"lists,omitzero"` // where they are kept by rules, by context
}

// ExitReport says how a peer's last process ended.
type ExitReport struct {
	Incarnation int64  `json:"incarnation"`
	Cause       string `json:"cause"`
	Status      int    `json:"status"` // -1 where a signal ended it
	Signal      string `json:"signal"` // "" for none
	StderrSize  int64  `json:"stderr_size"`
}

// ToolReport is one routable tool.
type ToolReport struct {
	Canonical string `json:"canonical"`
	Local     string `json:"local"`
}

// NamespaceReport is a namespace in force.
type NamespaceReport struct {
	Context    string `json:"context"`
	Generation int64  `json:"generation"`
	Digest     string `json:"digest"`
	Policy     string `json:"policy"`
	Tools      int    `json:"tools"`
}

// ListReport is one list of a peer.
type ListReport struct {
	Context      string `json:"context"`
	Seq          int64  `json:"seq"` // of its catalog.accepted; 0 for none
	Tools        int    `json:"tools"`
	Scope        string `json:"cache_scope,omitempty"`
	TTL          int64  `json:"ttl_ms"`
	Subscription string `json:"subscription"` // none, asked, active, ended
	Reading      bool   `json:"reading"`
	Failures     int    `json:"failures"` // to read it again, in a row
	Code         Code   `json:"code,omitempty"`
	Reason       string `json:"reason,omitempty"` // why it could not be read last
}

// CollisionReport is a contested name and who won it.
type CollisionReport struct {
	Context    string  `json:"context,omitempty"` // "" for the default one
	Name       string  `json:"name"`
	Policy     string  `json:"policy"`
	Candidates []Owner `json:"candidates"`
	Winner     *Owner  `json:"winner"`
	Seq        int64   `json:"seq"`
}

// Report copies what people may see of the state.
func (s *State) Report(logID string) Report {
	r := Report{Log: logID, Peers: []PeerReport{}, Namespaces: []NamespaceReport{}, Collisions: []CollisionReport{}}
	tools := s.toolsByPeer()
	for _, name := range s.names {
		r.Peers = append(r.Peers, s.peers[name].report(tools[name]))
	}
	for _, ns := range s.spaces() {
		if ns.generation > 0 {
			r.Namespaces = append(r.Namespaces, NamespaceReport{Context: ns.context, Generation: ns.generation,
				Digest: ns.digest, Policy: ns.policy, Tools: ns.tools})
		}
		for _, name := range ns.contested {
			c := ns.collisions[name]
			r.Collisions = append(r.Collisions, CollisionReport{Context: contextWord(ns.context), Name: name, Policy: c.policy,
				Candidates: c.Candidates, Winner: c.Winner, Seq: c.seq})
		}
	}
	return r
}

// ReportFor is Report for a host: one that may not use everything is told of what it may
// use, and of nothing else.
func (s *State) ReportFor(host, logID string) Report {
	r := s.Report(logID)
	h, ok := s.Config.host(host)
	if ok && h.Peers == nil && h.Tools == nil {
		return r
	}
	r.Peers = slices.DeleteFunc(r.Peers, func(p PeerReport) bool { return !ok || !h.reaches(p.Name) })
	for i, p := range r.Peers {
		r.Peers[i].Tools = slices.DeleteFunc(p.Tools, func(t ToolReport) bool { return !h.uses(t.Canonical, p.Name) })
	}
	r.Namespaces = slices.DeleteFunc(r.Namespaces, func(n NamespaceReport) bool { return !ok || n.Context != contextKey(h.Context) })
	r.Collisions = slices.DeleteFunc(r.Collisions, func(c CollisionReport) bool { return !ok || !h.contends(c) })
	return r
}

// contends reports whether every tool that claims a name is of a peer that the host may
// use: else it would learn of others.
func (h HostConfig) contends(c CollisionReport) bool {
	for _, o := range c.Candidates {
		if !h.uses(c.Name, o.Peer) {
			return false
		}
	}
	return c.Context == contextWord(contextKey(h.Context))
}

// toolsByPeer lists what is routable in the default context.
func (s *State) toolsByPeer() map[string][]ToolReport {
	out := map[string][]ToolReport{}
	ns := s.namespaces[DefaultContext]
	for _, name := range ns.order {
		o := ns.bindings[name].owner
		out[o.Peer] = append(out[o.Peer], ToolReport{Canonical: name, Local: o.Local})
	}
	return out
}

func (p *Peer) report(tools []ToolReport) PeerReport {
	r := PeerReport{Name: p.Name, Endpoint: p.Config.Endpoint, State: p.state(), Era: p.Era, Warnings: append([]string{}, p.Warnings...), Tools: tools}
	if r.Tools == nil {
		r.Tools = []ToolReport{}
	}
	r.Version = known(p.Version)
	r.Reason = known(p.Reason)
	if p.Code != "" {
		code := p.Code
		r.Code = &code
	}
	if p.attempt > 0 && p.Era == EraUnknown {
		n := p.attempt
		r.Attempt = &n
	}
	if p.waiting && p.nextTry > 0 {
		r.NextTry = known(time.Unix(0, p.nextTry).UTC().Format(time.RFC3339Nano))
	}
	if x := p.exit; x != nil {
		r.LastExit = &ExitReport{Incarnation: x.Incarnation, Cause: x.Cause, Status: x.Status, Signal: x.Signal, StderrSize: x.StderrSize}
	}
	if p.Incarnation > 0 {
		n := p.Incarnation
		r.Incarnation = &n
	}
	p.each(func(l *line) {
		if l.catalog != nil && r.CacheScope == nil {
			r.CacheScope = known(l.catalog.CacheScope)
		}
		if p.rules() != nil {
			r.Lists = append(r.Lists, l.report())
		}
	})
	return r
}

func (l *line) report() ListReport {
	r := ListReport{Context: l.context, Subscription: l.sub.state(), Reading: l.fetch != nil, Failures: l.failures, Code: l.code, Reason: l.reason}
	if c := l.catalog; c != nil {
		r.Seq, r.Tools, r.Scope, r.TTL = c.Seq, len(c.Tools), c.CacheScope, c.TTL
	}
	return r
}

func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// state is ready (era known, list accepted), degraded (era known, no accepted
// list) or unavailable.
func (p *Peer) state() string {
	switch {
	case p.Era == EraUnknown || !p.live:
		return "unavailable"
	case !p.anyListed():
		return "degraded"
	}
	return "ready"
}

// AllReady reports whether every configured peer is ready, in every authorization
// context that it is asked in.
func (r Report) AllReady() bool {
	for _, p := range r.Peers {
		if p.State != "ready" {
			return false
		}
		for _, l := range p.Lists {
			if l.Seq == 0 && l.Code != "" {
				return false
			}
		}
	}
	return true
}
