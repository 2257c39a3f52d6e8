package config

import (
	"fmt"
	"strings"
	"testing"

	"waybill/domain"
)

// badHosts are the mistakes of the section hosts.
var badHosts = []mistake{
	{"hosts are a list", "hosts: [a]\n" + peers, 1, "hosts", "must be a mapping, not a list"},
	{"host of a bad name", "hosts: {A: {}}\n" + peers, 1, "hosts.A", "a name is"},
	{"host is text", "hosts: {a: x}\n" + peers, 1, "hosts.a", "must be a mapping, not text"},
	{"unknown key of a host", "hosts: {a: {peer: [a]}}\n" + peers, 1, "hosts.a.peer", "did you mean peers?"},
	{"context that no peer is asked in", twoTokens + "hosts: {a: {context: z}}\n" + over("authorizations: [x, y]"), 2, "hosts.a.context", `no peer is asked in the context "z"`},
	{"context that is only the name of an authorization", twoTokens + "hosts: {a: {context: x}}\n" + over("authorizations: {one: x, two: y}"), 2, "hosts.a.context", "no peer is asked"},
	{"context is a list", "hosts: {a: {context: [default]}}\n" + peers, 1, "hosts.a.context", "must be text, not a list"},
	{"peers of a host unknown", "hosts: {a: {peers: [a, b]}}\n" + peers, 1, "hosts.a.peers[1]", `"b" is not a peer of this file`},
	{"peers of a host twice", "hosts: {a: {peers: [a, a]}}\n" + peers, 1, "hosts.a.peers[1]", "listed twice"},
	{"peers of a host are none", "hosts: {a: {peers: []}}\n" + peers, 1, "hosts.a.peers", "is empty: a host that may use nothing is one that is left out"},
	{"tools of a host are none", "hosts: {a: {tools: []}}\n" + peers, 1, "hosts.a.tools", "is empty"},
	{"tools of a host with a star inside", "hosts: {a: {tools: ['a*b']}}\n" + peers, 1, "hosts.a.tools[0]", "is not the name of a tool, or the beginning of names followed by *"},
	{"tools of a host with two stars", "hosts: {a: {tools: [ok, 'a**']}}\n" + peers, 1, "hosts.a.tools[1]", "followed by *"},
	{"tools of a host empty", "hosts: {a: {tools: ['']}}\n" + peers, 1, "hosts.a.tools[0]", "is not the name of a tool"},
	{"tools of a host long", "hosts: {a: {tools: [" + strings.Repeat("x", 257) + "]}}\n" + peers, 1, "hosts.a.tools[0]", "is not the name of a tool"},
}

func TestHostsReachTheDecisions(t *testing.T) {
	f, err := loadText(t, twoTokens+`hosts:
  zoe: {context: y, peers: [b, a], tools: [search, b/*, "*"]}
  local:
  amy: {context: default}
`+over("authorizations: [x, y]")+"  b: {command: x}\n", testVars)
	if err != nil {
		t.Fatal(err)
	}
	c := f.Domain(nil, environment(testVars))
	want := "[{amy default [] []} {local default [] []} {zoe y [a b] [* b/* search]}]"
	if got := fmt.Sprint(c.Hosts); got != want || c.Hosts[0].Peers != nil || c.Hosts[0].Tools != nil || len(f.Warnings) != 0 {
		t.Errorf("got %s, want %s; %v", got, want, f.Warnings)
	}
	b, err := domain.EncodeConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := domain.DecodeConfig(b); err != nil || fmt.Sprint(again.Hosts) != want || again.Hosts[1].Peers != nil {
		t.Errorf("read again: %v, %v", again.Hosts, err)
	}
}

// Where no host is named, every host may use everything, and the evidence is what it
// was before there were hosts.
func TestWithoutHostsNothingIsSaid(t *testing.T) {
	for _, text := range []string{"", "hosts: {}\n"} {
		f := mustLoad(t, text+peers)
		b, err := domain.EncodeConfig(f.Domain(nil, environment(nil)))
		if err != nil || strings.Contains(string(b), "hosts") || strings.Contains(string(b), "endpoint") || len(f.Warnings) != 0 {
			t.Errorf("%q: %s, %v, %v", text, b, f.Warnings, err)
		}
	}
}

func TestHostsWithoutTheCommandsOfThisMachineAreWarnedOf(t *testing.T) {
	f := mustLoad(t, "hosts: {amy: {}}\n"+peers)
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "names nobody called local, as which the commands of this machine call") {
		t.Errorf("got %v", f.Warnings)
	}
}
