package config

import (
	"testing"

	"waybill/domain"
)

// decided is what decisions rest on, of one peer a with the lines given.
func decided(t *testing.T, lines string) domain.PeerConfig {
	t.Helper()
	f := mustLoad(t, with(lines))
	c := f.Domain(nil, environment(nil)).Peers[0]
	got := domain.PeerConfig{ProbeTimeout: c.ProbeTimeout, CallTimeout: c.CallTimeout, ListTimeout: c.ListTimeout, CallLimit: c.CallLimit,
		IdleTimeout: c.IdleTimeout, Inflight: c.Inflight, Resends: c.Resends, Idempotency: c.Idempotency, InputRounds: c.InputRounds,
		InputWindow: c.InputWindow, RefuseOutput: c.RefuseOutput, HungAfter: c.HungAfter, HealthEvery: c.HealthEvery,
		HealthWithin: c.HealthWithin, Attempts: c.Attempts, Quarantine: c.Quarantine, Lists: c.Lists}
	return got
}

func TestEveryBoundReachesTheDecisions(t *testing.T) {
	defaults := domain.PeerConfig{ProbeTimeout: 10_000, CallTimeout: 60_000, ListTimeout: 10_000, Inflight: 256, Resends: 1,
		InputRounds: 10, InputWindow: 600_000, HungAfter: 3, Attempts: 8, Quarantine: 600_000}
	lists := domain.ListRules{Interval: 1000, Stale: 3_600_000, Listen: 10_000}
	for _, c := range []struct {
		name, lines string
		change      func(*domain.PeerConfig)
	}{
		{"nothing", "args: []", func(*domain.PeerConfig) {}},
		{"list_timeout", "list_timeout: 3s", func(p *domain.PeerConfig) { p.ListTimeout = 3000 }},
		{"list_timeout follows probe_timeout", "probe_timeout: 4s", func(p *domain.PeerConfig) { p.ProbeTimeout, p.ListTimeout = 4000, 4000 }},
		{"call_limit", "call_limit: 2m", func(p *domain.PeerConfig) { p.CallLimit = 120_000 }},
		{"call_limit equal to call_timeout", "call_limit: 60s", func(p *domain.PeerConfig) { p.CallLimit = 60_000 }},
		{"idle_timeout", "idle_timeout: 5s", func(p *domain.PeerConfig) { p.IdleTimeout = 5000 }},
		{"idle_timeout like call_timeout", "idle_timeout: 60s", func(*domain.PeerConfig) {}},
		{"inflight", "inflight: 2", func(p *domain.PeerConfig) { p.Inflight = 2 }},
		{"resends", "resends: 0", func(p *domain.PeerConfig) { p.Resends = 0 }},
		{"idempotency", "idempotency: {charge: key}", func(p *domain.PeerConfig) { p.Idempotency = map[string]string{"charge": "key"} }},
		{"input_rounds", "input_rounds: 2", func(p *domain.PeerConfig) { p.InputRounds = 2 }},
		{"input_window", "input_window: 1s", func(p *domain.PeerConfig) { p.InputWindow = 1000 }},
		{"output_schema", "output_schema: refuse", func(p *domain.PeerConfig) { p.RefuseOutput = true }},
		{"hung_after", "hung_after: 0", func(p *domain.PeerConfig) { p.HungAfter = 0 }},
		{"health_interval", "health_interval: 30s", func(p *domain.PeerConfig) { p.HealthEvery, p.HealthWithin = 30_000, 10_000 }},
		{"health_interval below probe_timeout", "health_interval: 2s", func(p *domain.PeerConfig) { p.HealthEvery, p.HealthWithin = 2000, 2000 }},
		{"health_timeout", "health_interval: 2s\n    health_timeout: 1s", func(p *domain.PeerConfig) { p.HealthEvery, p.HealthWithin = 2000, 1000 }},
		{"health_timeout without an interval", "health_timeout: 1s", func(*domain.PeerConfig) {}},
		{"restarts", "restarts: 1", func(p *domain.PeerConfig) { p.Attempts = 1 }},
		{"quarantine", "quarantine: 1s", func(p *domain.PeerConfig) { p.Quarantine = 1000 }},
		{"list_interval", "list_interval: 10ms", func(p *domain.PeerConfig) { p.Lists.Interval = 10 }},
		{"list_refresh", "list_refresh: 1s", func(p *domain.PeerConfig) { p.Lists.Refresh = 1000 }},
		{"stale_lists", "stale_lists: 24h", func(p *domain.PeerConfig) { p.Lists.Stale = 86_400_000 }},
		{"listen_timeout", "listen_timeout: 3s", func(p *domain.PeerConfig) { p.Lists.Listen = 3000 }},
		{"subscribe", "subscribe: true", func(*domain.PeerConfig) {}},
		{"subscribe not", "subscribe: false\n    listen_timeout: 3s", func(p *domain.PeerConfig) { p.Lists.Listen = 0 }},
		{"on_tool_change: record", "on_tool_change: record", func(*domain.PeerConfig) {}},
		{"on_tool_change: quarantine", "on_tool_change: quarantine", func(p *domain.PeerConfig) { p.Lists.Hold = true }},
		{"share_public", "share_public: true", func(*domain.PeerConfig) {}},
		{"share_public not", "share_public: false", func(p *domain.PeerConfig) { p.Lists.Distrust = true }},
	} {
		want, rules := defaults, lists
		want.Lists = &rules
		c.change(&want)
		got, err := domain.EncodeConfig(domain.Config{Peers: []domain.PeerConfig{decided(t, c.lines)}})
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := domain.EncodeConfig(domain.Config{Peers: []domain.PeerConfig{want}})
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(wanted) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, wanted)
		}
	}
}
