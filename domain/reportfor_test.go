package domain

import (
	"fmt"
	"testing"
)

// TestAHostIsToldOfWhatItMayUseAlone: one that may use everything is told of everything,
// any other of its peers, tools and names, and one that is not known of nothing.
func TestAHostIsToldOfWhatItMayUseAlone(t *testing.T) {
	k := hosted(t, someHosts()...)
	whole := k.s.Report("log")
	for _, row := range []struct{ host, want string }{
		{"one-peer", "peers [b: sum x] spaces 1 collisions 0"},
		{"some-tools", "peers [a: b:] spaces 1 collisions 0"},
		{"nobody", "peers [] spaces 0 collisions 0"},
	} {
		r := k.s.ReportFor(row.host, "log")
		peers := []string{}
		for _, p := range r.Peers {
			said := p.Name + ":"
			for _, tool := range p.Tools {
				said += " " + tool.Canonical
			}
			peers = append(peers, said)
		}
		if got := fmt.Sprintf("peers %v spaces %d collisions %d", peers, len(r.Namespaces), len(r.Collisions)); got != row.want {
			t.Errorf("%s: %s, want %s", row.host, got, row.want)
		}
	}
	for _, host := range []string{"all", "others", "plain"} {
		if got := k.s.ReportFor(host, "log"); fmt.Sprintf("%+v", got.Collisions) != fmt.Sprintf("%+v", whole.Collisions) || len(got.Peers) != len(whole.Peers) ||
			len(got.Namespaces) != len(whole.Namespaces) {
			t.Errorf("%s: %+v, want %+v", host, got, whole)
		}
	}
	if len(whole.Collisions) == 0 || len(whole.Peers) != 2 {
		t.Fatalf("there is nothing to hide: %+v", whole)
	}
	k.start(hostsConfig())
	if got := k.s.ReportFor("anybody", "log"); len(got.Peers) != 2 {
		t.Errorf("where no host is named: %+v", got)
	}
}
