package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A doorkeeper is a warden that looks at what hosts are shown and may call, by its
// own reading of the configuration.
type doorkeeper struct {
	*warden
	hosts map[string]HostConfig
	calls map[string]CallReceived
	sent  int
	kept  int // refused by hosts:
}

func watchHosts(s *sim) *doorkeeper {
	d := &doorkeeper{warden: watchContexts(s), hosts: map[string]HostConfig{}, calls: map[string]CallReceived{}}
	s.watch = d.step
	return d
}

func (k *doorkeeper) step(events []Event) {
	k.warden.step(events)
	for _, e := range events {
		switch d := e.Data.(type) {
		case ConfigLoaded:
			c, err := DecodeConfig(e.Evidence)
			if err != nil {
				k.s.t.Fatal(err)
			}
			clear(k.hosts)
			for _, h := range c.Hosts {
				k.hosts[h.Name] = h
			}
		case CallReceived:
			k.calls[d.CallKey()] = d
		case CallRouted:
			k.sent++
			k.mayGo(k.calls[d.CallKey()], d.Tool, d.Peer)
		case CallRefused:
			if d.Code == CodeNotAllowed {
				k.kept++
			}
		}
	}
	for _, host := range []string{"alice", "bob", "narrow", "mallory"} {
		k.showsHost(host)
	}
}

// lets is a reading of its own of what a host may use.
func (k *doorkeeper) lets(host, tool, peer string) bool {
	h, named := k.hosts[host]
	if !named || len(h.Peers) > 0 && strings.Count("\n"+strings.Join(h.Peers, "\n")+"\n", "\n"+peer+"\n") == 0 {
		return false
	}
	for _, p := range h.Tools {
		if p == tool || p[len(p)-1] == '*' && len(tool) >= len(p)-1 && tool[:len(p)-1] == p[:len(p)-1] {
			return true
		}
	}
	return len(h.Tools) == 0
}

func (k *doorkeeper) mayGo(d CallReceived, tool, peer string) {
	if !k.lets(d.Host, tool, peer) || contextKey(d.Context) != contextKey(k.hosts[d.Host].Context) {
		k.leak("host %s calls %s of %s in the context %q", d.Host, tool, peer, d.Context)
	}
}

func (k *doorkeeper) showsHost(host string) {
	list := k.s.s.ToolsFor(host, "", 0, k.s.mono())
	for _, e := range list.Tools {
		if !k.lets(host, e.Canonical, e.Peer) {
			k.leak("host %s is shown %s of %s", host, e.Canonical, e.Peer)
		}
		if m, ok := readMark(strings.TrimPrefix(string(object(e.Definition)["description"]), `"`)); ok && !k.may(contextKey(k.hosts[host].Context), m) {
			k.leak("host %s is given the definition of %q, which was told to %s as %s", host, e.Canonical, m.context, m.scope)
		}
		for _, o := range e.Collided {
			if h := k.hosts[host]; len(h.Peers) > 0 && !slices.Contains(h.Peers, o.Peer) {
				k.leak("host %s is told of peer %s", host, o.Peer)
			}
		}
	}
	for _, peer := range slices.Concat(list.Stale, list.Missing) {
		if h, named := k.hosts[host]; !named || len(h.Peers) > 0 && !slices.Contains(h.Peers, peer) {
			k.leak("host %s is told of peer %s", host, peer)
		}
	}
}

// hostedConfig is contextConfig with endpoints, and hosts that come and go.
func hostedConfig(n int) Config {
	c := contextConfig(n, "alice", "bob", "carol")
	for i := range c.Peers {
		if n%2 == 0 {
			httpPeer(&c.Peers[i])
		}
	}
	c.Hosts = []HostConfig{{Name: "alice", Context: "alice"}, {Name: "bob", Context: "bob"}, {Name: "local", Context: "carol"},
		{Name: "narrow", Context: []string{"alice", "bob", "default"}[n%3], Peers: []string{"a", "p"}[n%2 : 1+n%2], Tools: []string{"search", "p/*"}}}
	if n%5 == 0 {
		c.Hosts = c.Hosts[1:]
	}
	return c
}

// hostWalk drives a sim whose hosts call what they see, and what others see.
func hostWalk(t testing.TB, seed uint64, broken func(*sim)) *doorkeeper {
	contexts := []string{"alice", "bob", "carol"}
	s := contextSim(t, seed, contexts...)
	k := watchHosts(s)
	look := s.watch
	s.watch = func(events []Event) {
		if len(all[ConfigLoaded](events)) > 0 {
			broken(s)
		}
		look(events)
	}
	config := func() Config { return hostedConfig(s.r.IntN(30)) }
	s.begin(hostedConfig(int(seed)))
	hosts := []string{"alice", "bob", "narrow", "mallory"}
	for range 60 {
		s.run(s.r.Int64N([]int64{30, 400, 3_000}[s.r.IntN(3)]))
		s.stir(contexts, config)
		host := hosts[s.r.IntN(len(hosts))]
		context := s.s.Config.ContextOf(host)
		if s.r.IntN(6) == 0 {
			context = contexts[s.r.IntN(3)]
		}
		name := "search"
		if list := s.s.Tools(contexts[s.r.IntN(3)], "", 0, s.mono()).Tools; len(list) > 0 {
			name = list[s.r.IntN(len(list))].Canonical
		}
		s.made++
		s.feed(CallReceived{CallID: CallID{Host: host, ID: fmt.Sprint("h", s.made)}, Context: context, Tool: name, Wait: int64(s.r.IntN(2)) * 2_000, Arguments: Payload{Size: 2}})
	}
	return k
}

// TestHostsKeepToTheirContexts is TestPrivateListsOfTwoAuthorizationContexts with
// hosts: whatever happens, a host is shown, and calls, what its configuration lets it,
// and nothing that is private to a context that is not its own.
func TestHostsKeepToTheirContexts(t *testing.T) {
	sent, kept := 0, 0
	for seed := range walks(uint64(12)) {
		k := hostWalk(t, seed, func(*sim) {})
		if len(k.leaks) > 0 {
			t.Fatalf("seed %d: %d leaks, the first: %s", seed, len(k.leaks), k.leaks[0])
		}
		sent, kept = sent+k.sent, kept+k.kept
		if seed%6 == 0 {
			k.s.refolds()
		}
	}
	t.Logf("%d calls routed, %d not allowed", sent, kept)
	if sent < walks(60) || kept < walks(60) {
		t.Error("the walks do not go where they should")
	}
}

// TestTheDoorkeeperFindsHostsThatAreMixedUp: the same walks, with what two hosts may
// do exchanged behind the log, or with nobody asked at all.
func TestTheDoorkeeperFindsHostsThatAreMixedUp(t *testing.T) {
	for name, broken := range map[string]func(*sim){
		"exchanged": func(s *sim) {
			for i, h := range s.s.Config.Hosts {
				if other := map[string]string{"alice": "bob", "bob": "alice"}[h.Context]; other != "" {
					s.s.Config.Hosts[i].Context = other
				}
			}
		},
		"not asked": func(s *sim) {
			for i := range s.s.Config.Hosts {
				s.s.Config.Hosts[i].Peers, s.s.Config.Hosts[i].Tools = nil, nil
			}
		},
	} {
		found := 0
		for seed := range walks(uint64(6)) {
			if k := hostWalk(t, seed, broken); len(k.leaks) > 0 {
				found++
			}
		}
		if found < walks(6)-1 {
			t.Errorf("%s: %d walks of %d were found to leak", name, found, walks(6))
		}
	}
}
