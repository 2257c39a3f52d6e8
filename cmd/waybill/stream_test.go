package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/bus/stream"
	"waybill/store"
)

// outside is a world whose NATS server is not its own, and can be stopped and
// started again where it was.
type outside struct {
	*world
	log    string
	store  string
	listen string
	server *bus.Server
}

// newOutside has one peer, fast, with a tool echo. more are keys of nats.
func newOutside(t *testing.T, more string) *outside {
	t.Helper()
	o := &outside{world: newWorld(t, ""), store: t.TempDir(), listen: "127.0.0.1:0"}
	o.write("listen: \"127.0.0.1:0\"")
	o.ready()
	r, err := store.OpenReader(o.world.log())
	if err != nil {
		t.Fatal(err)
	}
	o.log = r.ID()
	r.Close()
	o.up()
	o.listen = strings.TrimPrefix(o.server.ClientURL(), "nats://")
	o.write(fmt.Sprintf("url: %q%s", o.server.ClientURL(), more))
	t.Cleanup(o.down)
	return o
}

func (o *outside) write(nats string) {
	o.t.Helper()
	self, err := os.Executable()
	if err != nil {
		o.t.Fatal(err)
	}
	yaml := fmt.Sprintf("nats: {%s}\npeers:\n  fast:\n    command: %q\n    args: [fast-peer]\n", nats, self)
	if err := os.WriteFile(o.file, []byte(yaml), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

func (o *outside) up() {
	o.t.Helper()
	creds, err := bus.LoadCredentials(filepath.Join(o.dir, ".waybill", "nats"))
	if err == nil {
		o.server, err = bus.StartServer(bus.ServerConfig{Listen: o.listen, StoreDir: o.store, Credentials: creds, Prefix: prefix, LogID: o.log,
			Logger: newApp(o.t.Context(), &syncBuffer{}, &syncBuffer{}, "").logger})
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *outside) down() { o.server.Close() }

// start is the whole service in this process, so that it can be called while no
// server carries a call.
func (o *outside) start() *server {
	o.t.Helper()
	a := newApp(o.t.Context(), &syncBuffer{}, &syncBuffer{}, o.file)
	f, err := config.Load(o.file)
	if err != nil {
		o.t.Fatal(err)
	}
	n, err := a.openNode(f)
	if err != nil {
		o.t.Fatal(err)
	}
	s := newServer(n)
	if err := s.start(); err != nil {
		o.t.Fatal(err)
	}
	if err := s.engine.WaitSettled(a.ctx); err != nil {
		o.t.Fatal(err)
	}
	return s
}

// js speaks to the server as the service does.
func (w *world) js(url string) jetstream.JetStream {
	w.t.Helper()
	creds, err := bus.LoadCredentials(filepath.Join(w.dir, ".waybill", "nats"))
	if err != nil {
		w.t.Fatal(err)
	}
	nc, err := bus.Connect(creds.Service(), bus.Target{URL: url})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	return js
}

// health is what the status verb of a running service says.
func (w *world) health() (r statusReply) {
	w.t.Helper()
	a := newApp(w.t.Context(), &syncBuffer{}, &syncBuffer{}, w.file)
	f, err := config.Load(w.file)
	if err != nil {
		w.t.Fatal(err)
	}
	svc, err := a.running(f, localHost)
	if err != nil || svc == nil {
		w.t.Fatalf("no service: %v", err)
	}
	defer svc.client.Close()
	if err := svc.ask(a.ctx, "status", nil, &r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// wantSame exports the stream and compares it with the log, byte for byte.
func (w *world) wantSame(events int64) {
	w.t.Helper()
	copied := strings.SplitAfter(w.must(exitDone, "export", "--stream"), "\n")
	r, err := store.OpenReader(w.log())
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	records, err := r.Read(w.t.Context(), 0, int(events))
	if err != nil || int64(len(records)) != events || int64(len(copied)) < events {
		w.t.Fatalf("%d events in the log, %d lines of the stream, want %d: %v", len(records), len(copied), events, err)
	}
	for i, rec := range records {
		if copied[i] != string(rec.Bytes)+"\n" {
			w.t.Fatalf("line %d of the stream is %q, the log has %q", i+1, copied[i], rec.Bytes)
		}
	}
}

// load calls from many callers until it is stopped, and counts by code.
type load struct {
	wait    sync.WaitGroup
	ended   atomic.Bool
	done    atomic.Int64
	refused atomic.Int64
	wrong   atomic.Pointer[string]
}

func callAll(s *server, callers int) *load {
	l := &load{}
	for range callers {
		l.wait.Go(func() {
			for !l.ended.Load() {
				r := submitted(s)
				switch {
				case r.Status == domain.StatusComplete:
					l.done.Add(1)
				case r.Code == domain.CodeAuditLag && r.Ran == domain.RanNo && len(r.Seqs) == 0:
					l.refused.Add(1)
				default:
					text := string(r.Encode())
					l.wrong.Store(&text)
				}
			}
		})
	}
	return l
}

func submitted(s *server) harness.Reply {
	got := make(chan harness.Reply, 1)
	s.engine.Loop.Submit(localHost, benchRequest, func(r harness.Reply) { got <- r })
	return <-got
}

func (l *load) stop(t *testing.T) {
	t.Helper()
	l.ended.Store(true)
	l.wait.Wait()
	if wrong := l.wrong.Load(); wrong != nil {
		t.Errorf("a call ended otherwise: %s", *wrong)
	}
}

// The server is away while thousands of events are recorded: calls go on, nothing
// is lost or out of order, and the copy catches up faster than it fell behind.
func TestNATSStoppedUnderLoad(t *testing.T) {
	o := newOutside(t, "")
	s := o.start()
	l := callAll(s, 16)
	eventually(t, "events are published", func() bool { return s.publisher.Position() > 500 })
	o.down()
	eventually(t, "the outage is noticed", func() bool { return s.publisher.Err() != nil })
	at := s.engine.Feed.Head() + 3000
	eventually(t, "calls go on without NATS", func() bool { return s.engine.Feed.Head() > at })
	h := s.publisher.Health(s.engine.Feed.Head())
	if h.State != stream.StateBehind || h.Lag < 3000 || h.Error == "" {
		t.Errorf("meanwhile: %+v", h)
	}
	o.up()
	eventually(t, "the copy catches up under load", func() bool { return s.publisher.Lag(s.engine.Feed.Head()) < h.Lag/2 })
	l.stop(t)
	if l.done.Load() < 500 || l.refused.Load() != 0 {
		t.Errorf("%d calls done, %d refused", l.done.Load(), l.refused.Load())
	}
	head := s.engine.Feed.Head()
	ctx, cancel := context.WithTimeout(t.Context(), busPatience)
	defer cancel()
	if err := s.publisher.CaughtUp(ctx, head); err != nil {
		t.Fatal(err)
	}
	if h := s.publisher.Health(head); h.State != stream.StateOK || h.Lag != 0 || h.Error != "" {
		t.Errorf("afterwards: %+v", h)
	}
	o.wantSame(head)
	eventually(t, "the heads are published", func() bool { return s.checkpoints.Position() >= head })
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	o.wantSame(s.engine.Feed.Head()) // of the outside server, without the service
	o.wantLastHead(o.server.ClientURL())
	o.audit()
}

// wantLastHead compares the newest checkpoint in its stream with the one that is
// kept beside the log.
func (w *world) wantLastHead(url string) {
	w.t.Helper()
	kept, err := os.ReadFile(filepath.Join(w.dir, ".waybill", "checkpoint"))
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := store.OpenReader(w.log())
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	s, err := w.js(url).Stream(w.t.Context(), "WAYBILL_"+r.ID()+"_CHECKPOINTS")
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(w.t.Context(), "waybill.v1.checkpoint."+r.ID())
	if err != nil || !bytes.Equal(m.Data, kept) {
		w.t.Errorf("the newest published checkpoint is %v, kept is %q: %v", m, kept, err)
	}
}

// Beyond nats.max_lag calls are refused before anything of them is recorded, and
// taken again when the copy has caught up.
func TestCallsAreRefusedWhileTheCopyIsTooFarBehind(t *testing.T) {
	o := newOutside(t, ", max_lag: 1000")
	s := o.start()
	l := callAll(s, 8)
	o.down()
	eventually(t, "calls are refused", func() bool { return l.refused.Load() > 100 })
	l.stop(t)
	head := s.engine.Feed.Head()
	if lag := s.publisher.Lag(head); lag < 1000 || lag > 1200 {
		t.Errorf("refused at a lag of %d", lag)
	}
	r := submitted(s)
	if r.Code != domain.CodeAuditLag || r.Status != domain.StatusRefused || !strings.Contains(r.Reason, "nats.max_lag") {
		t.Errorf("%s", r.Encode())
	}
	if v, err := s.status(t.Context(), nil); err != nil || v.(statusReply).Refusing != domain.CodeAuditLag {
		t.Errorf("status %+v, %v", v, err)
	}
	o.up()
	eventually(t, "calls are taken again", func() bool { return submitted(s).Status == domain.StatusComplete })
	refused := l.refused.Load() + 1
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	var shed int64
	for line := range strings.Lines(o.must(exitDone, "events", "--json", "--type", "intake.shed")) {
		e := decode[struct{ Data domain.IntakeShed }](t, line)
		if e.Data.Code != domain.CodeAuditLag {
			t.Errorf("shed for another reason: %s", line)
		}
		shed += e.Data.Count
	}
	if shed < refused {
		t.Errorf("%d refused, %d on record", refused, shed)
	}
	o.audit()
}

// A copy that holds another message at a sequence stops the publishing of this
// life and of the next: each records it once and says so, and calls go on.
func TestAForkIsRecordedOnceInEachLife(t *testing.T) {
	o := newOutside(t, "")
	s := o.serve()
	o.must(exitDone, "call", "--json", "echo", "{}")
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Fatalf("serve ended with %d", code)
	}
	if _, err := o.js(o.server.ClientURL()).Publish(t.Context(), "waybill.v1.events."+o.log+".call.routed.-", []byte("forged")); err != nil {
		t.Fatal(err)
	}
	for life := 1; life <= 2; life++ {
		s := o.serve()
		eventually(t, "the fork is recorded", func() bool { return o.forks() == life })
		o.must(exitDone, "call", "--json", "echo", "{}")
		h := o.health()
		if text := o.must(exitDone, "status"); !strings.Contains(text, "stream: forked, ") || !strings.Contains(text, "have forked at ") {
			t.Errorf("status says\n%s", text)
		}
		if h.Publisher.State != stream.StateForked || h.Publisher.Error == "" || h.Publisher.Lag == 0 {
			t.Errorf("health %+v", h.Publisher)
		}
		if code := s.stop(syscall.SIGTERM); code != exitInternal {
			t.Errorf("serve ended with %d", code)
		}
		if o.forks() != life {
			t.Errorf("%d forks on record in life %d", o.forks(), life)
		}
	}
	doc := decode[struct{ Data domain.StreamForked }](t, strings.SplitAfter(o.must(exitDone, "events", "--json", "--type", "stream"), "\n")[0]).Data
	lines := strings.Split(o.must(exitDone, "export", "--stream"), "\n")
	if doc.Stream != "WAYBILL_"+o.log || doc.Log == doc.Copy || len(doc.Copy) != 64 || lines[doc.Seq-1] != "forged" {
		t.Errorf("%+v", doc)
	}
	if h := strings.Count(o.must(exitDone, "events", "--json"), doc.Copy); h != 2 {
		t.Errorf("the digest is in %d events", h)
	}
	o.audit()
}

func (o *outside) forks() int {
	return strings.Count(o.must(exitDone, "events", "--type", "stream.forked"), "\n")
}

// A stream that is full takes no more; calls are refused over NATS then, with the
// reason, and the service says how it is.
func TestAFullStreamRefusesCallsInTheEnd(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	b, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte(`"127.0.0.1:0"`), []byte(`"127.0.0.1:0", max_bytes: 1MiB, max_lag: 200`), 1)
	if err := os.WriteFile(w.file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.serve()
	a := newApp(t.Context(), &syncBuffer{}, &syncBuffer{}, w.file)
	f, err := config.Load(w.file)
	if err != nil {
		t.Fatal(err)
	}
	svc, err := a.running(f, localHost)
	if err != nil || svc == nil {
		t.Fatal(err)
	}
	defer svc.client.Close()
	code := ""
	for n := 0; n < 5000 && code == ""; n++ {
		if _, code, err = svc.client.Request(t.Context(), "call", []byte(`{"tool":"echo","arguments":{}}`)); err != nil {
			t.Fatal(err)
		}
	}
	if code != "audit_lag" {
		t.Fatalf("the last call ended with %q", code)
	}
	if doc := decode[reply](t, w.must(exitRefused, "call", "--json", "echo", "{}")); doc.Code == nil || *doc.Code != "audit_lag" || doc.Ran != "no" {
		t.Errorf("%+v", doc)
	}
	// Between two tries, a smaller event may still find room.
	eventually(t, "the service says that the stream is full", func() bool {
		h := w.health()
		return h.Refusing == domain.CodeAuditLag && h.Publisher.State == stream.StateBehind && strings.Contains(h.Publisher.Error, "maximum bytes") && h.Publisher.Lag > 200
	})
	eventually(t, "status says so", func() bool {
		text := w.must(exitDone, "status")
		return strings.Contains(text, "stream: behind, ") && strings.Contains(text, "calls are refused: audit_lag\n")
	})
	s.stop(syscall.SIGKILL) // another stop would wait for the copy as long as it may
}

// A stream that was made otherwise is not published to, and status names what is
// other.
func TestOtherSettingsStopPublishingAndAreNamed(t *testing.T) {
	o := newOutside(t, "")
	s := o.serve()
	h := o.health()
	if h.Publisher.State == stream.StateStopped || h.Checkpoints.Signed < h.Checkpoints.Position {
		t.Errorf("%+v", h)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Fatalf("serve ended with %d", code)
	}
	o.write(fmt.Sprintf("url: %q, max_age: 48h", o.server.ClientURL()))
	s = o.serve()
	eventually(t, "publishing has stopped", func() bool { return o.health().Publisher.State == stream.StateStopped })
	if h = o.health(); !strings.Contains(h.Publisher.Error, "max_age is 0s and should be 48h0m0s") || h.Checkpoints.Error != "" {
		t.Errorf("%+v", h)
	}
	if s.stop(syscall.SIGTERM) == exitDone {
		t.Error("the stop says nothing of the copy")
	}
}

func TestExport(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	out := filepath.Join(w.dir, "copy.jsonl")
	w.must(exitConfig, "export")
	w.must(exitConfig, "export", "--stream", "--json")
	w.must(exitNotRunning, "export", "--stream", "-o", out)
	s := w.serve()
	w.must(exitDone, "call", "--json", "echo", "{}")
	h := w.health()
	eventually(t, "published", func() bool { return w.health().Publisher.Position >= h.Head })
	w.wantSame(h.Head)
	doc := decode[struct {
		Stream, File          string
		First, Last, Messages int64
	}](t, w.must(exitDone, "export", "--stream", "-o", out, "--json"))
	b, err := os.ReadFile(out)
	if err != nil || doc.File != out || doc.First != 1 || doc.Last < h.Head || doc.Messages != int64(bytes.Count(b, []byte("\n"))) || doc.Messages != doc.Last {
		t.Errorf("%+v, %v", doc, err)
	}
	var e struct{ ID string }
	if last := bytes.Split(bytes.TrimSpace(b), []byte("\n")); json.Unmarshal(last[len(last)-1], &e) != nil || e.ID != fmt.Sprint(doc.Last) {
		t.Errorf("the last line is event %s", e.ID)
	}
	w.must(exitConfig, "export", "--stream", "-o", out) // it is there
	if text := w.must(exitDone, "export", "--stream", "-o", out+"2"); !strings.Contains(text, "wrote "+out+"2: stream WAYBILL_") {
		t.Errorf("said %q", text)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	if _, err := os.Stat(out + "3"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What was half written is not left to be taken for a copy.
func TestAnExportThatFailsLeavesNoFile(t *testing.T) {
	o := newOutside(t, "")
	out := filepath.Join(o.dir, "copy.jsonl")
	if code, _, errs := o.run("export", "--stream", "-o", out); code != exitInternal || !strings.Contains(errs, "there is no such stream") {
		t.Errorf("exit %d: %s", code, errs)
	}
	js := o.js(o.server.ClientURL())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "WAYBILL_" + o.log, Subjects: []string{"waybill.v1.events." + o.log + ".>"}}); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"one", "two\nlines"} {
		if _, err := js.Publish(t.Context(), "waybill.v1.events."+o.log+".call.routed.-", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errs := o.run("export", "--stream", "-o", out); code != exitInternal || !strings.Contains(errs, "message 2 of the stream is not one line") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left %v", err)
	}
}

func TestACopyThatNobodyCanLookAtIsNotCalledZeroEventsBehind(t *testing.T) {
	for want, got := range map[string]string{
		", 0 events behind": behind(stream.StateOK, 0),
		", 7 events behind": behind(stream.StateBehind, 7),
		"":                  behind(stream.StateBehind, 0) + behind(stream.StateStopped, 0) + behind(stream.StateForked, 0),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
