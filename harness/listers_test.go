package harness

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/replay"
)

// shelf is what a peer lists for one context.
type shelf struct {
	tools  string        // the elements of the list
	ttl    int64         // ms
	scope  string        // private where ""
	after  time.Duration // how long its answer takes
	silent bool          // it never comes
	fails  bool          // an error comes
}

// listers are peers whose lists and notices are the test's.
type listers struct {
	*simPeers
	begun   time.Time
	notices bool             // they advertise notices of changed tools, and acknowledge
	unheard bool             // they advertise and acknowledge nothing
	shelves map[string]shelf // by peer and context
	asked   []ask            // every tools/list, in order
	opened  []domain.Send    // every subscriptions/listen, in order
}

// origin is what the monotonic clock says when the service starts: it may be anything.
const origin = int64(1_000_000_007)

type ask struct {
	domain.Send
	at time.Duration // since the service was started
}

// listSim is a sim of listers.
type listSim struct {
	*sim
	listers *listers
}

// rules are those of a peer whose list is read at most once a second.
func rules() *domain.ListRules { return &domain.ListRules{Interval: 1000, Stale: 3_600_000} }

// listConfig configures peers by rules that the test may change, for contexts.
func listConfig(r *domain.ListRules, contexts []string, names ...string) domain.Config {
	c := testConfig(names...)
	c.Partial = true
	for i := range c.Peers {
		c.Peers[i].Lists, c.Peers[i].Contexts = r, contexts
	}
	return c
}

// tool is a definition that says something.
func tool(name string, says ...string) string {
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, strings.Join(says, " "))
}

// inLists runs a test in a bubble. When it is over the log is verified and
// replayed, and a fold of it comes to the state that the loop has.
func inLists(t *testing.T, c domain.Config, p *listers, test func(s *listSim)) {
	t.Helper()
	path := newLogFile(t)
	synctest.Test(t, func(t *testing.T) {
		s := startLists(t, openDisk(t, path), c, p)
		test(s)
		s.finale()
	})
}

func startLists(t *testing.T, disk diskLog, c domain.Config, p *listers) *listSim {
	t.Helper()
	p.begun, p.asked, p.opened = time.Now(), nil, nil
	return &listSim{listers: p, sim: startSim(t, disk, nil, func(cfg *EngineConfig) {
		cfg.Config = c
		cfg.Clock = Clock{Wall: SystemClock().Wall, Mono: func() int64 { return int64(time.Since(p.begun)) + origin }}
		inner := cfg.NewPeers
		cfg.NewPeers = func(report func(domain.Data, []byte, []byte)) (Peers, error) {
			made, err := inner(report)
			p.simPeers = made.(*simPeers)
			return p, err
		}
	})}
}

// again ends the service and starts it with the same peers on the same log.
func (s *listSim) again(c domain.Config) {
	s.t.Helper()
	s.finale()
	s.sim = startLists(s.t.(*testing.T), s.disk, c, s.listers).sim
}

// finale ends the service, and checks that the log alone leads to where it was.
func (s *listSim) finale() {
	s.t.Helper()
	s.end()
	synctest.Wait()
	log := logfile.Log{Reader: s.disk.Reader}
	_, err := replay.Verify(context.Background(), log)
	noErr(s.t, err)
	again, err := replay.Replay(context.Background(), log)
	noErr(s.t, err)
	if head := s.disk.Log.Head(); again.Size != head.Size || again.Root != head.Root || again.Agreed != again.Decisions {
		s.t.Errorf("head %d, replayed %d: %d of %d decisions agree", head.Size, again.Size, again.Agreed, again.Decisions)
	}
	folded := domain.NewState()
	noErr(s.t, Fold(context.Background(), s.disk, testLog, folded))
	for name, other := range map[string]*domain.State{"fold": folded, "replay": again.State} {
		got := seen(other)
		for i, want := range seen(s.loop.state) {
			if !reflect.DeepEqual(want, got[i]) {
				s.t.Errorf("the %s comes to\n%.999v, the loop to\n%.999v", name, got[i], want)
			}
		}
	}
	if a := &s.loop.alarms; len(a.set) != 0 {
		s.t.Errorf("%d alarms are left", len(a.set))
	}
	if n := len(s.loop.reads.open); n != 0 {
		s.t.Errorf("%d flights are left", n)
	}
}

// asks are the tools/list so far, once everything stands still.
func (s *listSim) asks() []ask {
	synctest.Wait()
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	return slices.Clone(s.listers.asked)
}

// listens are the subscriptions/listen so far.
func (s *listSim) listens() []domain.Send {
	synctest.Wait()
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	return slices.Clone(s.listers.opened)
}

// calls are the tools/call so far.
func (s *listSim) calls() []*exchange {
	synctest.Wait()
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	return slices.Clone(s.peers.calls)
}

// up is the incarnation of a peer that is running.
func (s *listSim) up(peer string) domain.At {
	synctest.Wait()
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	return s.peers.up[peer]
}

// seen is what anybody can see of a state.
func seen(s *domain.State) []any {
	out := []any{s.Head, s.Config, s.Report(testLog)}
	for _, context := range []string{"", "alice", "bob"} {
		out = append(out, s.Tools(context, "", 0, 0), s.Tools(context, "", 0, 1<<62), s.Reading(context))
	}
	return out
}

// Do implements Actor.
func (p *listers) Do(e domain.Effect, body *domain.Body) {
	s, ok := e.(domain.Send)
	probe := s.Method == domain.MethodDiscover && s.Era == domain.EraUnknown
	if !ok || !probe && s.Method != domain.MethodList && s.Method != domain.MethodListen {
		p.simPeers.Do(e, body)
		return
	}
	p.check(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	x := &exchange{Send: s, at: time.Now()}
	p.waiting[s.RequestID] = x
	x.timer = time.AfterFunc(time.Duration(s.Deadline)*time.Millisecond, func() { p.expire(s.RequestID) })
	switch s.Method {
	case domain.MethodList:
		p.list(s)
	case domain.MethodListen:
		p.listen(x)
	default:
		p.discover(s)
	}
}

func (p *listers) discover(s domain.Send) {
	p.end(s.RequestID)
	f := discovered(s.RequestID)
	if p.notices || p.unheard {
		f = []byte(strings.Replace(string(f), `"tools":{}`, `"tools":{"listChanged":true}`, 1))
	}
	p.tell(domain.ProbeAnswered{At: s.At, RequestID: s.RequestID, Frame: domain.RefTo(f)}, f, nil)
}

func (p *listers) list(s domain.Send) {
	p.asked = append(p.asked, ask{s, time.Since(p.begun)})
	switch on := p.shelves[s.Peer+"/"+s.Context]; {
	case on.silent:
	case on.after > 0:
		time.AfterFunc(on.after, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.bring(s)
		})
	default:
		p.bring(s)
	}
}

// bring answers with what is on the shelf by now.
func (p *listers) bring(s domain.Send) {
	if _, waits := p.end(s.RequestID); !waits {
		return
	}
	on := p.shelves[s.Peer+"/"+s.Context]
	if on.scope == "" {
		on.scope = domain.ScopePrivate
	}
	f := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","tools":[%s],"ttlMs":%d,"cacheScope":%q}}`,
		s.RequestID, on.tools, on.ttl, on.scope)
	if on.fails {
		f = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"no"}}`, s.RequestID)
	}
	p.tell(domain.CatalogListed{At: s.At, RequestID: s.RequestID, Context: s.Context, Frame: domain.RefTo(f)}, f, nil)
}

// listen acknowledges a subscription, which then stays open.
func (p *listers) listen(x *exchange) {
	p.opened = append(p.opened, x.Send)
	if !p.notices {
		return
	}
	x.timer.Stop()
	f := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":`+
		`{"io.modelcontextprotocol/subscriptionId":%d},"notifications":{"toolsListChanged":true}}}`, x.RequestID)
	p.tell(domain.SubscriptionAcknowledged{At: x.At, Context: x.Context, RequestID: x.RequestID, Frame: domain.RefTo(f)}, f, nil)
}
