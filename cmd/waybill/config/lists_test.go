package config

import (
	"fmt"
	"testing"
	"time"

	"waybill/domain"
)

// badLists are the mistakes about lists and names.
var badLists = []mistake{
	{"moved_window is none", "moved_window: 0\n" + peers, 1, "moved_window", "must be a duration such as 10s"},
	{"moved_window zero", "moved_window: 0s\n" + peers, 1, "moved_window", "must be from 1ms to 24h"},
	{"moved_window long", "moved_window: 2d\n" + peers, 1, "moved_window", "must be from 1ms to 24h"},
	{"list_interval short", with("list_interval: 9ms"), 4, "peers.a.list_interval", "must be from 10ms to 10m"},
	{"list_interval long", with("list_interval: 601s"), 4, "peers.a.list_interval", "must be from 10ms to 10m"},
	{"list_interval without unit", with("list_interval: 1"), 4, "peers.a.list_interval", "must be a duration such as 10s"},
	{"list_refresh short", with("list_refresh: 999ms"), 4, "peers.a.list_refresh", "from 1s to 24h, or 0 for none"},
	{"list_refresh long", with("list_refresh: 25h"), 4, "peers.a.list_refresh", "from 1s to 24h, or 0 for none"},
	{"list_refresh below list_interval", with("list_interval: 1m\n    list_refresh: 59s"), 5, "peers.a.list_refresh", "not be less than list_interval (1m), or 0 for none"},
	{"stale_lists zero", with("stale_lists: 0s"), 4, "peers.a.stale_lists", "must be from 1ms to 24h"},
	{"stale_lists long", with("stale_lists: 25h"), 4, "peers.a.stale_lists", "must be from 1ms to 24h"},
	{"subscribe is text", with("subscribe: sometimes"), 4, "peers.a.subscribe", "must be true or false, not text"},
	{"listen_timeout zero", with("listen_timeout: 0s"), 4, "peers.a.listen_timeout", "must be from 1ms to 10m"},
	{"listen_timeout long", with("listen_timeout: 11m"), 4, "peers.a.listen_timeout", "must be from 1ms to 10m"},
	{"on_tool_change", with("on_tool_change: refuse"), 4, "peers.a.on_tool_change", `"refuse" is not one of record, quarantine`},
	{"share_public", with("share_public: 1"), 4, "peers.a.share_public", "must be true or false, not a whole number"},
	{"contexts are no key of their own", with("contexts: [default]"), 4, "peers.a.contexts", "unknown key"},
}

func TestHowListsAreKeptIsRead(t *testing.T) {
	f := mustLoad(t, "moved_window: 90s\npeers:\n  a: {command: x}\n  b:\n    command: x\n    list_interval: 250ms\n    list_refresh: 5m\n"+
		"    stale_lists: 2m\n    subscribe: false\n    listen_timeout: 3s\n    on_tool_change: quarantine\n    share_public: false\n")
	for i, want := range []string{"1s 0s 1h0m0s true 10s false true", "250ms 5m0s 2m0s false 3s true false"} {
		p := f.Peers[i]
		got := fmt.Sprint(p.ListInterval, p.ListRefresh, p.StaleLists, p.Subscribe, p.ListenTimeout, p.HoldChanged, p.SharePublic)
		if got != want {
			t.Errorf("peer %s: %s, want %s", p.Name, got, want)
		}
	}
	if f.MovedWindow != 90*time.Second {
		t.Errorf("moved_window is %s", f.MovedWindow)
	}
}

// The default of the window is not written, so that a configuration which does not
// name it has the evidence it always had in that.
func TestTheMovedWindowReachesTheDecisions(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "moved_window: 10m\n": 0, "moved_window: 600s\n": 0, "moved_window: 1ms\n": 1, "moved_window: 24h\n": 86_400_000} {
		c := mustLoad(t, text+peers).Domain(nil, environment(nil))
		if c.Moved != want {
			t.Errorf("%q: %d ms, want %d", text, c.Moved, want)
		}
	}
}

// Every configuration of this version has namespaces in parts, and lists that are
// kept by rules; a process is asked in the default context alone.
func TestListsAreKeptByRulesFromNowOn(t *testing.T) {
	c := mustLoad(t, "peers:\n  a: {command: x}\n  b: {command: y}\n").Domain(nil, environment(nil))
	if !c.Partial {
		t.Error("merges are not partial")
	}
	for _, p := range c.Peers {
		if p.Lists == nil || p.Contexts != nil {
			t.Errorf("peer %s: lists %+v, contexts %v", p.Name, p.Lists, p.Contexts)
		}
	}
	b, err := domain.EncodeConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := domain.DecodeConfig(b)
	if err != nil || *again.Peers[0].Lists != *c.Peers[0].Lists || !again.Partial {
		t.Errorf("read again: %+v, %v", again.Peers, err)
	}
}
