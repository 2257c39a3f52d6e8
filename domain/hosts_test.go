package domain

import (
	"fmt"
	"strings"
	"testing"

	"waybill/domain/names"
)

// hostsConfig is two peers, "a" of the contexts alice and bob, and "b" without
// credentials, and four hosts.
func hostsConfig(hosts ...HostConfig) Config {
	c := ruled(testConfig(PrefixOnCollision, "a", "b"), httpPeer, unsubscribed, asking, onlyPeer("a", inContexts("alice", "bob")))
	c.Hosts = hosts
	return c
}

func someHosts() []HostConfig {
	return []HostConfig{
		{Name: "all", Context: "alice"},
		{Name: "one-peer", Context: "alice", Peers: []string{"b"}},
		{Name: "others", Context: "bob"},
		{Name: "plain", Context: DefaultContext},
		{Name: "some-tools", Context: "alice", Tools: []string{"note.*", "b/x"}},
	}
}

// hosted brings both peers up under hosts: alice's tools are x and note.add, bob's x
// and secret; b has x and sum for everybody.
func hosted(t testing.TB, hosts ...HostConfig) *keeper {
	k := newKeeper(t)
	k.start(hostsConfig(hosts...))
	k.upHosted()
	return k
}

func (k *keeper) upHosted() {
	k.see(PeerSpawned{At: k.at("a")})
	x := k.last("a", "alice", MethodDiscover)
	f := strings.ReplaceAll(discoverQuiet, "$ID", fmt.Sprint(x.RequestID))
	k.see(ProbeAnswered{At: x.At, RequestID: x.RequestID, Frame: RefTo([]byte(f))}, f)
	k.answered("a", "alice", listPage(cached(600_000, ScopePrivate), "x", "note.add"))
	k.answered("a", "bob", listPage(cached(600_000, ScopePrivate), "x", "secret"))
	k.rises("b", discoverQuiet)
	k.answered("b", "", listPage(cached(600_000, ScopePublic), "x", "sum"))
}

// from feeds a call of a host, in the context that the configuration gives it.
func (k *keeper) from(host, tool string, change ...func(*CallReceived)) []Event {
	d := CallReceived{CallID: CallID{Host: host, ID: fmt.Sprint("n", len(k.log))}, Context: k.s.Config.ContextOf(host), Tool: tool, Arguments: Payload{Size: 2}}
	for _, f := range change {
		f(&d)
	}
	return k.see(d)
}

// answer is how a host's call is met: the peer and context it goes to, or the code
// of its refusal.
func (k *keeper) met(host, tool string, change ...func(*CallReceived)) string {
	out := k.from(host, tool, change...)
	if d, ok := find[CallRefused](out); ok {
		return string(d.Code)
	}
	d := must[CallRouted](k.t, out)
	k.see(CallCancelled{CallID: d.CallID, By: "host"})
	return d.Peer + ":" + d.Local + " " + d.Context
}

// TestWhatAHostMayUse (design, Words: "authorization context"): by peer, by
// tool, in its own context, under either form of a name.
func TestWhatAHostMayUse(t *testing.T) {
	k := hosted(t, someHosts()...)
	model := func(d *CallReceived) { d.Form = ModelForm }
	note, second := names.ModelName("note.add"), names.ModelName("b/x")
	for _, c := range []struct {
		host, tool, want string
		change           []func(*CallReceived)
	}{
		{"all", "x", "a:x alice", nil},
		{"all", "note.add", "a:note.add alice", nil},
		{"all", "b/x", "b:x ", nil},
		{"all", "secret", "unknown_tool", nil},
		{"others", "secret", "a:secret bob", nil},
		{"others", "note.add", "unknown_tool", nil},
		{"plain", "x", "b:x ", nil},
		{"plain", "secret", "unknown_tool", nil},
		{"one-peer", "x", "not_allowed", nil},
		{"one-peer", "b/x", "b:x ", nil},
		{"one-peer", "sum", "b:sum ", nil},
		{"some-tools", "note.add", "a:note.add alice", nil},
		{"some-tools", "b/x", "b:x ", nil},
		{"some-tools", "x", "not_allowed", nil},
		{"some-tools", "sum", "not_allowed", nil},
		{"some-tools", "note.none", "unknown_tool", nil},
		{"some-tools", note, "a:note.add alice", []func(*CallReceived){model}},
		{"some-tools", second, "b:x ", []func(*CallReceived){model}},
		{"some-tools", "sum", "not_allowed", []func(*CallReceived){model}},
		{"one-peer", note, "not_allowed", []func(*CallReceived){model}},
		{"nobody", "x", "not_allowed", nil},
		{"", "x", "not_allowed", nil},
		{"all2", "x", "not_allowed", nil},
		{"all", "x", "not_allowed", []func(*CallReceived){func(d *CallReceived) { d.Context = "bob" }}},
		{"all", "x", "not_allowed", []func(*CallReceived){func(d *CallReceived) { d.Context = "" }}},
		{"plain", "x", "not_allowed", []func(*CallReceived){func(d *CallReceived) { d.Context = "alice" }}},
		{"all", "x", "bad_request", []func(*CallReceived){func(d *CallReceived) { d.Problem = "no" }}},
		{"nobody", "x", "not_allowed", []func(*CallReceived){waits(5_000)}},
		{"one-peer", "x", "not_allowed", []func(*CallReceived){waits(5_000)}},
	} {
		if got := k.met(c.host, c.tool, c.change...); got != c.want {
			t.Errorf("%s calls %s: %q, want %q", c.host, c.tool, got, c.want)
		}
	}
	k.refolds()
}

// TestPatternsOfTools: a star at the end alone stands for anything.
func TestPatternsOfTools(t *testing.T) {
	for _, c := range []struct {
		pattern, tool string
		want          bool
	}{{"x", "x", true}, {"x", "xy", false}, {"x*", "x", true}, {"x*", "xy", true}, {"*", "anything", true}, {"x", "X", false},
		{"note.*", "note.add", true}, {"note.*", "notes.add", false}, {"a*c", "abc", false}, {"*c", "abc", false}, {"", "x", false}, {"b/*", "b/x", true}} {
		h := HostConfig{Tools: []string{"other", c.pattern}}
		if got := h.uses(c.tool, "p"); got != c.want {
			t.Errorf("%q of %q: %t", c.tool, c.pattern, got)
		}
	}
	if (HostConfig{Peers: []string{}}).uses("x", "p") || (HostConfig{Tools: []string{}}).uses("x", "p") || !(HostConfig{}).uses("x", "p") {
		t.Error("nothing that is named is not the same as no names")
	}
}

// TestWithoutHostsEverybodyMayCall, in the default context, as logs from before say.
func TestWithoutHostsEverybodyMayCall(t *testing.T) {
	k := hosted(t)
	if got := k.met("whoever", "x"); got != "b:x " || k.s.Config.ContextOf("whoever") != "" {
		t.Error(got)
	}
	if got := k.refusal("alice", "note.add"); got != "" { // contexts of calls were not tied to hosts
		t.Error(got)
	}
}

// names renders the tools of a host, page by page.
func (k *keeper) pages(host string, most int) (all []string) {
	for after := ""; ; {
		l := k.s.ToolsFor(host, after, most, k.mono())
		if len(l.Tools) == 0 {
			return all
		}
		if most > 0 && len(l.Tools) > most {
			k.t.Fatalf("%d tools where %d were asked for", len(l.Tools), most)
		}
		for _, e := range l.Tools {
			all = append(all, e.Canonical)
		}
		after = all[len(all)-1]
	}
}

// TestToolsOfAHost are those that it may call, on however many pages.
func TestToolsOfAHost(t *testing.T) {
	k := hosted(t, someHosts()...)
	for host, want := range map[string]string{
		"all": "b/x note.add sum x", "one-peer": "b/x sum", "others": "b/x secret sum x", "plain": "sum x", "some-tools": "b/x note.add", "nobody": "", "": "",
	} {
		for most := range 6 {
			if got := strings.Join(k.pages(host, most), " "); got != want {
				t.Errorf("%s, %d a page: %s, want %s", host, most, got, want)
			}
		}
		for _, name := range k.pages(host, 0) {
			if got := k.met(host, name); got == "not_allowed" {
				t.Errorf("%s is shown %s and may not call it", host, name)
			}
		}
	}
	if got := k.s.ToolsFor("one-peer", "", 0, k.mono()).Tools[0].Collided; len(got) != 0 {
		t.Errorf("one-peer is told of %v", got)
	}
	if got := k.s.ToolsFor("all", "", 0, k.mono()).Tools[0].Collided; len(got) != 1 {
		t.Errorf("all is told of %v", got)
	}
	k.pass(700_000)
	if l := k.s.ToolsFor("one-peer", "", 0, k.mono()); strings.Join(l.Stale, " ") != "b" || len(l.Missing) != 0 || l.Context != "alice" {
		t.Errorf("%+v", l)
	}
	if l := k.s.ToolsFor("nobody", "", 0, k.mono()); len(l.Stale)+len(l.Missing)+len(l.Tools) != 0 {
		t.Errorf("%+v", l)
	}
	if l := k.s.ToolsFor("all", "", 0, k.mono()); strings.Join(l.Stale, " ") != "a b" {
		t.Errorf("%+v", l)
	}
}

// TestAHeldCallOfAHost is looked at again when it can go: the configuration in force
// has the last word.
func TestAHeldCallOfAHost(t *testing.T) {
	for name, c := range map[string]struct {
		hosts []HostConfig
		want  Code
	}{
		"as it was":                {someHosts(), ""},
		"the host is gone":         {someHosts()[1:], CodeNotAllowed},
		"the tool is":              {[]HostConfig{{Name: "all", Context: "alice", Tools: []string{"sum"}}}, CodeNotAllowed},
		"the peer is":              {[]HostConfig{{Name: "all", Context: "alice", Peers: []string{"b"}}}, CodeNotAllowed},
		"it is of another context": {[]HostConfig{{Name: "all", Context: "bob"}}, CodeNotAllowed},
		"there are no hosts":       {nil, ""},
	} {
		k := hosted(t, someHosts()...)
		k.see(PeerExited{At: k.at("a"), Cause: causeUnreachable})
		sameKinds(t, k.from("all", "x", waits(60_000)), "call.held")
		k.load(hostsConfig(c.hosts...))
		before := len(k.log)
		k.upHosted()
		refused, _ := find[CallRefused](k.log[before:])
		if _, routed := find[CallRouted](k.log[before:]); refused.Code != c.want || routed != (c.want == "") {
			t.Errorf("%s: %+v, routed %t", name, refused, routed)
		}
		k.refolds()
	}
}

// TestACallThatWasTurnedAwayOfAHost: it is not sent again for who may not use the
// tool any more.
func TestACallThatWasTurnedAwayOfAHost(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		k := newKeeper(t)
		load := func(hosts ...HostConfig) Config {
			c := hostsConfig(hosts...)
			c.Peers[0].Resends = 1
			return c
		}
		k.start(load(someHosts()...))
		k.upHosted()
		d := must[CallRouted](t, k.from("all", "x"))
		k.see(PeerExited{At: d.At, Cause: causeUnreachable})
		must[CallHeld](t, k.see(ExchangeFailed{At: d.At, RequestID: d.RequestID, Call: d.CallKey(), Written: "no", Code: CodeTransportLost}))
		now := someHosts()
		if !allowed {
			now[0].Tools = []string{"sum"}
		}
		k.load(load(now...))
		before := len(k.log)
		k.upHosted()
		if _, again := find[CallResent](k.log[before:]); again != allowed || !allowed && end(k.log[before:]) != "lost transport_lost no" {
			t.Errorf("allowed %t: sent again %t, %q", allowed, again, end(k.log[before:]))
		}
	}
}

// TestInputOfAHost: a call that asked for input goes on only for who may still use
// its tool, under whatever form of the name it was submitted.
func TestInputOfAHost(t *testing.T) {
	for name, c := range map[string]struct {
		hosts []HostConfig
		want  string
	}{
		"as it was":                {someHosts(), ""},
		"the host is gone":         {someHosts()[1:], "refused not_allowed"},
		"the tool is":              {[]HostConfig{{Name: "all", Context: "alice", Tools: []string{"sum"}}}, "refused not_allowed"},
		"the peer is":              {[]HostConfig{{Name: "all", Context: "alice", Peers: []string{"b"}}}, "refused not_allowed"},
		"it is of another context": {[]HostConfig{{Name: "all", Context: "bob"}}, "refused input_mismatch"},
	} {
		for _, form := range []string{"", ModelForm} {
			k := hosted(t, someHosts()...)
			tool := map[string]string{"": "note.add", ModelForm: names.ModelName("note.add")}[form]
			formed := func(d *CallReceived) { d.ID, d.Form = "c", form }
			r := must[CallRouted](t, k.from("all", tool, formed, can(everything)))
			ends(t, k.answersCall(r, asks("roots")), "input_required input_required maybe")
			k.load(hostsConfig(c.hosts...))
			k.upHosted()
			out := k.from("all", tool, formed, func(d *CallReceived) { d.Input = &Payload{Size: 4} })
			if got := end(out); got != c.want || len(all[CallResent](out)) == 0 != (c.want != "") {
				t.Errorf("%s, form %q: %q, %v", name, form, got, kinds(out))
			}
			k.refolds()
		}
	}
}

// TestAHeldCallIsLookedUpInItsOwnNames: where the names of two contexts change in one
// step, it is met once, by those of its own as they are then.
func TestAHeldCallIsLookedUpInItsOwnNames(t *testing.T) {
	for tool, want := range map[string]string{"b/x": "b:x", "sum": "b:sum", "gone": "refused unknown_tool"} {
		k := newKeeper(t)
		c := ruled(testConfig(PrefixOnCollision, "a", "b"), httpPeer, unsubscribed, onlyPeer("a", inContexts("alice", DefaultContext)))
		k.start(c)
		up := func(tools ...string) []Event {
			before := len(k.log)
			k.rises("b", discoverQuiet)
			k.answered("b", "", listPage(cached(0, ScopePublic), tools...))
			return k.log[before:]
		}
		k.see(PeerSpawned{At: k.at("a")})
		x := k.last("a", "alice", MethodDiscover)
		f := strings.ReplaceAll(discoverQuiet, "$ID", fmt.Sprint(x.RequestID))
		k.see(ProbeAnswered{At: x.At, RequestID: x.RequestID, Frame: RefTo([]byte(f))}, f)
		k.answered("a", "alice", listPage(cached(0, ScopePrivate), "x"))
		k.answered("a", "", listPage(cached(0, ScopePrivate), "x"))
		up("x", "gone")
		k.see(PeerExited{At: k.at("b"), Cause: causeUnreachable})
		k.submit("", map[string]string{"b/x": "b/x", "sum": "gone", "gone": "gone"}[tool], waits(60_000), func(d *CallReceived) { d.ID = "held" })
		out := up(map[string][]string{"b/x": {"x", "new"}, "sum": {"gone", "sum"}, "gone": {"x", "sum"}}[tool]...)
		if n := len(all[NamespaceMerged](out)); n != 2 {
			t.Fatalf("%s: %d namespaces are merged", tool, n)
		}
		routed, refused := all[CallRouted](out), all[CallRefused](out)
		generation := k.s.Tools("", "", 0, 0).Generation
		switch {
		case len(routed)+len(refused) != 1:
			t.Errorf("%s: routed %v, refused %v", tool, routed, refused)
		case want == "refused unknown_tool" && len(refused) != 1:
			t.Errorf("%s: %v", tool, routed)
		case len(routed) == 1 && (want == "refused unknown_tool" || routed[0].Generation != generation):
			t.Errorf("%s: %+v, and the names are of generation %d", tool, routed[0], generation)
		}
		k.refolds()
	}
}
