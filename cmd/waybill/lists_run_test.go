package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
	"waybill/events"
)

// listWorld is a world of listing peers.
type listWorld struct {
	*world
	rows []listRow
}

func newListWorld(t *testing.T, top string, rows ...listRow) listWorld {
	t.Helper()
	w := listWorld{newWorld(t, ""), rows}
	self := selfScript(t)
	yaml := "nats: {listen: \"127.0.0.1:0\"}\nmany_peers_reason: each is a row\n" + top + "\npeers:\n"
	for _, row := range rows {
		yaml += fmt.Sprintf("  %s:\n    command: %q\n    args: [listing-peer, %s, %q]\n    data_files: [%q]\n", row.peer, self, row.peer, w.record(row.peer), w.record(row.peer))
		for _, line := range row.more {
			yaml += "    " + line + "\n"
		}
	}
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ready()
	return w
}

// row is one peer in a test of its own.
func (w listWorld) row(t *testing.T, row listRow) *listRun {
	return &listRun{world: &world{t: t, dir: w.dir, file: w.file}, row: row, names: map[string]string{}}
}

// listRun is one peer of a listWorld.
type listRun struct {
	*world
	row   listRow
	names map[string]string // canonical, by local name
}

// Each of many peers lists in a way of its own. What can be used of a list is used,
// what cannot is left out by itself and on record, and nobody's tool is taken for
// another's.
func TestListsAsPeersWriteThem(t *testing.T) {
	t.Parallel()
	w := newListWorld(t, "", listRows()...)
	s := w.serve()
	for _, row := range w.rows {
		t.Run(row.name, func(t *testing.T) { w.row(t, row).check() })
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	for _, row := range w.rows {
		w.row(t, row).onlyOwn()
	}
	if left := processesWith(t, w.dir); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	w.audit()
}

func (r *listRun) check() {
	p := r.report()
	got := p.State + " " + string(p.Era)
	if p.Code != nil {
		got += " " + string(*p.Code)
	}
	if want := orElse(r.row.want, "ready modern"); got != want {
		r.t.Errorf("the peer is %q, want %q (%s)", got, want, reasonOf(p))
	}
	r.has(r.row.has)
	r.leftOut()
	for name := range strings.FieldsSeq(r.row.has) {
		r.call(name, `{"n":1}`)
	}
	if r.row.after != nil {
		r.row.after(r)
	}
}

func (r *listRun) report() domain.PeerReport { return r.peer(r.row.peer) }

// own are the peer's tools, as waybill tools has them.
func (w *world) own(peer string) []domain.ToolEntry {
	w.t.Helper()
	doc := decode[toolsDoc](w.t, w.must(exitDone, "tools", "--json"))
	return slices.DeleteFunc(doc.Tools, func(e domain.ToolEntry) bool { return e.Peer != peer })
}

// has checks which tools of the peer can be called.
func (r *listRun) has(want string) {
	r.t.Helper()
	var locals []string
	for _, e := range r.own(r.row.peer) {
		locals = append(locals, e.Local)
		r.names[e.Local] = e.Canonical
	}
	if slices.Sort(locals); strings.Join(locals, " ") != want {
		r.t.Errorf("its tools are %q, want %s", locals, want)
	}
}

// entry is the tool of a local name.
func (r *listRun) entry(local string) domain.ToolEntry {
	r.t.Helper()
	all := r.own(r.row.peer)
	i := slices.IndexFunc(all, func(e domain.ToolEntry) bool { return e.Local == local })
	if i < 0 {
		r.t.Fatalf("%s has no tool %s that can be called: %+v", r.row.peer, local, all)
	}
	return all[i]
}

// defined checks which of its definitions a tool has, byte for byte.
func (r *listRun) defined(local, definition string) {
	r.t.Helper()
	if e := r.entry(local); string(e.Definition) != definition || e.Digest != domain.RefTo([]byte(definition)).Digest {
		r.t.Errorf("%s is %s (%s), want %s", local, e.Definition, e.Digest, definition)
	}
}

// leftOut checks which tools of its list are left out.
func (r *listRun) leftOut() {
	r.t.Helper()
	var got []string
	for _, d := range r.events("tool.rejected", r.row.peer) {
		x := d.(domain.ToolRejected)
		got = append(got, fmt.Sprintf("%d %s %s", x.Position, x.Name, x.Code))
		if len(x.Reason) < 10 || strings.ContainsAny(x.Reason, "\n\u202e\u200b") {
			r.t.Errorf("the reason is no sentence: %q", x.Reason)
		}
	}
	if !slices.Equal(got, r.row.out) {
		r.t.Errorf("left out: %q, want %q", got, r.row.out)
	}
}

// call calls a tool of the peer by its canonical name, which runs it and no other.
func (r *listRun) call(local, args string) {
	r.t.Helper()
	got := decode[reply](r.t, r.must(exitDone, "call", "--json", r.canonical(local), args))
	if want := fmt.Sprintf(`"by":%q,"tool":%q`, r.row.peer, local); !strings.Contains(string(got.Result), want) {
		r.t.Errorf("a call of %s was answered with %s", local, got.Result)
	}
}

// canonical is the name that a tool is called by.
func (r *listRun) canonical(local string) string {
	r.t.Helper()
	if r.names[local] == "" {
		r.names[local] = r.entry(local).Canonical
	}
	return r.names[local]
}

// onlyOwn checks that nothing ran at the peer but what it lists.
func (r *listRun) onlyOwn() {
	r.t.Helper()
	for _, line := range r.lines(r.row.peer, "ran") {
		if name, _, _ := strings.Cut(line, " "); !slices.Contains(strings.Fields(r.row.has), name) {
			r.t.Errorf("%s ran %s", r.row.peer, line)
		}
	}
}

// alone calls a tool that another peer has too, with words that must reach this
// one only.
func (r *listRun) alone() {
	word := "meant for " + r.row.peer
	r.call("search_it", fmt.Sprintf(`{"word":%q}`, word))
	for _, peer := range []string{"twin-a", "twin-b"} {
		if got := strings.Contains(strings.Join(r.lines(peer, "ran"), "\n"), word); got != (peer == r.row.peer) {
			r.t.Errorf("%s received what was %s: %v", peer, word, got)
		}
	}
}

// events returns the events of a type and peer.
func (w *world) events(kind, peer string) []domain.Data {
	w.t.Helper()
	var all []domain.Data
	for _, e := range w.envelopes(kind, peer) {
		all = append(all, e.Data)
	}
	return all
}

func (w *world) envelopes(kind, peer string) []domain.Event {
	w.t.Helper()
	var all []domain.Event
	for line := range strings.Lines(w.must(exitDone, "events", "--json", "--type", kind, "--peer", peer)) {
		_, e, err := events.Open([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// requests are the requests of a method that the peer received.
func (r *listRun) requests(method string) []rpc {
	r.t.Helper()
	var all []rpc
	for _, line := range r.lines(r.row.peer, "got") {
		var m rpc
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			r.t.Fatalf("%s received %.200q: %v", r.row.peer, line, err)
		}
		if m.Method == method {
			all = append(all, m)
		}
	}
	return all
}

// readings checks that each reading of the list took so many requests at most, and
// that there was at least one reading.
func (r *listRun) readings(least, most int) {
	r.t.Helper()
	readings, n := 0, 0
	for _, m := range r.requests("tools/list") {
		if n++; m.Params.Cursor == nil {
			readings, n = readings+1, 1
		}
		if n > most {
			r.t.Fatalf("reading %d took %d requests, want at most %d", readings, n, most)
		}
	}
	if readings < least {
		r.t.Errorf("the list was read %d times", readings)
	}
}

// stayedUp checks that a list that is no good has cost the peer nothing else.
func (r *listRun) stayedUp() {
	r.t.Helper()
	if n := len(r.events("peer.exited", r.row.peer)); n != 0 || *r.report().Incarnation != 1 {
		r.t.Errorf("it ended %d times", n)
	}
}

// notices counts the announced changes.
func (r *listRun) notices() (n int64) {
	r.t.Helper()
	for _, d := range r.events("list.changed", r.row.peer) {
		n += d.(domain.ListChanged).Count
	}
	return n
}

// calm checks that the subscription is active and was opened once.
func (r *listRun) calm() {
	r.t.Helper()
	if l := r.report().Lists[0]; l.Subscription != "active" || len(r.requests("subscriptions/listen")) != 1 {
		r.t.Errorf("%+v after %d subscriptions", l, len(r.requests("subscriptions/listen")))
	}
}

// closed checks that the subscription is reported as none, and not opened again.
func (r *listRun) closed(code domain.Code, withdrawn string) {
	r.t.Helper()
	eventually(r.t, "it is on record that there is no subscription", func() bool { return len(r.events("subscription.closed", r.row.peer)) == 1 })
	d := r.events("subscription.closed", r.row.peer)[0].(domain.SubscriptionClosed)
	if d.Code != code || d.Withdrawn != (withdrawn != "") || d.Reopen != 0 {
		r.t.Errorf("%+v", d)
	}
	if n := len(r.requests("notifications/cancelled")); d.Withdrawn && n != 1 {
		r.t.Errorf("the peer was told %d times that it is withdrawn", n)
	}
	p := r.report()
	if l := p.Lists[0]; l.Subscription != "none" || p.State != "ready" {
		r.t.Errorf("%+v, %+v", p, l)
	}
	if d.Withdrawn && !strings.Contains(strings.Join(p.Warnings, "\n"), "no notices of changes: "+d.Reason) {
		r.t.Errorf("the report does not warn: %q", p.Warnings)
	}
	if n := len(r.requests("subscriptions/listen")); n != 1 {
		r.t.Errorf("it was opened %d times", n)
	}
}

// honoursTTL reads the tools as fast as it can until the list has been read twice
// more, and checks that it never was while it was fresh.
func (r *listRun) honoursTTL() {
	r.t.Helper()
	before := len(r.requests("tools/list"))
	eventually(r.t, "a list whose time is over is read again", func() bool {
		r.must(exitDone, "tools")
		return len(r.requests("tools/list")) >= before+2
	})
	r.spaced(shortLived * time.Millisecond)
}

// spaced checks that so much time at least goes by between two readings.
func (r *listRun) spaced(least time.Duration) {
	r.t.Helper()
	all := r.envelopes("list.requested", r.row.peer)
	for i, e := range all[1:] {
		if since := time.Duration(e.Mono - all[i].Mono); since < least {
			r.t.Errorf("it was read %s after it had been read", since)
		}
	}
}

// reasonOf returns why a peer is not ready, or "-".
func reasonOf(p domain.PeerReport) string {
	if p.Reason == nil {
		return "-"
	}
	return *p.Reason
}

// begin is serve without waiting for the peers.
func (w *world) begin() *service {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	s := &service{t: w.t, cmd: exec.Command(self, "serve", "-c", w.file), out: &bytes.Buffer{}, errs: &syncBuffer{}}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.errs
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	return s
}

// beside is a file beside the record of a peer.
func (w *world) beside(peer, ending string) string {
	return filepath.Join(w.dir, peer+".record"+ending)
}
