package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// sim is an engine on a real log with peers that keep time as the real ones do, all
// of it in a bubble of testing/synctest: each request ends in one answer, one
// failure or one deadline, and a process that was started ends once.
type sim struct {
	*service
	peers *simPeers
	begun time.Time
}

type simPeers struct {
	fakePeers
	tell func(data domain.Data, evidence, payload []byte)

	mu      sync.Mutex
	up      map[string]domain.At
	broken  map[string]bool // cannot be started
	mute    map[string]bool // runs, and says nothing
	schema  string          // outputSchema of every tool
	waiting map[int64]*exchange
	calls   []*exchange // every tools/call, in order
	stops   []domain.Stop
	withdew []domain.Withdraw
}

type exchange struct {
	domain.Send
	body  domain.Body
	at    time.Time
	timer *time.Timer
}

// inSim runs a test in a bubble, with one peer that the test may configure. When
// it is over the log is verified and replayed.
func inSim(t *testing.T, change func(*domain.PeerConfig), test func(s *sim), engine ...func(*EngineConfig)) {
	t.Helper()
	path := newLogFile(t)
	synctest.Test(t, func(t *testing.T) {
		s := startSim(t, openDisk(t, path), change, engine...)
		test(s)
		s.end()
		audit(t, s.disk)
	})
}

func startSim(t *testing.T, disk diskLog, change func(*domain.PeerConfig), engine ...func(*EngineConfig)) *sim {
	t.Helper()
	config := testConfig("notes")
	if change != nil {
		change(&config.Peers[0])
	}
	p := &simPeers{fakePeers: fakePeers{t: t, log: disk, read: disk.Log.Head().Size}, up: map[string]domain.At{},
		broken: map[string]bool{}, mute: map[string]bool{}, waiting: map[int64]*exchange{}}
	p.answer = func(domain.Effect, []byte) {}
	s := &sim{service: &service{rig: &rig{t: t, log: disk}, disk: disk}, peers: p, begun: time.Now()}
	cfg := EngineConfig{Log: disk.Log, Config: config, Digest: simDigest, Version: "test", Logger: quietLogger(),
		NewPeers: func(report func(domain.Data, []byte, []byte)) (Peers, error) {
			p.tell, s.tell = report, report
			return p, nil
		}}
	for _, f := range engine {
		f(&cfg)
	}
	e, err := StartEngine(context.Background(), cfg)
	noErr(t, err)
	s.engine, s.loop = e, e.Loop
	t.Cleanup(s.end) // also where the test has failed: a bubble must be left empty
	synctest.Wait()
	return s
}

// end stops the service, if the test has not.
func (s *sim) end() {
	select {
	case <-s.engine.Done():
	default:
		s.quit()
	}
}

func simDigest(b []byte) domain.Payload {
	sum := sha256.Sum256(b)
	return domain.Payload{Size: int64(len(b)), HMAC: hex.EncodeToString(sum[:])}
}

// Do implements Actor.
func (p *simPeers) Do(e domain.Effect, body *domain.Body) {
	p.check(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch x := e.(type) {
	case domain.Launch:
		time.AfterFunc(time.Duration(x.Delay)*time.Millisecond, func() { p.spawn(x.At) })
	case domain.Send:
		p.send(x, body)
	case domain.Withdraw:
		p.withdew = append(p.withdew, x)
		p.end(x.RequestID)
	case domain.Stop:
		p.stops = append(p.stops, x)
		if p.up[x.Peer] == x.At {
			p.gone(x.At, "stopped")
		}
	}
}

func (p *simPeers) spawn(at domain.At) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken[at.Peer] {
		p.tell(domain.SpawnFailed{At: at, Code: domain.CodeSpawnFailed, Reason: "it is broken"}, nil, nil)
		return
	}
	p.up[at.Peer] = at
	p.tell(domain.PeerSpawned{At: at, PID: 1}, nil, nil)
}

func (p *simPeers) send(s domain.Send, body *domain.Body) {
	x := &exchange{Send: s, at: time.Now()}
	if s.Method == domain.MethodCall {
		x.body = *body
		p.calls = append(p.calls, x)
	}
	if p.up[s.Peer] != s.At {
		p.tell(domain.ExchangeFailed{At: s.At, RequestID: s.RequestID, Call: s.Call, Written: "no", Code: domain.CodeTransportLost}, nil, nil)
		return
	}
	p.waiting[s.RequestID] = x
	x.timer = time.AfterFunc(time.Duration(s.Deadline)*time.Millisecond, func() { p.expire(s.RequestID) })
	if !p.mute[s.Peer] {
		p.serve(s)
	}
}

// serve answers everything but calls.
func (p *simPeers) serve(s domain.Send) {
	switch {
	case s.Method == domain.MethodList:
		p.end(s.RequestID)
		f := listed(s.RequestID, s.Peer)
		if p.schema != "" {
			f = []byte(strings.Replace(string(f), `"inputSchema"`, `"outputSchema":`+p.schema+`,"inputSchema"`, 1))
		}
		p.tell(domain.CatalogListed{At: s.At, RequestID: s.RequestID, Frame: domain.RefTo(f)}, f, nil)
	case s.Method == domain.MethodDiscover && s.Era == domain.EraUnknown:
		p.end(s.RequestID)
		f := discovered(s.RequestID)
		p.tell(domain.ProbeAnswered{At: s.At, RequestID: s.RequestID, Frame: domain.RefTo(f)}, f, nil)
	case s.Method == domain.MethodDiscover:
		p.end(s.RequestID)
		p.tell(domain.HealthAnswered{At: s.At, RequestID: s.RequestID}, nil, nil)
	}
}

// end takes a request off the table; false if nobody waits for it any more.
func (p *simPeers) end(id int64) (*exchange, bool) {
	x, ok := p.waiting[id]
	if ok {
		x.timer.Stop()
		delete(p.waiting, id)
	}
	return x, ok
}

func (p *simPeers) expire(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x, ok := p.end(id); ok {
		p.tell(domain.DeadlinePassed{At: x.At, RequestID: id, Call: x.Call, Written: "maybe", Silent: p.mute[x.Peer]}, nil, nil)
	}
}

// gone ends a process: what waits for it fails, in the order of the requests, and
// then its end is told.
func (p *simPeers) gone(at domain.At, cause string) {
	var ids []int64
	for id, x := range p.waiting {
		if x.At == at {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		x, _ := p.end(id)
		p.tell(domain.ExchangeFailed{At: at, RequestID: id, Call: x.Call, Written: "maybe", Code: domain.CodeTransportLost}, nil, nil)
	}
	delete(p.up, at.Peer)
	p.tell(domain.PeerExited{At: at, Status: 1, Cause: cause}, nil, nil)
}

// exit ends the process of a peer.
func (s *sim) exit(peer string) {
	s.peers.mu.Lock()
	s.peers.gone(s.peers.up[peer], "exited")
	s.peers.mu.Unlock()
	synctest.Wait()
}

// set changes how a peer behaves from here on.
func (s *sim) set(what map[string]bool, peer string, value bool) {
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	what[peer] = value
}

// sent returns the n-th tools/call, counted from 0.
func (s *sim) sent(n int) *exchange {
	s.t.Helper()
	synctest.Wait()
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	if len(s.peers.calls) != n+1 {
		s.t.Fatalf("%d calls were sent, want %d", len(s.peers.calls), n+1)
	}
	return s.peers.calls[n]
}

// finish answers a call; false where nobody waits for the answer any more. Asks is
// what an input_required asks for.
func (s *sim) finish(x *exchange, result string, asks ...string) bool {
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	_, waits := s.peers.end(x.RequestID)
	s.tellAnswer(x, result, asks)
	return waits
}

func (s *sim) tellAnswer(x *exchange, result string, asks []string) {
	f := domain.Facts{Kind: domain.FactResult, ResultType: "complete", Asks: asks}
	host, id, _ := strings.Cut(x.Call, "/")
	d := domain.CallAnswered{CallID: domain.CallID{Host: host, ID: id}, At: x.At, RequestID: x.RequestID, Result: simDigest([]byte(result))}
	if strings.Contains(result, "input_required") {
		f.ResultType = "input_required"
		if state := requestState([]byte(result)); state != nil {
			p := simDigest(domain.StateText(jsontext.Value(state)))
			d.RequestState = &p
		}
	}
	d.Facts = f
	s.tell(d, nil, []byte(result))
}

// events returns what the log holds, once everything stands still.
func (s *sim) events() []domain.Event {
	synctest.Wait()
	return readAll(s.t, s.disk, 0)
}

// pass lets time pass.
func (s *sim) pass(d time.Duration) {
	synctest.Wait()
	<-time.After(d)
	synctest.Wait()
}

// since is how long after another an event was recorded.
func since(later, earlier domain.Event) time.Duration {
	return time.Duration(later.Mono - earlier.Mono)
}

// only returns the one event of a type.
func only[T domain.Data](s *sim) (domain.Event, T) {
	s.t.Helper()
	var found []domain.Event
	for _, e := range s.events() {
		if _, ok := e.Data.(T); ok {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		var want T
		s.t.Fatalf("%d events of type %s, want 1: %v", len(found), want.Kind(), kinds(s.events()))
	}
	return found[0], found[0].Data.(T)
}

// wantStory checks the types of a call's events.
func (s *sim) wantStory(key string, want ...string) {
	s.t.Helper()
	var got []string
	for _, e := range s.events() {
		if e.Call() == key {
			got = append(got, e.Data.Kind())
		}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("the story of %s is\n%s, want\n%s", key, strings.Join(got, " "), strings.Join(want, " "))
	}
}

// wantOutcome checks that the log alone says the same of a call as a reply does.
func (s *sim) wantOutcome(host string, reply Reply) {
	s.t.Helper()
	got, ok, err := Outcome(context.Background(), s.disk.Reader, domain.CallID{Host: host, ID: reply.CallID})
	noErr(s.t, err)
	reply.Result, reply.Error = nil, nil
	if want := string(reply.Encode()); !ok || string(got.Encode()) != want {
		s.t.Errorf("the log says %s, the reply was %s", got.Encode(), want)
	}
}
