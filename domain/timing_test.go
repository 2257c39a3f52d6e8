package domain

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestTimingTable: how long an exchange may take, from what the host asks for and
// the peer is configured for, and whether a progressToken goes with it.
func TestTimingTable(t *testing.T) {
	type times struct {
		deadline, idle, limit int64
		token                 bool
	}
	for _, c := range []struct {
		name                 string
		call, limit, idle    int64 // of the peer
		timeout, most        int64 // of the host
		listens              bool
		want                 times
		leftDeadline, leftTo int64 // sent again when 10 s are left
	}{
		{"the peer's", 60_000, 0, 0, 0, 0, false, times{60_000, 0, 0, false}, 10_000, 0},
		{"the peer's, listened to", 60_000, 0, 0, 0, 0, true, times{60_000, 0, 0, true}, 10_000, 0},
		{"the host's", 60_000, 0, 0, 5_000, 0, false, times{5_000, 0, 0, false}, 5_000, 0},
		{"the host's, longer", 60_000, 0, 0, 90_000, 0, false, times{90_000, 0, 0, false}, 10_000, 0},
		{"progress buys time", 60_000, 120_000, 0, 0, 0, false, times{60_000, 60_000, 120_000, true}, 10_000, 0},
		{"progress buys time in pieces", 60_000, 120_000, 20_000, 0, 0, false, times{60_000, 20_000, 120_000, true}, 10_000, 0},
		{"the host's timeout under the peer's limit", 60_000, 120_000, 20_000, 2_000, 0, false, times{2_000, 20_000, 120_000, true}, 2_000, 10_000},
		{"the host's limit", 60_000, 120_000, 20_000, 0, 90_000, false, times{60_000, 20_000, 90_000, true}, 10_000, 0},
		{"the host's limit without the peer's", 60_000, 0, 0, 0, 90_000, false, times{60_000, 60_000, 90_000, true}, 10_000, 0},
		{"the host's limit below the peer's timeout", 60_000, 120_000, 20_000, 0, 30_000, false, times{30_000, 0, 0, false}, 10_000, 0},
		{"the host's limit equal to its timeout", 60_000, 0, 0, 30_000, 30_000, true, times{30_000, 0, 0, true}, 10_000, 0},
		{"the host's timeout above the peer's limit", 60_000, 120_000, 20_000, 150_000, 0, false, times{120_000, 0, 0, false}, 10_000, 0},
		{"the host's limit above the peer's", 60_000, 120_000, 20_000, 0, 150_000, false, times{60_000, 20_000, 120_000, true}, 10_000, 0},
		{"the peer's limit equal to its timeout", 60_000, 60_000, 5_000, 0, 0, false, times{60_000, 0, 0, false}, 10_000, 0},
		{"both of the host's", 60_000, 120_000, 20_000, 1_000, 15_000, false, times{1_000, 20_000, 15_000, true}, 1_000, 10_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := fire(t, resends(1), func(p *PeerConfig) { p.CallTimeout, p.CallLimit, p.IdleTimeout = c.call, c.limit, c.idle })
			d := must[CallRouted](t, w.submit("c", "x", func(d *CallReceived) { d.Timeout, d.Limit, d.Progress = c.timeout, c.most, c.listens }))
			if got := (times{d.Deadline, d.Idle, d.Limit, d.Progress}); got != c.want {
				t.Errorf("routed with %+v, want %+v", got, c.want)
			}
			x := w.exchange("c")
			if got := (times{x.Deadline, x.Idle, x.Limit, x.Progress}); got != c.want {
				t.Errorf("sent with %+v", got)
			}
			total := max(c.want.deadline, c.want.limit)
			w.ms(max(0, total-10_000))
			again := must[CallResent](t, w.answers("c", rejects(-32020)))
			if again.Deadline != min(c.leftDeadline, total) || again.Limit != c.leftTo {
				t.Errorf("again with a deadline of %d and a limit of %d, want %d and %d", again.Deadline, again.Limit, c.leftDeadline, c.leftTo)
			}
			if (again.Idle > 0) != (again.Limit > 0) {
				t.Errorf("idle %d beside a limit of %d", again.Idle, again.Limit)
			}
		})
	}
}

// TestFreshTimes: what a host or an operator orders has times of its own, however
// long ago the first exchange was.
func TestFreshTimes(t *testing.T) {
	w := fire(t, asking, resends(1))
	w.submit("c", "x", can(everything))
	w.answers("c", asks("roots"), "s")
	w.ms(500_000)
	if d := must[CallResent](t, w.goesOn("c", "x", "s")); d.Deadline != 60_000 {
		t.Errorf("%+v", d)
	}
	w.ms(59_000) // and its own rules count from there
	if d := must[CallHeld](t, w.loses("c", "no")); d.Wait != 1_000 {
		t.Errorf("%+v", d)
	}
	w.submit("d", "x")
	w.ms(60_000)
	w.passes("d", false)
	w.ms(3_600_000)
	if d := must[CallResent](t, w.resends("d")); d.Deadline != 60_000 || d.By != "oncall" {
		t.Errorf("%+v", d)
	}
	w.ms(58_000)
	if d := must[CallHeld](t, w.loses("d", "no")); d.Wait != 2_000 {
		t.Errorf("%+v", d)
	}
}

// TestCapabilitiesOfACall: what the host says it can do, as far as the
// configuration allows it, in the words of the configuration.
func TestCapabilitiesOfACall(t *testing.T) {
	for _, c := range []struct{ host, allowed, want string }{
		{`{}`, `{}`, `{}`},
		{`{"roots":{}}`, `{}`, `{}`},
		{`{}`, `{"roots":{}}`, `{}`},
		{`{"roots":{}}`, `{"roots":{}}`, `{"roots":{}}`},
		{`{"sampling":{},"roots":{}}`, `{"roots":{},"sampling":{}}`, `{"roots":{},"sampling":{}}`},
		{`{"roots":{"listChanged":true}}`, `{"roots":{}}`, `{"roots":{}}`},
		{`{"roots":{}}`, `{"roots":{"listChanged":true}}`, `{"roots":{}}`},
		{`{"roots":{"listChanged":true}}`, `{"roots":{"listChanged":true}}`, `{"roots":{"listChanged":true}}`},
		{`{"roots":{"listChanged":true}}`, `{"roots":{"listChanged":false}}`, `{"roots":{}}`},
		{`{"roots":true}`, `{"roots":{}}`, `{}`},
		{`{"roots":{}}`, `{"roots":true}`, `{}`},
		{`{"sampling":{"tools":{},"context":{}}}`, `{"sampling":{"tools":{}}}`, `{"sampling":{"tools":{}}}`},
		{`{"elicitation":{}}`, `{"elicitation":{}}`, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{}}`, `{"elicitation":{"form":{},"url":{}}}`, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{"url":{},"form":{}}}`, `{"elicitation":{}}`, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{"url":{}}}`, `{"elicitation":{}}`, `{}`},
		{`{"elicitation":{}}`, `{"elicitation":{"url":{}}}`, `{}`},
		{`{"elicitation":{"url":{}}}`, `{"elicitation":{"form":{},"url":{}}}`, `{"elicitation":{"url":{}}}`},
		{`{"elicitation":true}`, `{"elicitation":{}}`, `{}`},
		{`{"experimental":{"x":{"y":1}}}`, `{"experimental":{"x":{"y":1,"z":2}}}`, `{"experimental":{"x":{"y":1}}}`},
		{`{"experimental":{"x":{}}}`, `{}`, `{}`},
	} {
		w := fire(t, func(p *PeerConfig) { p.Capabilities = jsontext.Value(c.allowed) })
		if d := must[CallRouted](t, w.submit("c", "x", can(c.host))); string(d.Capabilities) != c.want {
			t.Errorf("host %s, allowed %s: declared %s, want %s", c.host, c.allowed, d.Capabilities, c.want)
		}
		if names := capabilityNames(jsontext.Value(c.want)); !contains(names, "?") && !Covers(jsontext.Value(c.host), names) {
			t.Errorf("%s is not covered by what the host said, %s", c.want, c.host)
		}
	}
}

// TestCapabilitiesOfASilentHost: those of the probe, as before hosts could say.
func TestCapabilitiesOfASilentHost(t *testing.T) {
	w := newWorld(t)
	w.start(fireConfig(func(p *PeerConfig) { p.Capabilities, p.AllowLegacy = jsontext.Value(everything), true }))
	w.spawned("a")
	w.probed("a", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32021,"data":{"requiredCapabilities":{"roots":{}}}}}`)
	w.probed("a", discoverResult)
	w.listed("a", toolList("x"))
	w.spawned("b")
	w.probed("b", notFound)
	w.probed("b", legacyResult)
	w.listed("b", listPage("", "z"))
	for id, c := range map[string]struct {
		tool, want string
		change     func(*CallReceived)
	}{
		"silent":  {"x", `{"roots":{}}`, func(*CallReceived) {}},
		"nothing": {"x", `{}`, can(`{}`)},
		"legacy":  {"z", `{}`, can(everything)}, // declared once, in initialize
	} {
		if d := must[CallRouted](t, w.submit(id, c.tool, c.change)); string(d.Capabilities) != c.want {
			t.Errorf("%s: declared %s, want %s", id, d.Capabilities, c.want)
		}
	}
}
