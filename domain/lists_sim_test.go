package domain

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A sim is a keeper whose orders are carried out, in virtual time, by servers that
// answer late, change their lists, end subscriptions and die. Every step is looked
// at by watch.
type sim struct {
	*keeper
	r       *rand.Rand
	agenda  []appointment
	made    int // appointments
	servers map[string]*server
	open    map[int64]Send // requests that have no outcome yet
	serial  int            // of lists that were read
	watch   func([]Event)
}

// An appointment is what is to happen at a time. One under a key takes the place of
// the one before it.
type appointment struct {
	at, n int64
	key   string
	do    func()
}

func newSim(t testing.TB, seed uint64) *sim {
	return &sim{keeper: newKeeper(t), r: rand.New(rand.NewPCG(seed, 9)), servers: map[string]*server{}, open: map[int64]Send{}, watch: func([]Event) {}}
}

// server is what a peer's processes have in common: what they list, and how well.
type server struct {
	sim     *sim
	name    string
	legacy  bool
	quiet   bool // it advertises no notices
	deaf    int  // subscriptions that it will not acknowledge
	unheard int  // calls that it will not know the tool of
	fails   int  // lists that it will not give
	mute    int  // lists that it will not answer
	up      At
	read    int64 // when what is written to it next reaches it
	free    int64 // when what it writes next can be read
	lists   map[string]*offer
	subs    map[int64]string // contexts of the open ones
}

// offer is what a server lists for one context.
type offer struct {
	version int
	scope   string
	ttl     int64
	pages   int
	tools   []string // more names, by which peers meet
}

func (s *sim) server(name string, contexts ...string) *server {
	x := &server{sim: s, name: name, lists: map[string]*offer{}, subs: map[int64]string{}}
	for _, c := range contexts {
		x.lists[c] = &offer{version: 1, scope: ScopePrivate, ttl: 3_600_000, pages: 1}
	}
	s.servers[name] = x
	return x
}

// at makes an appointment, after a time in milliseconds.
func (s *sim) after(delay int64, key string, do func()) {
	s.drop(key)
	s.made++
	s.agenda = append(s.agenda, appointment{s.now + delay*ms, int64(s.made), key, do})
}

func (s *sim) drop(key string) {
	if key != "" {
		s.agenda = slices.DeleteFunc(s.agenda, func(a appointment) bool { return a.key == key })
	}
}

// run lets time pass, and what is due in it happen.
func (s *sim) run(n int64) {
	end := s.now + n*ms
	for len(s.agenda) > 0 {
		i := 0
		for j, a := range s.agenda {
			if c := cmp.Compare(a.at, s.agenda[i].at); c < 0 || c == 0 && a.n < s.agenda[i].n {
				i = j
			}
		}
		a := s.agenda[i]
		if a.at > end {
			break
		}
		s.agenda = slices.Delete(s.agenda, i, i+1)
		s.now = max(s.now, a.at)
		a.do()
	}
	s.now = end
}

// feed feeds one observation, and carries out what is ordered.
func (s *sim) feed(d Data, evidence ...string) []Event {
	s.t.Helper()
	from := len(s.log)
	out := s.see(d, evidence...)
	s.watch(s.log[from:])
	for _, e := range out {
		for _, effect := range Effects(e) {
			s.act(effect)
		}
	}
	return out
}

func (s *sim) begin(c Config) {
	for _, x := range s.servers { // order-free: each is alone
		x.die()
	}
	clear(s.open)
	s.agenda = nil
	s.feed(ServiceStarted{Version: "sim", Rules: RulesVersion})
	s.run(20)
	s.reload(c)
}

// reload puts a configuration in force. Whatever ran before it has ended.
func (s *sim) reload(c Config) {
	b, err := EncodeConfig(c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.feed(ConfigLoaded{Config: RefTo(b), Peers: len(c.Peers)}, string(b))
}

func (s *sim) act(effect Effect) {
	switch x := effect.(type) {
	case Launch:
		s.after(x.Delay+s.r.Int64N(5), "", func() { s.spawn(x.At) })
	case Send:
		s.open[x.RequestID] = x
		if x.Method == MethodList && x.Cursor == nil {
			s.drop(dueKey(x.At, x.Context, DueList))
		}
		s.after(x.Deadline, deadlineKey(x.RequestID), func() {
			if s.settles(x.RequestID) {
				s.feed(DeadlinePassed{At: x.At, RequestID: x.RequestID, Call: x.Call})
			}
		})
		if srv := s.servers[x.Peer]; srv != nil {
			srv.read = max(srv.read, s.now) + s.r.Int64N(10)*ms
			s.after((srv.read-s.now)/ms, "", func() { srv.receives(x) })
		}
	case Withdraw:
		s.settles(x.RequestID)
		if srv := s.servers[x.Peer]; srv != nil && srv.up == x.At {
			delete(srv.subs, x.RequestID)
		}
	case Due:
		s.after(x.After, dueKey(x.At, x.Context, x.What), func() { s.due(x) })
	case Stop:
		s.after(1, "", func() { s.crash(x.At) })
	}
}

func dueKey(at At, context, what string) string {
	return fmt.Sprint("due ", at, " ", contextKey(context), " ", what)
}

func deadlineKey(id int64) string { return fmt.Sprint("deadline ", id) }

func (s *sim) due(x Due) {
	if s.servers[x.Peer] == nil || s.servers[x.Peer].up != x.At {
		return
	}
	if x.What == DueList {
		s.feed(ListDue{At: x.At, Context: x.Context})
	} else {
		s.feed(SubscriptionDue{At: x.At, Context: x.Context})
	}
}

// settles ends the wait for a request; false where it has ended.
func (s *sim) settles(id int64) bool {
	if _, ok := s.open[id]; !ok {
		return false
	}
	delete(s.open, id)
	s.drop(deadlineKey(id))
	return true
}

func (s *sim) spawn(at At) {
	srv := s.servers[at.Peer]
	if p := s.s.Peer(at.Peer); srv == nil || p == nil || p.at() != at {
		return
	}
	srv.up, srv.free, srv.read = at, s.now, s.now
	s.feed(PeerSpawned{At: at, PID: 1})
}

// crash ends a process as the harness reports it: first what was under way, then
// the process.
func (s *sim) crash(at At) {
	srv := s.servers[at.Peer]
	if srv == nil || srv.up != at {
		return
	}
	srv.die()
	var lost []int64
	for id, x := range s.open { // order-free: sorted below
		if x.At == at {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	for _, id := range lost {
		x := s.open[id]
		s.settles(id)
		s.feed(ExchangeFailed{At: at, RequestID: id, Call: x.Call, Written: "maybe", Code: CodeTransportLost})
	}
	s.feed(PeerExited{At: at, Status: 1, Cause: "exited"})
}

func (x *server) die() {
	x.up = At{}
	clear(x.subs)
}

// says writes a message, which is read in the order in which it was written.
func (x *server) says(then func()) {
	at := x.up
	x.free = max(x.free, x.sim.now) + x.sim.r.Int64N(30)*ms
	x.sim.after((x.free-x.sim.now)/ms, "", func() {
		if x.up == at {
			then()
		}
	})
}

// receives is a request that reaches the process it was sent to.
func (x *server) receives(r Send) {
	if x.up != r.At {
		return
	}
	switch r.Method {
	case MethodDiscover, MethodInitialize:
		x.introduces(r)
	case MethodList:
		x.answersList(r)
	case MethodListen:
		x.listens(r)
	case MethodCall:
		f := Facts{Kind: FactResult, ResultType: "complete"}
		if x.unheard > 0 {
			x.unheard--
			f = Facts{Kind: FactError, ErrorCode: -32602}
		}
		host, id, _ := strings.Cut(r.Call, "/")
		x.says(func() {
			if x.sim.settles(r.RequestID) {
				x.sim.feed(CallAnswered{CallID: CallID{host, id}, At: r.At, RequestID: r.RequestID, Facts: f})
			}
		})
	}
}

func (x *server) introduces(r Send) {
	frame := map[bool]string{true: discoverQuiet, false: discoverNotices}[x.quiet]
	if x.legacy {
		frame = map[string]string{MethodDiscover: notFound, MethodInitialize: legacyResult}[r.Method]
	}
	frame = strings.ReplaceAll(frame, "$ID", fmt.Sprint(r.RequestID))
	x.says(func() {
		if x.sim.settles(r.RequestID) {
			x.sim.feed(ProbeAnswered{At: r.At, Frame: RefTo([]byte(frame))}, frame)
		}
	})
}

// answersList answers one page of the list as it is when the first is asked for.
func (x *server) answersList(r Send) {
	if x.mute > 0 {
		x.mute--
		return
	}
	frame := notFound
	if l := x.lists[contextKey(r.Context)]; x.fails > 0 {
		x.fails--
	} else if l != nil {
		frame = x.page(l, contextKey(r.Context), r.Cursor)
	}
	frame = strings.ReplaceAll(frame, "$ID", fmt.Sprint(r.RequestID))
	x.says(func() {
		if x.sim.settles(r.RequestID) {
			x.sim.feed(CatalogListed{At: r.At, Context: r.Context, RequestID: r.RequestID, Frame: RefTo([]byte(frame))}, frame)
		}
	})
}

// page is one page of a list. Each tool says of which peer and context, in which
// scope and version it was listed: "p.alice.private.v3.n8.0"; so does the
// definition of one that has another name.
func (x *server) page(l *offer, context string, cursor *string) string {
	n, version := 0, l.version
	if cursor == nil {
		x.sim.serial++
	} else {
		a, b, _ := strings.Cut(*cursor, ":")
		n, _ = strconv.Atoi(a)
		version, _ = strconv.Atoi(b)
	}
	mark := fmt.Sprintf("%s.%s.%s.v%d.n%d", x.name, context, l.scope, version, x.sim.serial)
	defs := []string{tell(fmt.Sprint(mark, ".", n), mark)}
	if n == 0 {
		for _, name := range l.tools {
			defs = append(defs, tell(name, mark))
		}
	}
	more := cached(l.ttl, l.scope)
	if n < l.pages-1 {
		more = before(fmt.Sprint(n+1, ":", version), more)
	}
	return told(more, defs...)
}

func (x *server) listens(r Send) {
	if x.deaf > 0 {
		x.deaf--
		return
	}
	x.sim.after(x.sim.r.Int64N(60), "", func() { x.acknowledges(r) })
}

func (x *server) acknowledges(r Send) {
	if _, waits := x.sim.open[r.RequestID]; !waits || x.up != r.At {
		return
	}
	x.subs[r.RequestID] = contextKey(r.Context)
	frame := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d},"notifications":{"toolsListChanged":true}}}`, r.RequestID)
	x.says(func() {
		x.sim.drop(deadlineKey(r.RequestID)) // which is for the acknowledgement alone
		x.sim.feed(SubscriptionAcknowledged{At: r.At, Context: r.Context, RequestID: r.RequestID, Frame: RefTo([]byte(frame))}, frame)
	})
}

// changes makes a list another one, and says so to who listens.
func (x *server) changes(context string) {
	l := x.lists[context]
	l.version++
	if x.legacy && x.up != (At{}) {
		at := x.up
		x.says(func() { x.sim.feed(ListChanged{At: at, Count: 1}) })
	}
	for _, id := range x.listeners(context) {
		at := x.up
		x.says(func() { x.sim.feed(ListChanged{At: at, Context: contextWord(context), Subscription: id, Count: 1}) })
	}
}

func (x *server) listeners(context string) []int64 {
	var ids []int64
	for id, c := range x.subs { // order-free: sorted below
		if c == context {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// ends ends the subscriptions for a context.
func (x *server) ends(context, how string) {
	for _, id := range x.listeners(context) {
		delete(x.subs, id)
		at := x.up
		x.says(func() {
			if x.sim.settles(id) {
				x.sim.feed(SubscriptionEnded{At: at, Context: contextWord(context), RequestID: id, How: how})
			}
		})
	}
}

// contexts of a server, sorted.
func (x *server) contexts() []string {
	out := make([]string, 0, len(x.lists))
	for c := range x.lists { // order-free: sorted below
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}
