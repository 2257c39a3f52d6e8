package domain

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
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
	State       string       `json:"state"` // ready, degraded, unavailable
	Era         Era          `json:"era"`
	Version     *string      `json:"version"`
	CacheScope  *string      `json:"cache_scope"`
	Incarnation *int64       `json:"incarnation"`
	Code        *Code        `json:"code"`
	Reason      *string      `json:"reason"`
	Warnings    []string     `json:"warnings"`
	Attempt     *int         `json:"attempt"`   // of the recovery under way; null for none
	NextTry     *string      `json:"next_try"`  // RFC 3339, UTC; null where no start is to come
	LastExit    *ExitReport  `json:"last_exit"` // of the last process that ended, in this life of the service
	Tools       []ToolReport `json:"tools"`     // routable ones, sorted by canonical name
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

// CollisionReport is a contested name and who won it.
type CollisionReport struct {
	Name       string  `json:"name"`
	Policy     string  `json:"policy"`
	Candidates []Owner `json:"candidates"`
	Winner     *Owner  `json:"winner"`
	Seq        int64   `json:"seq"`
}

// ToolEntry is one routable tool with its definition as its peer wrote it.
type ToolEntry struct {
	Canonical  string         `json:"canonical"`
	Peer       string         `json:"peer"`
	Local      string         `json:"local"`
	Definition jsontext.Value `json:"definition"`
}

// Report copies what people may see of the state.
func (s *State) Report(logID string) Report {
	r := Report{Log: logID, Peers: []PeerReport{}, Namespaces: []NamespaceReport{}, Collisions: []CollisionReport{}}
	tools := s.toolsByPeer()
	for _, name := range s.names {
		r.Peers = append(r.Peers, s.peers[name].report(tools[name]))
	}
	ns := &s.namespace
	if ns.generation > 0 {
		r.Namespaces = append(r.Namespaces, NamespaceReport{Context: DefaultContext, Generation: ns.generation,
			Digest: ns.digest, Policy: ns.policy, Tools: ns.tools})
	}
	for _, name := range ns.contested {
		c := ns.collisions[name]
		r.Collisions = append(r.Collisions, CollisionReport{Name: name, Policy: c.policy, Candidates: c.Candidates,
			Winner: c.Winner, Seq: c.seq})
	}
	return r
}

func (s *State) toolsByPeer() map[string][]ToolReport {
	out := map[string][]ToolReport{}
	for _, name := range s.namespace.order {
		o := s.namespace.bindings[name].owner
		out[o.Peer] = append(out[o.Peer], ToolReport{Canonical: name, Local: o.Local})
	}
	return out
}

func (p *Peer) report(tools []ToolReport) PeerReport {
	r := PeerReport{Name: p.Name, State: p.state(), Era: p.Era, Warnings: append([]string{}, p.Warnings...), Tools: tools}
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
	if p.Catalog != nil {
		r.CacheScope = known(p.Catalog.CacheScope)
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
	case !p.listed || p.Catalog == nil:
		return "degraded"
	}
	return "ready"
}

// Tools returns every routable tool with its definition, sorted by canonical
// name, and the generation they belong to. The definitions alias the state.
func (s *State) Tools() (generation int64, digest string, tools []ToolEntry) {
	tools = []ToolEntry{}
	for _, name := range s.namespace.order {
		o := s.namespace.bindings[name].owner
		e := ToolEntry{Canonical: name, Peer: o.Peer, Local: o.Local}
		if p := s.peers[o.Peer]; p != nil && p.Catalog != nil {
			e.Definition = p.Catalog.definition(o.Local)
		}
		tools = append(tools, e)
	}
	return s.namespace.generation, s.namespace.digest, tools
}

func (c *Catalog) has(local string) bool {
	_, ok := c.index[local]
	return ok
}

func (c *Catalog) definition(local string) jsontext.Value {
	if i, ok := c.index[local]; ok {
		return c.Tools[i].Definition
	}
	return nil
}

// AllReady reports whether every configured peer is ready.
func (r Report) AllReady() bool {
	for _, p := range r.Peers {
		if p.State != "ready" {
			return false
		}
	}
	return true
}
