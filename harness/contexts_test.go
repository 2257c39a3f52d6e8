package harness

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

// submitFor hands over a call of a host of an authorization context, as a transport
// would that knows it.
func (s *listSim) submitFor(context, request string) <-chan Reply {
	s.t.Helper()
	got := make(chan Reply, 2)
	r, problem := domain.ParseCall([]byte(request))
	d := s.loop.received("local", r, problem)
	d.Context = context
	if code := s.loop.inbox.offer(input{host: "local", data: d, arguments: r.Arguments, reply: func(reply Reply) { got <- reply }}); code != "" {
		s.t.Fatalf("a call was turned away: %s", code)
	}
	return got
}

// wantCall checks that a tool is called in a context, with the schema that it has
// there.
func (s *listSim) wantCall(context, tool, schema string) {
	s.t.Helper()
	n := len(s.calls())
	got := s.submitFor(context, fmt.Sprintf(`{"tool":%q}`, tool))
	x := s.sent(n)
	if x.Context != context || x.Tool != tool || string(x.body.OutputSchema) != schema {
		s.t.Errorf("a call of %s for %q was sent as %s for %q with schema %s, want %s", tool, context, x.Tool, x.Context, x.body.OutputSchema, schema)
	}
	s.finish(x, `{}`)
	s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
}

// wantNone checks that a context has no tool of a name.
func (s *listSim) wantNone(context, tool string) {
	s.t.Helper()
	n := len(s.calls())
	s.wantReply(s.submitFor(context, fmt.Sprintf(`{"tool":%q}`, tool)), domain.StatusRefused, domain.CodeUnknownTool, domain.RanNo)
	if len(s.calls()) != n {
		s.t.Errorf("%s of another context was called for %q", tool, context)
	}
}

// marked is a tool whose definition says for whom it was listed.
func marked(name, context string) string {
	return fmt.Sprintf(`{"name":%q,"description":"for %s","outputSchema":%s,"inputSchema":{"type":"object"}}`, name, context, schemaFor(context))
}

func schemaFor(context string) string { return fmt.Sprintf(`{"title":%q,"type":"object"}`, context) }

var both = []string{"alice", "bob"}

// twoContexts is a peer that lists other tools for each of two contexts, and one
// of the same name.
func twoContexts(ttl int64, scope string) *listers {
	p := &listers{notices: true, shelves: map[string]shelf{}}
	for _, c := range both {
		p.shelves["notes/"+c] = shelf{tools: marked("only-"+c, c) + "," + marked("same", c), ttl: ttl, scope: scope}
	}
	return p
}

// Private lists of two authorization contexts have nothing to do with each other:
// not when they are read, not when they are called, not after a restart of the
// service (specification, server/utilities/caching, "Cache Scope Field").
func TestPrivateListsOfTwoContextsNeverCross(t *testing.T) {
	c := listConfig(listeningRules(), both, "notes")
	inLists(t, c, twoContexts(3_600_000, domain.ScopePrivate), func(s *listSim) {
		s.wantApart()
		s.pass(5 * time.Second)
		s.listers.putFor("notes", "alice", shelf{tools: marked("only-alice", "alice"), ttl: 3_600_000, after: 50 * time.Millisecond})
		head := s.head()
		s.changes("notes", "alice", 1)
		s.read(1, "bob")[0].want(s.t, []string{"only-bob", "same"}, []string{}) // his is fresh: he waits for nobody
		if r := s.read(1, "alice")[0]; r.took != 50*time.Millisecond {
			s.t.Errorf("her list came after %v", r.took)
		}
		s.wantNone("alice", "same")
		s.wantCall("bob", "same", schemaFor("bob"))
		for _, d := range find[domain.ListRequested](s.after(head)) {
			if d.Context != "alice" {
				s.t.Errorf("a change of hers had %q read", d.Context)
			}
		}
		s.pass(5 * time.Second) // what she lists for everybody takes the place of nobody's own
		s.listers.putFor("notes", "alice", shelf{tools: marked("same", "everybody"), ttl: 3_600_000, scope: domain.ScopePublic})
		s.changes("notes", "alice", 1)
		s.read(1, "alice")[0].want(s.t, []string{"same"}, []string{})
		s.read(1, "bob")[0].want(s.t, []string{"only-bob", "same"}, []string{})
		s.wantCall("bob", "same", schemaFor("bob"))
	})
}

// wantApart checks what each of two contexts sees and calls.
func (s *listSim) wantApart() {
	s.t.Helper()
	for _, c := range both {
		r := s.read(1, c)[0]
		r.want(s.t, []string{"only-" + c, "same"}, []string{})
		if r.took != 0 {
			s.t.Errorf("%s waited %v for the pause of another context", c, r.took)
		}
		for _, e := range r.list.Tools {
			if !strings.Contains(string(e.Definition), "for "+c) || r.list.Context != c {
				s.t.Errorf("%s sees %s", c, e.Definition)
			}
		}
		s.wantCall(c, "only-"+c, schemaFor(c))
		s.wantCall(c, "same", schemaFor(c))
	}
	s.wantNone("alice", "only-bob")
	s.wantNone("bob", "only-alice")
	s.wantNone("", "same") // the peer has no list for the default context
	s.read(1, "")[0].want(s.t, nil, []string{})
	for _, d := range find[domain.CacheDecided](s.events()) {
		for _, u := range d.Uses {
			if u.Owner != "" || !slices.Contains(both, d.Context) {
				s.t.Errorf("decided for %s: %+v", d.Context, u)
			}
		}
	}
}

// A restart of the service makes every list stale, whatever its ttl said, and reads
// each again for its own context.
func TestAfterARestartOfTheServiceEveryContextIsReadAgain(t *testing.T) {
	c := listConfig(listeningRules(), both, "notes")
	inLists(t, c, twoContexts(3_600_000, domain.ScopePrivate), func(s *listSim) {
		s.wantApart()
		s.listers.putFor("notes", "bob", shelf{silent: true})
		s.listers.putFor("notes", "alice", shelf{tools: marked("new", "alice"), ttl: 3_600_000})
		s.again(c)
		s.read(1, "alice")[0].want(s.t, []string{"new"}, []string{})
		s.read(1, "bob")[0].want(s.t, []string{"only-bob", "same"}, []string{"notes"})
		s.wantCall("alice", "new", schemaFor("alice"))
		s.wantReply(s.submitFor("bob", `{"tool":"same"}`), domain.StatusRefused, domain.CodePeerUnavailable, domain.RanNo)
		asked := map[string]int{}
		for _, a := range s.asks() {
			asked[a.Context]++
		}
		if asked["alice"] != 1 || asked["bob"] != 1 || len(asked) != 2 {
			s.t.Errorf("asked for %v", asked)
		}
		s.pass(11 * time.Second) // his is given up for now, and served as it was
		s.wantCall("bob", "same", schemaFor("bob"))
		s.read(1, "bob")[0].want(s.t, []string{"only-bob", "same"}, []string{"notes"})
	})
}

// A public list may be seen from another context that has none, and the decision
// says whose it was; where the configuration distrusts it, it may not.
func TestAPublicListIsSharedUnlessTheConfigurationDistrustsIt(t *testing.T) {
	for _, distrust := range []bool{false, true} {
		t.Run(fmt.Sprint("distrust ", distrust), func(t *testing.T) {
			r := listeningRules()
			r.Distrust = distrust
			p := twoContexts(3_600_000, domain.ScopePublic)
			p.shelves["notes/bob"] = shelf{fails: true}
			inLists(t, listConfig(r, both, "notes"), p, func(s *listSim) {
				head := s.head()
				got := s.read(1, "bob")[0]
				use := find[domain.CacheDecided](s.after(head))[0].Uses[0]
				if distrust {
					got.want(s.t, nil, []string{})
					if !slices.Equal(got.list.Missing, []string{"notes"}) || use.Verdict != domain.CacheNone || use.Owner != "" || use.List != 0 {
						s.t.Errorf("distrusted: missing %v, %+v", got.list.Missing, use)
					}
					s.wantNone("bob", "same")
					return
				}
				got.want(s.t, []string{"only-alice", "same"}, []string{})
				if use.Verdict != domain.CacheShared || use.Owner != "alice" || use.Act != domain.ActServed || use.List == 0 {
					s.t.Errorf("shared: %+v", use)
				}
				s.wantCall("bob", "same", schemaFor("alice"))
				s.flip(p)
			})
		})
	}
}

// flip has the public list of one context become private: from that moment no other
// sees it.
func (s *listSim) flip(p *listers) {
	s.t.Helper()
	s.pass(5 * time.Second)
	p.putFor("notes", "alice", shelf{tools: marked("same", "alice") + "," + marked("secret", "alice"), ttl: 3_600_000})
	s.changes("notes", "alice", 1)
	s.read(1, "alice")[0].want(s.t, []string{"same", "secret"}, []string{})
	r := s.read(1, "bob")[0]
	r.want(s.t, nil, []string{})
	if !slices.Equal(r.list.Missing, []string{"notes"}) {
		s.t.Errorf("missing: %v", r.list.Missing)
	}
	s.wantNone("bob", "same")
	s.wantNone("bob", "secret")
}

// What one context approves is not approved for another.
func TestAnApprovalHoldsForItsContextAlone(t *testing.T) {
	r := listeningRules()
	r.Hold = true
	p := twoContexts(3_600_000, domain.ScopePrivate)
	inLists(t, listConfig(r, both, "notes"), p, func(s *listSim) {
		s.pass(5 * time.Second)
		for _, c := range both { // the same change for both
			p.putFor("notes", c, shelf{tools: marked("same", "everybody"), ttl: 3_600_000})
			s.changes("notes", c, 1)
		}
		held := s.read(1, "alice")[0].list.Tools[0].Held
		for _, c := range both {
			s.wantReply(s.submitFor(c, `{"tool":"same"}`), domain.StatusRefused, domain.CodeToolQuarantined, domain.RanNo)
		}
		for context, code := range map[string]domain.Code{"": domain.CodeUnknownTool, "nobody": domain.CodeUnknownTool, "alice": ""} {
			if reply := s.approve("same", context, held.Now); reply.Code != code || reply.Done != (code == "") {
				s.t.Errorf("approve for %q: %s", context, reply.Encode())
			}
		}
		s.wantCall("alice", "same", schemaFor("everybody"))
		s.wantReply(s.submitFor("bob", `{"tool":"same"}`), domain.StatusRefused, domain.CodeToolQuarantined, domain.RanNo)
	})
}

// What is sent again goes out in the context that it was submitted in.
func TestACallThatIsSentAgainKeepsItsContext(t *testing.T) {
	c := listConfig(listeningRules(), both, "notes")
	c.Peers[0].Resends = 1
	inLists(t, c, twoContexts(3_600_000, domain.ScopePrivate), func(s *listSim) {
		at := s.up("notes")
		s.peers.mu.Lock()
		delete(s.peers.up, "notes") // its pipe is closed, and nobody has noticed
		s.peers.mu.Unlock()
		got := s.submitFor("bob", `{"tool":"same","call_id":"a"}`)
		s.sent(0)
		s.tell(domain.PeerExited{At: at, Status: -1, Signal: "killed", Cause: "exited"}, nil, nil)
		s.pass(time.Second)
		again := s.sent(1)
		if again.Context != "bob" || string(again.body.OutputSchema) != schemaFor("bob") {
			s.t.Errorf("sent again for %q with schema %s", again.Context, again.body.OutputSchema)
		}
		s.finish(again, `{}`)
		s.wantReply(got, domain.StatusComplete, "", domain.RanYes)
	})
}

// Over random changes, failures, scopes and restarts, through the loop: a tool that
// was private to one context is never read or called in the other.
func TestTwoContextsAtRandomNeverSeeEachOther(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			c := listConfig(listeningRules(), both, "notes")
			inLists(t, c, twoContexts(1000, domain.ScopePrivate), func(s *listSim) {
				w := contextWalk{listSim: s, rnd: rnd, public: map[string]bool{}}
				for n := range 200 {
					w.step(n, c)
				}
				if w.shared == 0 || w.own < 30 {
					s.t.Errorf("%d tools were seen by their own context, %d by another", w.own, w.shared)
				}
			})
		})
	}
}

// contextWalk remembers which tools were ever listed publicly.
type contextWalk struct {
	*listSim
	rnd         *rand.Rand
	public      map[string]bool
	own, shared int
}

func (w *contextWalk) step(n int, c domain.Config) {
	context := both[w.rnd.IntN(2)]
	switch k := w.rnd.IntN(100); {
	case k < 30: // what it lists changes, and nobody says so
		on := shelf{tools: marked(fmt.Sprintf("%s-%d", context, n), context), ttl: int64(w.rnd.IntN(5) * 1000), fails: w.rnd.IntN(6) == 0,
			after: time.Duration(w.rnd.IntN(3)) * 100 * time.Millisecond}
		if w.rnd.IntN(3) > 0 {
			on.scope, w.public[fmt.Sprintf("%s-%d", context, n)] = domain.ScopePublic, true
		}
		w.listers.putFor("notes", context, on)
	case k < 40 && w.open("notes", context) != 0:
		w.changes("notes", context, 1+w.rnd.IntN(3))
	case k < 43 && w.open("notes", context) != 0:
		w.ends("notes", context, domain.EndedAnswered)
	case k < 46 && w.up("notes").Incarnation > 0:
		w.exit("notes")
	case k < 47:
		w.again(c)
	case k < 75:
		w.look(context)
	default:
		w.pass(time.Duration(w.rnd.IntN(1500)) * time.Millisecond)
	}
}

// look reads the tools of a context and calls each of them.
func (w *contextWalk) look(context string) {
	r := w.read(1, context)[0]
	noErr(w.t, r.err)
	for _, e := range r.list.Tools {
		if strings.Contains(string(e.Definition), `"for `+context+`"`) {
			w.own++
		} else if w.shared++; !w.public[e.Local] {
			w.t.Errorf("%s sees %s", context, e.Definition)
		}
		sent := len(w.calls())
		got := w.submitFor(context, fmt.Sprintf(`{"tool":%q}`, e.Canonical))
		if len(w.calls()) > sent {
			if x := w.calls()[sent]; x.Context != context || x.Tool != e.Local {
				w.t.Errorf("a call of %s for %s was sent as %s for %s", e.Local, context, x.Tool, x.Context)
			}
			w.finish(w.calls()[sent], `{}`)
		}
		w.reply(got)
	}
}
