package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/events"
	"waybill/store"
	"waybill/store/payloads"
)

// keptDoc is the answer to calls outcome and to erase, as far as these tests look.
type keptDoc struct {
	CallID string          `json:"call_id"`
	Status string          `json:"status"`
	Code   *string         `json:"code"`
	Result json.RawMessage `json:"result"`
	Seqs   []int64         `json:"seqs"`
	Erased *struct {
		By, At       string
		Seq, Calls   int64
		Host, Before *string
	} `json:"erased"`
}

// keysOf reads the keys of all calls of a host that are kept.
func (w *world) keysOf(calls ...string) (out []payloads.Key) {
	w.t.Helper()
	l, err := store.OpenReader(w.log())
	if err != nil {
		w.t.Fatal(err)
	}
	defer l.Close()
	p, err := payloads.OpenReader(filepath.Join(w.dir, ".waybill", "payloads.db"), l.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	defer p.Close()
	for _, call := range calls {
		records, err := l.ByCall(w.t.Context(), call)
		if err != nil || len(records) == 0 {
			w.t.Fatalf("%s: %v", call, err)
		}
		key, ok, err := p.Key(w.t.Context(), records[0].Seq)
		if err != nil || !ok {
			w.t.Fatalf("the key of %s: %t, %v", call, ok, err)
		}
		out = append(out, key)
	}
	return out
}

// holding lists the files of the data directory that hold some bytes.
func (w *world) holding(what []byte) (out []string) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.dir, ".waybill"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // a file may go while we look
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, what) {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// Bytes are kept, found again after a crash, and erased by orders over NATS and
// without a service; then they are in no file, and the log says who erased them.
func TestPayloadsAreKeptAndErased(t *testing.T) {
	w := newWorld(t, "payloads: full", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern", more: []string{"payloads: none"}}).ready()
	s := w.serve()
	const canary = "canary-0815-canary"
	for _, id := range []string{"one", "two", "three"} {
		w.must(exitDone, "call", "--json", "--call-id", id, "echo", `{"s":"`+strings.Repeat(canary, 999)+`"}`)
	}
	w.must(exitDone, "call", "--json", "--call-id", "none", "b/echo", `{"s":"x"}`)
	w.must(exitProtocolError, "call", "--json", "--call-id", "error", "rpc_error")
	kept := func(id string) keptDoc { return decode[keptDoc](t, w.must(exitDone, "calls", "outcome", id)) }
	for range 2 { // with the service, and after it was killed
		if d := kept("one"); !strings.Contains(string(d.Result), canary+canary) || d.Erased != nil || d.Status != "complete" {
			t.Errorf("%+v", d)
		}
		if d := kept("none"); string(d.Result) != "null" || d.Erased != nil {
			t.Errorf("%+v", d)
		}
		if d := decode[reply](t, w.must(exitDone, "calls", "outcome", "error")); !strings.Contains(string(d.Error), "broken inside") || *d.Code != "peer_error" {
			t.Errorf("%+v", d)
		}
		if s != nil {
			s.stop(syscall.SIGKILL)
			s = nil
		}
	}
	keys := w.keysOf("local/one", "local/two", "local/three")
	for _, key := range keys {
		if len(w.holding(key[:])) == 0 {
			t.Fatal("the key is in no file")
		}
	}
	s = w.serve()
	d := decode[keptDoc](t, w.must(exitDone, "erase", "--json", "--by", "ann", "--call", "local/one"))
	if d.Erased == nil || d.Erased.Calls != 1 || d.Code != nil || len(d.Seqs) != 2 {
		t.Errorf("%+v", d)
	}
	d = decode[keptDoc](t, w.must(exitDone, "erase", "--json", "--by", "ann", "--older-than", "30d"))
	if d.Erased == nil || d.Erased.Calls != 0 || d.Erased.Before == nil {
		t.Errorf("%+v", d)
	}
	if d := kept("one"); d.Erased == nil || d.Erased.By != "ann" || string(d.Result) != "null" {
		t.Errorf("%+v", d)
	}
	if d := kept("two"); d.Erased != nil || !strings.Contains(string(d.Result), canary) {
		t.Errorf("%+v", d)
	}
	if files := w.holding(keys[0][:]); len(files) > 0 {
		t.Errorf("the key of an erased call is in %q", files)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	d = decode[keptDoc](t, w.must(exitDone, "erase", "--json", "--by", "bob", "--host", "local"))
	if d.Erased == nil || d.Erased.Calls != 3 || d.Erased.Host == nil {
		t.Errorf("%+v", d)
	}
	for id, by := range map[string]string{"one": "ann", "two": "bob", "three": "bob", "error": "bob"} {
		if d := kept(id); d.Erased == nil || d.Erased.By != by {
			t.Errorf("%s: %+v", id, d)
		}
	}
	for _, key := range keys {
		if files := w.holding(key[:]); len(files) > 0 {
			t.Errorf("the key of an erased call is in %q", files)
		}
	}
	if files := w.holding([]byte(canary)); len(files) > 0 {
		t.Errorf("the canary is in %q", files)
	}
	w.audit()
}

func TestEraseRefusesWhatNamesNoCalls(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	for _, args := range [][]string{
		{"--by", "ann"}, {"--by", "Ann", "--host", "local"}, {"--host", "local"}, {"--by", "ann", "--call", "one"},
		{"--by", "ann", "--host", "No"}, {"--by", "ann", "--older-than", "soon"}, {"--by", "ann", "--older-than", "0s"},
		{"--by", "ann", "--host", "local", "--call", "local/one"},
	} {
		w.must(exitConfig, append([]string{"erase"}, args...)...)
	}
	w.refused(domain.CodePayloadNotKept, "erase", "--by", "ann", "--host", "local")
	s := w.serve()
	w.refused(domain.CodePayloadNotKept, "erase", "--by", "ann", "--host", "local")
	s.stop(syscall.SIGTERM)
	if out := w.must(exitDone, "events", "--type", "operator"); out != "" {
		t.Errorf("on record:\n%s", out)
	}
}

// An operator needs no arguments where they are kept.
func TestALostCallIsSentAgainWithWhatIsKept(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "p", mode: "fire", more: []string{"payloads: full"}}).ready()
	s := w.serve()
	w.must(exitLost, "call", "--json", "--call-id", "pay", "once", `{"n": 1}`)
	w.readyAgain("p")
	w.refused(domain.CodePayloadNotKept, "calls", "resend", "pay", `{"n":1}`, "--by", "ann")
	doc := decode[orderDoc](t, w.must(exitDone, "calls", "resend", "pay", "--by", "ann", "--json"))
	if doc.Outcome == nil || doc.Outcome.Status != "complete" {
		t.Errorf("%+v", doc)
	}
	if ran := w.lines("p", "ran"); !slices.Equal(ran, []string{`once {"n": 1}`, `once {"n": 1}`}) {
		t.Errorf("it ran %q", ran)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.audit()
}

// However often the service is killed with calls under way: each event of a kept
// call has its bytes, and once a start has swept there are no bytes without an event.
func TestAKillNeverPartsEventsFromTheirBytes(t *testing.T) {
	w := newWorld(t, "payloads: full", peerYAML{name: "a", mode: "modern"}).ready()
	for range 4 {
		s := w.serve()
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for range 1000 {
					var out, errs syncBuffer
					if run([]string{"call", "-c", w.file, "--json", "echo", `{"n":1}`}, &out, &errs) != exitDone {
						return
					}
				}
			})
		}
		head := func() int64 {
			l, err := store.OpenReader(w.log())
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			h, err := l.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return h.Size
		}
		begin := head()
		eventually(t, "calls are made", func() bool { return head() > begin+60 })
		s.stop(syscall.SIGKILL)
		wait.Wait()
		w.wantBytes(false)
	}
	if code := w.serve().stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.wantBytes(true)
	w.audit()
}

// wantBytes checks that what the events of the log cite is kept, and nothing else
// where the payloads have been swept.
func (w *world) wantBytes(swept bool) {
	w.t.Helper()
	l, err := logfile.Open(w.log())
	if err != nil {
		w.t.Fatal(err)
	}
	defer l.Close()
	p, err := payloads.Open(filepath.Join(w.dir, ".waybill", "payloads.db"), l.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	defer p.Close()
	calls, answers := int64(0), 0
	for after := int64(0); ; {
		records, err := l.Read(w.t.Context(), after, 512)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			after = r.Seq
			_, e, err := events.Open(r.Bytes)
			if err != nil {
				w.t.Fatal(err)
			}
			var cited domain.Payload
			role := payloads.Arguments
			switch d := e.Data.(type) {
			case domain.CallReceived:
				cited = d.Arguments
				calls++
			case domain.CallAnswered:
				cited, role = d.Result, payloads.Result
				answers++
			default:
				continue
			}
			x, ok, err := p.Read(w.t.Context(), r.Seq, role)
			if err != nil || !ok || x.Key.Name(x.Bytes) != cited.HMAC || int64(len(x.Bytes)) != cited.Size {
				w.t.Errorf("event %d cites %+v and has %q, %t, %v", r.Seq, cited, x.Bytes, ok, err)
			}
		}
	}
	if n, err := p.Count(w.t.Context(), payloads.Selection{Host: "local"}); err != nil || calls == 0 || answers == 0 || n < calls || swept && n != calls {
		w.t.Errorf("%d calls are kept, %v; the log has %d, and %d answers", n, err, calls, answers)
	}
}
