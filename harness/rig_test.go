package harness

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"waybill/domain"
	"waybill/store"
)

// anyLog is what the tests need of a log: the loop's part and the reader's.
type anyLog interface {
	Log
	Source
}

// diskLog is the real log with its readers.
type diskLog struct {
	*store.Log
	*store.Reader
}

func (d diskLog) ID() string   { return d.Log.ID() }
func (d diskLog) Close() error { return d.Log.Close() }

func (d diskLog) Read(ctx context.Context, after int64, most int) ([]store.Record, error) {
	return d.Reader.Read(ctx, after, most)
}

// newLogFile makes an empty log and returns its path.
func newLogFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	if err := store.Create(path, testLog, "waybill/local+0a1b2c3d+AAAA"); err != nil {
		t.Fatal(err)
	}
	return path
}

func openDisk(t testing.TB, path string) diskLog {
	t.Helper()
	l, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return diskLog{l, l.Reader()}
}

// bothLogs runs a test with the strict log in memory and with the real one.
func bothLogs(t *testing.T, test func(t *testing.T, log anyLog)) {
	t.Run("memory", func(t *testing.T) { test(t, newMemLog(t)) })
	t.Run("disk", func(t *testing.T) { test(t, openDisk(t, newLogFile(t))) })
}

// readAll decodes the events of a log after a seq.
func readAll(t testing.TB, src anyLog, after int64) []domain.Event {
	t.Helper()
	var out []domain.Event
	for {
		records, err := src.Read(context.Background(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			e, err := Decode(context.Background(), src, src.ID(), r)
			if err != nil {
				t.Fatal(err)
			}
			out, after = append(out, e), e.Seq
		}
		if len(records) == 0 {
			return out
		}
	}
}

// fakePeers is an actor that checks that each effect it is given is the next
// one that the committed log leads to, and then answers for the peers.
type fakePeers struct {
	t      testing.TB
	log    anyLog
	answer func(e domain.Effect, arguments []byte) // after the checks; by the loop's goroutine
	closed int

	mu    sync.Mutex
	read  int64           // events looked at
	due   []domain.Effect // of committed events, not yet done
	done  []domain.Effect
	quiet bool // no checks: for benchmarks
}

// Do implements Actor.
func (p *fakePeers) Do(e domain.Effect, body *domain.Body) {
	var arguments []byte
	if body != nil {
		arguments = body.Arguments
	}
	if !p.quiet {
		p.check(e)
	}
	p.answer(e, arguments)
}

func (p *fakePeers) check(e domain.Effect) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, event := range readAll(p.t, p.log, p.read) {
		p.read = event.Seq
		for _, due := range domain.Effects(event) {
			switch due.(type) {
			case domain.Answer, domain.Halt, domain.Wake, domain.Remind, domain.Due, domain.Erase, domain.Join: // the harness does these itself
			default:
				p.due = append(p.due, due)
			}
		}
	}
	if len(p.due) == 0 || !reflect.DeepEqual(p.due[0], e) {
		p.t.Errorf("effect %+v was released; the committed log has %d events and leads to %+v", e, p.read, p.due)
		return
	}
	p.due, p.done = p.due[1:], append(p.done, e)
}

// Close implements Peers.
func (p *fakePeers) Flush() {}

func (p *fakePeers) Close() error {
	p.closed++
	return nil
}

// sends returns the tool calls that were sent so far.
func (p *fakePeers) sends() (out []domain.Send) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.done {
		if s, ok := e.(domain.Send); ok && s.Method == "tools/call" {
			out = append(out, s)
		}
	}
	return out
}

func (p *fakePeers) effects() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.done)
}

// rig is a loop with its log and its peers.
type rig struct {
	t     testing.TB
	log   anyLog
	loop  *Loop
	tell  func(data domain.Data, evidence, payload []byte) // what peers report
	peers *fakePeers
	ended chan struct{}
	err   error // of Run, after ended
}

// quietLogger says nothing: the faults of tests are no news.
func quietLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func testDigest(b []byte) domain.Payload {
	return domain.Payload{Size: int64(len(b)), HMAC: strings.Repeat("0", 64)}
}

// peerConfig is a modern peer that is pinned.
func peerConfig(name string) domain.PeerConfig {
	return domain.PeerConfig{Name: name, Transport: "stdio", Command: name + "-server", Pin: "pinned", LegacyRevisions: []string{},
		ProbeTimeout: 10_000, LegacyProbeTimeout: 5_000, CallTimeout: 60_000, Capabilities: []byte("{}"), Repeatable: []string{}}
}

func testConfig(names ...string) domain.Config {
	c := domain.Config{Node: "local", Collision: domain.PrefixOnCollision, Separator: "/", Inflight: 1024}
	for _, n := range names {
		c.Peers = append(c.Peers, peerConfig(n))
	}
	return c
}

// newRig makes a loop on a log that has been folded; change may adjust it.
func newRig(t testing.TB, log anyLog, change ...func(*Config)) *rig {
	t.Helper()
	state := domain.NewState()
	if err := Fold(context.Background(), log, log.ID(), state); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Log: log, State: state, Clock: SystemClock(), Digest: testDigest, Logger: quietLogger()}
	for _, f := range change {
		f(&cfg)
	}
	r := &rig{t: t, log: log, loop: NewLoop(cfg), ended: make(chan struct{})}
	r.tell = r.loop.Report
	r.peers = &fakePeers{t: t, log: log, read: state.Head}
	r.peers.answer = r.echo
	r.loop.SetActor(r.peers)
	return r
}

// start runs the loop with the named peers, each with one tool of its name.
func (r *rig) start(names ...string) *rig {
	r.t.Helper()
	r.configure(testConfig(names...))
	r.run()
	r.settle()
	return r
}

func (r *rig) configure(c domain.Config) {
	b, err := domain.EncodeConfig(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.loop.Report(domain.ServiceStarted{Version: "test", Rules: domain.RulesVersion}, nil, nil)
	r.loop.Report(domain.ConfigLoaded{Config: domain.RefTo(b), Peers: len(c.Peers)}, b, nil)
}

func (r *rig) run() {
	go func() {
		defer close(r.ended)
		r.err = r.loop.Run()
	}()
}

func (r *rig) settle() {
	r.t.Helper()
	select {
	case <-r.loop.Settled():
	case <-time.After(30 * time.Second):
		r.t.Fatal("the peers did not settle")
	}
}

// stop ends the loop in good order.
func (r *rig) stop() {
	r.t.Helper()
	r.loop.Report(domain.ServiceStopped{Reason: "test"}, nil, nil)
	if err := r.wait(); err != nil {
		r.t.Errorf("the loop ended with %v", err)
	}
}

// wait returns the error of Run.
func (r *rig) wait() error {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		r.t.Fatal("the loop did not end")
	}
	return r.err
}

// probes answers everything but calls.
func (r *rig) probes(e domain.Effect) {
	switch x := e.(type) {
	case domain.Launch:
		r.tell(domain.PeerSpawned{At: x.At, PID: 1}, nil, nil)
	case domain.Send:
		switch x.Method {
		case domain.MethodDiscover:
			f := discovered(x.RequestID)
			r.tell(domain.ProbeAnswered{At: x.At, Frame: domain.RefTo(f)}, f, nil)
		case "tools/list":
			f := listed(x.RequestID, x.Peer)
			r.tell(domain.CatalogListed{At: x.At, RequestID: x.RequestID, Frame: domain.RefTo(f)}, f, nil)
		}
	}
}

// echo answers every call with its arguments.
func (r *rig) echo(e domain.Effect, arguments []byte) {
	if s, ok := e.(domain.Send); ok && s.Method == "tools/call" {
		r.answer(s, "complete", arguments)
		return
	}
	r.probes(e)
}

// silent answers everything but calls, which the test answers.
func (r *rig) silent(e domain.Effect, _ []byte) { r.probes(e) }

func (r *rig) answer(s domain.Send, resultType string, result []byte) {
	r.report(s, domain.Facts{Kind: domain.FactResult, ResultType: resultType}, result)
}

func (r *rig) report(s domain.Send, f domain.Facts, payload []byte) {
	host, id, _ := strings.Cut(s.Call, "/")
	r.tell(domain.CallAnswered{CallID: domain.CallID{Host: host, ID: id}, At: s.At, RequestID: s.RequestID,
		Result: testDigest(payload), Facts: f}, nil, payload)
}

// submit hands over a call and returns where its reply will be. A second reply
// fails the test.
func (r *rig) submit(host, request string) <-chan Reply {
	got := make(chan Reply, 2)
	r.loop.Submit(host, []byte(request), func(reply Reply) {
		if len(got) > 0 {
			r.t.Errorf("a second reply to %s: %s", request, reply.Encode())
		}
		got <- reply
	})
	return got
}

// reply waits for the reply of a call.
func (r *rig) reply(got <-chan Reply) Reply {
	r.t.Helper()
	select {
	case reply := <-got:
		return reply
	case <-time.After(time.Minute):
		r.t.Fatal("no reply")
	}
	return Reply{}
}

// wantReply checks how a call ended.
func (r *rig) wantReply(got <-chan Reply, status domain.Status, code domain.Code, ran domain.Ran) Reply {
	r.t.Helper()
	reply := r.reply(got)
	if reply.Status != status || reply.Code != code || reply.Ran != ran {
		r.t.Errorf("reply is %s, want %s, %s, ran %s", reply.Encode(), status, code, ran)
	}
	return reply
}

func discovered(id int64) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],`+
		`"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`, id)
}

func listed(id int64, tools ...string) []byte {
	var list []string
	for _, n := range tools {
		list = append(list, `{"name":"`+n+`","inputSchema":{"type":"object"}}`)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","tools":[%s],"ttlMs":0,"cacheScope":"private"}}`,
		id, strings.Join(list, ","))
}

// kinds returns the types of events.
func kinds(list []domain.Event) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Data.Kind())
	}
	return out
}

// find returns the data of one type among events.
func find[T domain.Data](list []domain.Event) (out []T) {
	for _, e := range list {
		if d, ok := e.Data.(T); ok {
			out = append(out, d)
		}
	}
	return out
}
