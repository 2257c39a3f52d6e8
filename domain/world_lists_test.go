package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ms is a millisecond of the clocks.
const ms = 1_000_000

// A keeper drives a State whose peers keep their lists by rules. Unlike a world it
// has two clocks, of which the monotonic one begins anew with each life of the
// service, and it knows the requests of several contexts apart.
type keeper struct {
	t     testing.TB
	s     *State
	now   int64 // of the whole run
	born  int64 // of this life of the service
	wall  int64 // how far the wall clock is off
	log   []Event
	sends []Send // every request ordered so far
	dues  []Due  // every reminder ordered so far
}

func newKeeper(t testing.TB) *keeper { return &keeper{t: t, s: NewState(), now: 1_000 * ms} }

func (k *keeper) mono() int64 { return k.now - k.born }

func (k *keeper) pass(n int64) { k.now += n * ms }

// see feeds one observation and returns the decisions it led to.
func (k *keeper) see(d Data, evidence ...string) []Event {
	if _, starts := d.(ServiceStarted); starts {
		k.born = k.now
	}
	o := Event{Time: k.now + k.wall, Mono: k.mono(), Data: d}
	if len(evidence) > 0 {
		o.Evidence = []byte(evidence[0])
	}
	out := k.s.Step(o)
	k.log = append(k.log, out...)
	for _, e := range out {
		for _, effect := range Effects(e) {
			switch x := effect.(type) {
			case Send:
				k.sends = append(k.sends, x)
			case Due:
				k.dues = append(k.dues, x)
			}
		}
	}
	return out[1:]
}

func (k *keeper) start(c Config) []Event {
	k.t.Helper()
	ended := k.see(ServiceStarted{Version: "test", Rules: RulesVersion})
	k.pass(50)
	return append(ended, k.load(c)...)
}

func (k *keeper) load(c Config) []Event {
	k.t.Helper()
	b, err := EncodeConfig(c)
	if err != nil {
		k.t.Fatalf("encode the configuration: %v", err)
	}
	return k.see(ConfigLoaded{Config: RefTo(b), Peers: len(c.Peers)}, string(b))
}

func (k *keeper) at(peer string) At {
	k.t.Helper()
	p := k.s.Peer(peer)
	if p == nil {
		k.t.Fatalf("no peer %q is configured", peer)
	}
	return p.at()
}

// last is the request with a method that a peer was sent last in a context.
func (k *keeper) last(peer, context, method string) Send {
	k.t.Helper()
	for _, x := range slices.Backward(k.sends) {
		if x.Peer == peer && x.Method == method && contextKey(x.Context) == contextKey(context) {
			return x
		}
	}
	k.t.Fatalf("%s was never sent to %q for %q", method, peer, context)
	return Send{}
}

func (k *keeper) count(method string) int {
	n := 0
	for _, x := range k.sends {
		if x.Method == method {
			n++
		}
	}
	return n
}

// Answers to server/discover: with notices of changed tools, without, and that of
// a peer without tools.
const (
	discoverNotices = `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":1000,"cacheScope":"public"}}`
	discoverQuiet   = discoverResult
	discoverNone    = noToolsResult
)

// rises brings a peer's process up to where its lists are asked for.
func (k *keeper) rises(peer, discover string) []Event {
	k.t.Helper()
	k.see(PeerSpawned{At: k.at(peer), PID: 7})
	return k.discovered(peer, discover)
}

func (k *keeper) discovered(peer, discover string) []Event {
	f := strings.ReplaceAll(discover, "$ID", fmt.Sprint(k.last(peer, "", MethodDiscover).RequestID))
	return k.see(ProbeAnswered{At: k.at(peer), Frame: RefTo([]byte(f))}, f)
}

// risesLegacy brings a peer up in the legacy era.
func (k *keeper) risesLegacy(peer string) []Event {
	k.t.Helper()
	k.rises(peer, notFound)
	f := strings.ReplaceAll(legacyResult, "$ID", fmt.Sprint(k.last(peer, "", MethodInitialize).RequestID))
	return k.see(ProbeAnswered{At: k.at(peer), Frame: RefTo([]byte(f))}, f)
}

// answered feeds the answer to the page that a peer was asked for last in a
// context.
func (k *keeper) answered(peer, context, frame string) []Event {
	k.t.Helper()
	x := k.last(peer, context, MethodList)
	f := strings.ReplaceAll(frame, "$ID", fmt.Sprint(x.RequestID))
	return k.see(CatalogListed{At: x.At, Context: x.Context, RequestID: x.RequestID, Frame: RefTo([]byte(f))}, f)
}

func (k *keeper) exited(peer string) []Event {
	return k.see(PeerExited{At: k.at(peer), Status: 1, Cause: "exited"})
}

// reads feeds a host's need of the tools of a context, and returns what each list
// is met with.
func (k *keeper) reads(context string) map[string]CacheUse {
	k.t.Helper()
	return usesOf(k.see(ToolsRead{Context: context, Reads: 1}))
}

func usesOf(out []Event) map[string]CacheUse {
	uses := map[string]CacheUse{}
	for _, d := range all[CacheDecided](out) {
		for _, u := range d.Uses {
			uses[u.Peer] = u
		}
	}
	return uses
}

// met is the verdict and the act on one peer's list.
func (u CacheUse) met() string { return u.Verdict + " " + u.Act }

// verdict judges a peer's list now, without a need of it.
func (k *keeper) verdict(peer, context string) string {
	v, _ := k.s.Peer(peer).verdict(contextKey(context), k.mono())
	return v
}

// names renders what a context can call: "name=peer:local".
func (k *keeper) names(context string) string {
	var out []string
	for _, e := range k.s.Tools(context, "", 0, k.mono()).Tools {
		out = append(out, e.Canonical+"="+e.Peer+":"+e.Local)
	}
	return strings.Join(out, " ")
}

// entry is a tool as hosts of a context see it.
func (k *keeper) entry(context, name string) ToolEntry {
	k.t.Helper()
	for _, e := range k.s.Tools(context, "", 0, k.mono()).Tools {
		if e.Canonical == name {
			return e
		}
	}
	k.t.Fatalf("no tool %q for %q, but %s", name, context, k.names(context))
	return ToolEntry{}
}

// submit feeds a call of the host "local" in a context, under an id of its own.
func (k *keeper) submit(context, tool string, change ...func(*CallReceived)) []Event {
	d := CallReceived{CallID: CallID{Host: "local", ID: fmt.Sprint("n", len(k.log))}, Context: context, Tool: tool, Arguments: Payload{Size: 2}}
	for _, f := range change {
		f(&d)
	}
	return k.see(d)
}

// refusal is the code that a call is refused with, "" where it is routed, and then
// given up.
func (k *keeper) refusal(context, tool string, change ...func(*CallReceived)) Code {
	k.t.Helper()
	out := k.submit(context, tool, change...)
	if d, ok := find[CallRefused](out); ok {
		return d.Code
	}
	r := must[CallRouted](k.t, out)
	k.see(CallCancelled{CallID: r.CallID, By: "host"})
	return ""
}

// answersCall feeds the answer to a call that was routed.
func (k *keeper) answersCall(r CallRouted, f Facts) []Event {
	return k.see(CallAnswered{CallID: r.CallID, At: r.At, RequestID: r.RequestID, Facts: f})
}

// ruled gives every peer of a configuration rules for its lists: an interval of a
// second, an hour of stale lists, subscriptions.
func ruled(c Config, change ...func(*PeerConfig)) Config {
	c.Partial = true
	for i := range c.Peers {
		c.Peers[i].Lists = &ListRules{Interval: 1_000, Stale: 3_600_000, Listen: 10_000}
		for _, f := range change {
			f(&c.Peers[i])
		}
	}
	return c
}

func inContexts(names ...string) func(*PeerConfig) {
	return func(p *PeerConfig) { p.Contexts = names }
}

func unsubscribed(p *PeerConfig) { p.Lists.Listen = 0 }

func holding(p *PeerConfig) { p.Lists.Hold = true }

// onlyPeer changes one peer of a configuration.
func onlyPeer(name string, f func(*PeerConfig)) func(*PeerConfig) {
	return func(p *PeerConfig) {
		if p.Name == name {
			f(p)
		}
	}
}

// cached are the members of a modern page with cache hints.
func cached(ttl int64, scope string) string {
	return fmt.Sprintf(`,"resultType":"complete","ttlMs":%d,"cacheScope":%q`, ttl, scope)
}

func before(cursor, hints string) string { return hints + `,"nextCursor":"` + cursor + `"` }

// tell is a definition of a tool with a description, which is escaped already.
func tell(name, description string) string {
	return `{"name":"` + name + `","description":"` + description + `","inputSchema":{"type":"object"}}`
}

// told is a page of definitions.
func told(hints string, definitions ...string) string {
	return `{"jsonrpc":"2.0","id":$ID,"result":{"tools":[` + strings.Join(definitions, ",") + `]` + hints + `}}`
}

// kept is one modern peer "p" without notices, whose list was just read: fresh
// for ten seconds.
func kept(t testing.TB, change ...func(*PeerConfig)) *keeper {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), change...))
	k.rises("p", discoverQuiet)
	k.answered("p", "", listPage(cached(10_000, ScopePublic), "x"))
	return k
}

// noticed is one modern peer "p" with an open subscription, whose list was just
// read: fresh for ten minutes.
func noticed(t testing.TB, change ...func(*PeerConfig)) *keeper {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), change...))
	k.rises("p", discoverNotices)
	k.acknowledges("p", "", true)
	k.answered("p", "", listPage(cached(600_000, ScopePublic), "x"))
	return k
}

// acknowledges feeds the first message of the subscription that was asked for
// last.
func (k *keeper) acknowledges(peer, context string, granted bool) []Event {
	k.t.Helper()
	x := k.last(peer, context, MethodListen)
	f := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d},"notifications":{"toolsListChanged":%t}}}`,
		x.RequestID, granted)
	return k.see(SubscriptionAcknowledged{At: x.At, Context: x.Context, RequestID: x.RequestID, Frame: RefTo([]byte(f))}, f)
}

// changes feeds a notice on the subscription that was asked for last.
func (k *keeper) changes(peer, context string) []Event {
	k.t.Helper()
	x := k.last(peer, context, MethodListen)
	return k.see(ListChanged{At: x.At, Context: x.Context, Subscription: x.RequestID, Count: 1})
}

// isDue feeds the reminder of a list's next reading, when its time has come.
func (k *keeper) isDue(peer, context, what string) []Event {
	k.t.Helper()
	for _, d := range slices.Backward(k.dues) {
		if d.Peer == peer && contextKey(d.Context) == contextKey(context) && d.What == what {
			if what == DueSubscription {
				return k.see(SubscriptionDue{At: d.At, Context: d.Context})
			}
			return k.see(ListDue{At: d.At, Context: d.Context})
		}
	}
	k.t.Fatalf("nothing is due of %q for %q", peer, context)
	return nil
}

// refolds checks that the state folded from the log alone is the one that decided.
func (k *keeper) refolds() {
	k.t.Helper()
	folded := NewState()
	for _, e := range k.log {
		folded.Apply(e)
	}
	if !sameState(folded, k.s) {
		k.t.Fatalf("the state folded from %d events is another one", len(k.log))
	}
}
