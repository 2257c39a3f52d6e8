package events_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/events"
)

// A crowd is a state under the largest configurations and lists that there can be.
// Every event of it is sealed.
type crowd struct {
	t     *testing.T
	state *domain.State
	now   int64
	last  map[string]domain.Send // by peer, context and method
	size  map[string]int         // the largest envelope of each kind
	count map[string]int
}

func newCrowd(t *testing.T) *crowd {
	return &crowd{t: t, state: domain.NewState(), now: 1, last: map[string]domain.Send{}, size: map[string]int{}, count: map[string]int{}}
}

func (c *crowd) see(d domain.Data, evidence string) {
	c.t.Helper()
	c.now += 1_000_000
	if _, reads := d.(domain.ToolsRead); reads {
		c.now += 5_000_000_000
	}
	for _, e := range c.state.Step(domain.Event{Time: c.now, Mono: c.now, Data: d, Evidence: []byte(evidence)}) {
		b, err := events.Seal(strings.Repeat("l", 72), e)
		if err != nil {
			c.t.Fatal(err)
		}
		kind := e.Data.Kind()
		c.size[kind] = max(c.size[kind], len(b))
		c.count[kind]++
		for _, effect := range domain.Effects(e) {
			if x, ok := effect.(domain.Send); ok {
				c.last[x.Peer+" "+x.Context+" "+x.Method] = x
			}
		}
	}
}

// start loads a configuration and brings every peer up to where it is asked for its
// lists.
func (c *crowd) start(config domain.Config) {
	c.see(domain.ServiceStarted{Version: "test", Rules: domain.RulesVersion}, "")
	b, err := domain.EncodeConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.see(domain.ConfigLoaded{Config: domain.RefTo(b), Peers: len(config.Peers)}, string(b))
	for _, p := range config.Peers {
		c.see(domain.PeerSpawned{At: domain.At{Peer: p.Name, Incarnation: 1}, PID: 1}, "")
		x := c.last[p.Name+"  "+domain.MethodDiscover]
		frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}`, x.RequestID)
		c.see(domain.ProbeAnswered{At: x.At, RequestID: x.RequestID, Frame: domain.RefTo([]byte(frame))}, frame)
	}
}

// lists answers the page that a peer is asked for in a context.
func (c *crowd) lists(peer, context, more string, definitions ...string) {
	c.t.Helper()
	x := c.last[peer+" "+context+" "+domain.MethodList]
	frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","tools":[%s]%s}}`, x.RequestID, strings.Join(definitions, ","), more)
	c.see(domain.CatalogListed{At: x.At, Context: context, RequestID: x.RequestID, Frame: domain.RefTo([]byte(frame))}, frame)
}

// largest reports the sizes, and checks that there was something to measure.
func (c *crowd) largest(kinds ...string) {
	c.t.Helper()
	for _, kind := range kinds {
		if c.count[kind] == 0 {
			c.t.Errorf("there is no %s", kind)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(c.size)) {
		if c.size[kind] > 4<<10 {
			c.t.Logf("%s: at most %d bytes, %d times", kind, c.size[kind], c.count[kind])
		}
	}
}

func peerOf(name string, contexts ...string) domain.PeerConfig {
	return domain.PeerConfig{Name: name, Transport: "stdio", Command: "server", Pin: "pin", ProbeTimeout: 10_000, CallTimeout: 60_000, Capabilities: []byte(`{}`),
		Contexts: contexts, Lists: &domain.ListRules{Interval: 1_000, Stale: 3_600_000, Listen: 10_000, Hold: len(contexts) == 0}}
}

func tool(name, description string) string {
	return `{"name":"` + name + `","description":"` + description + `","inputSchema":{"type":"object"}}`
}

const public = `,"ttlMs":0,"cacheScope":"public"`

// long is a name of so many bytes that sorts by its number.
func long(n, size int) string {
	s := fmt.Sprintf("%03d", n)
	return s + strings.Repeat("n", size-len(s))
}

// TestEverythingContestedFits: 250 peers of the longest names that list the same
// tools of the longest names, one of them contested twice over: by everybody's bare
// name, and by the prefixed forms of many. The longest contexts read them.
func TestEverythingContestedFits(t *testing.T) {
	alice, bob := strings.Repeat("a", 63), strings.Repeat("b", 63)
	// A name that is also peer__tool for 21 peers: a, a__a, a__a__a and so on.
	twice := strings.Repeat("a__", 42) + "xy"
	var peers []domain.PeerConfig
	for i := range 229 {
		peers = append(peers, peerOf(long(i, 63), alice, bob))
	}
	for i := range 21 {
		peers = append(peers, peerOf(strings.Repeat("a__", i)+"a", alice, bob))
	}
	common := []string{tool(twice, ""), tool(strings.Repeat("T", 128), "")}
	for i := range 9 {
		common = append(common, tool(strings.Repeat("T", i)+"t"+strings.Repeat("T", 127-i), ""))
	}
	c := newCrowd(t)
	c.start(domain.Config{Node: "n", Collision: domain.PrefixOnCollision, Separator: "__", Inflight: 8, Peers: peers, Partial: true})
	for _, p := range peers {
		list := slices.Clone(common)
		for i := range 21 { // what is left of the name after the peer's
			list = append(list, tool(strings.TrimPrefix(twice, strings.Repeat("a__", i+1)), ""))
		}
		c.lists(p.Name, bob, public, list[:2]...) // which alice's then takes the place of
		c.lists(p.Name, alice, public, list...)
	}
	for _, context := range []string{alice, bob} {
		c.see(domain.ToolsRead{Context: context, Reads: 1}, "")
		c.see(domain.CallReceived{CallID: domain.CallID{Host: long(1, 63), ID: long(1, 64)}, Context: context, Tool: strings.Repeat("x", 256)}, "")
	}
	c.largest("collision.decided", "namespace.merged", "cache.decided", "name.flagged")
	if c.size["collision.decided"] < 50<<10 || c.size["namespace.merged"] < 38<<10 || c.size["cache.decided"] < 35<<10 {
		t.Errorf("these are not the worst cases: %v", c.size)
	}
}

// TestAHundredPagesFit: of the longest cursors, in the most room that JSON can take
// for them, with every warning that there is.
func TestAHundredPagesFit(t *testing.T) {
	c := newCrowd(t)
	c.start(domain.Config{Node: "n", Collision: domain.PrefixOnCollision, Separator: "/", Inflight: 8, Peers: []domain.PeerConfig{peerOf("p")}, Partial: true})
	for i := range 100 {
		more := []string{public, `,"ttlMs":-1`, `,"cacheScope":7`}[i%3]
		if i < 99 {
			more += `,"nextCursor":"` + fmt.Sprintf("%04d", i) + strings.Repeat(`\u0001`, 4092) + `"`
		}
		bad := strings.Repeat(`\ud83d\udd27`, 128)
		c.lists("p", "", more, tool(fmt.Sprint("t", i), "A"), tool(bad, "A"), `{"name":7}`,
			tool(fmt.Sprint("h", i), strings.Repeat(`\u200b\u202e\ue0041 `, 40)),
			`{"name":"d`+fmt.Sprint(i)+`","inputSchema":{"type":"object","$schema":"urn:unheard:`+strings.Repeat("d", 4_000)+fmt.Sprint(i)+`"}}`)
	}
	c.largest("catalog.accepted", "tool.rejected", "tool.flagged", "list.requested")
	if c.size["list.requested"] < 24<<10 || c.count["catalog.accepted"] != 1 {
		t.Errorf("these are not the worst cases: %v, %v", c.size, c.count)
	}
}

// TestManyChangedToolsFit: 25,000 tools of the longest names that all change, and
// in many places.
func TestManyChangedToolsFit(t *testing.T) {
	c := newCrowd(t)
	c.start(domain.Config{Node: "n", Collision: domain.PrefixOnCollision, Separator: "/", Inflight: 8, Peers: []domain.PeerConfig{peerOf("p")}, Partial: true})
	list := func(form string) []string {
		var out []string
		for i := range 25_000 {
			d := tool(long(i, 128), form)
			if i < 250 {
				var properties []string
				for j := range 40 {
					properties = append(properties, fmt.Sprintf(`"%s%d":{"title":"%s"}`, strings.Repeat(`\"`, 60), j, strings.Repeat(`\"`, 60)+form))
				}
				d = strings.Replace(d, `"type":"object"`, `"type":"object","properties":{`+strings.Join(properties, ",")+`}`, 1)
			}
			out = append(out, d)
		}
		return out
	}
	c.lists("p", "", public, list("A")...)
	c.see(domain.ToolsRead{Reads: 1}, "")
	c.lists("p", "", public, list("B"+strings.Repeat(`\u0007`, 20))...)
	c.largest("tool.changed", "catalog.accepted", "namespace.merged")
	if c.count["tool.changed"] != 25_000 || c.size["tool.changed"] < 5<<10 {
		t.Errorf("these are not the worst cases: %v, %v", c.size, c.count)
	}
}
