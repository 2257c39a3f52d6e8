package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
)

// The secrets of the environment: of 8, 24 and 200 bytes, with what JSON and URLs
// escape, one that begins another, one of several lines, and one that can be a
// name of anything.
var secretEnv = map[string]string{
	"SECRET_SHORT":  `q"8\üz7`,
	"SECRET_MIDDLE": `tok/24+Aq<9>&xY z0%41:é`,
	"SECRET_BEGIN":  `tok/24+Aq<9>&x`,
	"SECRET_LONG":   `{"a\b":` + strings.Repeat("0123456789abcdefghijk\t", 8) + `200 bytes long!!}`,
	"SECRET_LINES":  "-----BEGIN KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ5gYD0q\nb4X8kq1T0FJ6pQ==\n-----END KEY-----\n",
	"SECRET_NAME":   "hidden-tok_24-abcdef0123",
}

// secretWorld is a world whose peers say all its secrets.
type secretWorld struct {
	*world
	secrets []string
	needles map[string][]byte // what must be nowhere, by what it is
	kept    map[string][]byte // what was printed and heard, by where
}

// needlesOf lists what must not be found of secrets. Line breaks are taken out
// of what is searched, and so of them.
func needlesOf(secrets []string) map[string][]byte {
	out := map[string][]byte{}
	for i, s := range secrets {
		add := func(name, text string) {
			out[fmt.Sprintf("secret %d %s", i, name)] = []byte(withoutBreaks(text))
		}
		for offset := range 3 {
			for name, e := range map[string]*base64.Encoding{"std": base64.RawStdEncoding, "url": base64.RawURLEncoding} {
				text := e.EncodeToString([]byte(strings.Repeat("-", offset) + s))
				add(fmt.Sprintf("base64 %s %d", name, offset), text[(offset*8+5)/6:(offset+len(s))*8/6])
			}
		}
		for _, name := range []string{"itself", "hex", "HEX", "percent"} {
			add(name, secretForms[name](s))
		}
		add("Percent", eachByte("%%%02X", s))
		if !utf8.ValidString(s) {
			continue
		}
		once, _ := json.Marshal(s)
		twice, _ := json.Marshal(string(once[1 : len(once)-1]))
		add("as JSON", string(once[1:len(once)-1]))
		add("as JSON twice", string(twice[1:len(twice)-1]))
		add("as Go", strings.Trim(fmt.Sprintf("%q", s), `"`))
		add("as \\u", escapedJSON(s))
		add("as \\u in JSON", strings.ReplaceAll(escapedJSON(s), `\`, `\\`))
		for at := 0; at+30 <= len(s); at += 30 {
			add(fmt.Sprintf("from byte %d", at), s[at:at+30])
		}
	}
	return out
}

// withoutBreaks takes out line breaks, also escaped ones, for what is encoded in
// lines.
func withoutBreaks(s string) string {
	return strings.NewReplacer("\r", "", "\n", "", `\r`, "", `\n`, "", `\u000a`, "", `\u000d`, "", `\u000A`, "", `\u000D`, "").Replace(s)
}

// leaks lists what of the needles is in b, as it is or without line breaks.
func leaks(b []byte, needles map[string][]byte) (found []string) {
	joined := []byte(withoutBreaks(string(b)))
	for name, n := range needles {
		if bytes.Contains(b, n) || bytes.Contains(joined, n) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// The search below finds every form it looks for, in any of the ways a peer says it.
func TestTheSearchForSecretsFindsEveryForm(t *testing.T) {
	for _, s := range secretEnv {
		needles := needlesOf([]string{s})
		for name, form := range secretForms {
			for how, text := range map[string]string{"plain": form(s), "in JSON": mustJSON(t, form(s))} {
				if got := leaks([]byte("x "+text+" y"), needles); (len(got) == 0) != (name == compressed) {
					t.Errorf("%q as %s, %s: found %v", s, name, how, got)
				}
			}
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func newSecretWorld(t *testing.T) *secretWorld {
	t.Helper()
	w := &secretWorld{world: &world{t: t, dir: t.TempDir()}, kept: map[string][]byte{}}
	w.file = filepath.Join(w.dir, "waybill.yaml")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(secretEnv)) {
		t.Setenv(name, secretEnv[name])
		names, w.secrets = append(names, name), append(w.secrets, secretEnv[name])
	}
	yaml := "nats: {listen: \"127.0.0.1:0\"}\nlimits: {frame: 3MiB, drain: 1s}\ncollision: prefix-on-collision\npeers:\n"
	for _, mode := range []string{"spill", "old", "older", "versions", "capable", "revision", "gone", "stray"} {
		yaml += fmt.Sprintf("  %s:\n    command: %q\n    args: [secret-peer, %s, %q]\n    data_files: [%q]\n    secret_env: [%s]\n    allow_legacy: %v\n    capabilities: {elicitation: {}}\n",
			mode, self, mode, w.said(), w.said(), strings.Join(names, ", "), strings.HasPrefix(mode, "old"))
	}
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	w.note("init", "init")
	w.addKeys()
	if err := os.WriteFile(w.said(), []byte(mustJSON(t, coded(w.secrets))), 0o600); err != nil {
		t.Fatal(err)
	}
	w.note("pin", "pin")
	w.needles = needlesOf(w.secrets)
	return w
}

// said is the file from which the peers know the secrets.
func (w *secretWorld) said() string { return filepath.Join(w.dir, "said.json") }

func coded(secrets []string) (out [][]byte) {
	for _, s := range secrets {
		out = append(out, []byte(s))
	}
	return out
}

// addKeys makes the keys that init has made secrets of the world, as text and as
// bytes: a process of the same user can read them.
func (w *secretWorld) addKeys() {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, ".waybill", "*", "*.*k*"))
	if err != nil || len(files) < 6 {
		w.t.Fatalf("keys: %v, %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		key := strings.TrimSpace(string(b))
		switch filepath.Base(file) {
		case "log.pub", "nats-accounts.conf":
			continue
		case "payload.key":
			raw, _ := hex.DecodeString(key)
			w.secrets = append(w.secrets, string(raw))
		case "log.key":
			w.secrets = append(w.secrets, key[len(key)-44:])
		}
		w.secrets = append(w.secrets, key)
	}
}

// note runs a command in this process and keeps all that it prints.
func (w *secretWorld) note(name string, args ...string) int {
	w.t.Helper()
	code, out, errs := w.run(args...)
	w.kept[name+" stdout"], w.kept[name+" stderr"] = []byte(out), []byte(errs)
	return code
}

// hosts runs a command whose standard output is the answer to a host. It is
// passed on untouched where it holds what the peer said; progress is too.
func (w *secretWorld) hosts(name string, untouched bool, args ...string) {
	w.t.Helper()
	_, out, errs := w.run(args...)
	if untouched && len(leaks([]byte(out), w.needles)) == 0 {
		w.t.Errorf("%s: what the peer said has not come: %s", name, out)
	}
	for line := range strings.Lines(errs) {
		if !strings.HasPrefix(line, "progress ") {
			w.kept[name+" stderr"] = append(w.kept[name+" stderr"], line...)
		}
	}
}

// listen hears all that the user of the service may hear, until the test ends.
func (w *secretWorld) listen() (heard func() []byte) {
	w.t.Helper()
	run := decode[struct{ URL, Log string }](w.t, string(w.read(filepath.Join(w.dir, ".waybill", "run.json"))))
	nc := w.connect(run.URL, "service.nk", "_INBOX.service")
	var mu sync.Mutex
	var all []byte
	for _, subject := range []string{"waybill.v1.events.>", "waybill.v1.checkpoint.>"} {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			all = fmt.Appendf(all, "%s %v %s\n", m.Subject, m.Header, m.Data)
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		w.t.Fatal(err)
	}
	return func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Clone(all)
	}
}

func (w *secretWorld) connect(url, seed, inbox string) *nats.Conn {
	w.t.Helper()
	key, err := nats.NkeyOptionFromSeed(filepath.Join(w.dir, ".waybill", "nats", seed))
	if err != nil {
		w.t.Fatal(err)
	}
	nc, err := nats.Connect(url, key, nats.CustomInboxPrefix(inbox))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc
}

func (w *secretWorld) read(path string) []byte {
	w.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// stream reads the copy of the log as JetStream gives it, whatever it is on disk.
func (w *secretWorld) stream() []byte {
	w.t.Helper()
	run := decode[struct{ URL, Log string }](w.t, string(w.read(filepath.Join(w.dir, ".waybill", "run.json"))))
	js, err := w.connect(run.URL, "service.nk", "_INBOX.service").JetStream()
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := js.StreamInfo("WAYBILL_" + run.Log)
	if err != nil || info.State.LastSeq < 50 {
		w.t.Fatalf("stream: %+v, %v", info, err)
	}
	var all []byte
	for seq := uint64(1); seq <= info.State.LastSeq; seq++ {
		m, err := js.GetMsg("WAYBILL_"+run.Log, seq)
		if err != nil {
			w.t.Fatal(err)
		}
		all = fmt.Appendf(all, "%s %v %s\n", m.Subject, m.Header, m.Data)
	}
	return all
}

// requests are submitted as no command of ours would.
func (w *secretWorld) requests() {
	w.t.Helper()
	run := decode[struct{ URL string }](w.t, string(w.read(filepath.Join(w.dir, ".waybill", "run.json"))))
	nc := w.connect(run.URL, "host-local.nk", "_INBOX.local")
	for _, s := range w.secrets {
		if !utf8.ValidString(s) {
			continue
		}
		q := mustJSON(w.t, s)
		for _, request := range []string{`{"tool":"spill",` + q + `:1}`, `{"tool":` + q + `}`, `{"tool":"` + secretForms["url 1"](s)[:min(200, len(s))] + `"}`,
			`{"tool":"spill","call_id":` + q + `}`, `{"tool":"spill","wait_ms":` + q + `}`, `{"tool":"spill","capabilities":{` + q + `:{}}}`,
			`{"tool":"spill","requestState":` + q + `,"inputResponses":{` + q + `:` + q + `},"call_id":"x"}`, `{` + s, s} {
			if _, err := nc.Request("waybill.v1.call.local", []byte(request), askPatience); err != nil {
				w.t.Errorf("%q: %v", request, err)
			}
		}
	}
}

// calls has the peers say secrets in every kind of answer.
func (w *secretWorld) calls() {
	w.t.Helper()
	name := secretEnv["SECRET_NAME"]
	arguments := `{"a":` + mustJSON(w.t, secretEnv["SECRET_LONG"]) + `,"b":` + mustJSON(w.t, secretEnv["SECRET_SHORT"]) + `}`
	for _, tool := range []string{"spill", "fails", "rpc", "ask", "odd", "vast", "old/spill", "old/rpc"} {
		w.hosts("call "+tool, tool != "vast" && tool != "odd", "call", "--json", "--progress", "--capabilities", `{"elicitation":{}}`, "--timeout", "20s", "spill/"+tool[strings.IndexByte(tool, '/')+1:], arguments)
		w.hosts("call "+tool, false, "call", "--json", "--progress", tool, arguments)
	}
	w.hosts("call die", false, "call", "--json", "--call-id", "lost-one", "spill/die", arguments)
	w.hosts("resend", false, "calls", "resend", "lost-one", arguments, "--by", "ann")
	w.readyAgainIn("spill")
	for i, args := range [][]string{
		{"calls", "resend", "lost-one", arguments, "--by", name}, {"calls", "outcome", name}, {"calls", "cancel", name}, {"calls", "resend", name, "--by", "ann"},
		{"call", "--call-id", name, "spill", arguments}, {"call", name, arguments}, {"call", "spill", name}, {"call", "--host", name, "spill"},
	} {
		w.hosts(fmt.Sprintf("odd call %d", i), false, args...)
	}
	for i, args := range [][]string{
		{"peers", "revive", name, "--by", "ann", "--json"}, {"peers", "revive", "gone", "--by", name}, {"peers", "revive", "gone", "--by", secretEnv["SECRET_LONG"], "--json"},
		{"call", "--wait", name, "spill"}, {"call", "--wait", secretEnv["SECRET_SHORT"], "spill", "--json"}, {"call", "--capabilities", name, "spill"},
		{"call", "--" + name, "spill"}, {"call", "spill", "{}", secretEnv["SECRET_MIDDLE"], "--json"}, {"events", "--call", name}, {"events", "--type", name},
		{"events", "--after", name, "--json"}, {name}, {"peers", name, secretEnv["SECRET_BEGIN"]},
	} {
		w.note(fmt.Sprintf("odd command %d", i), args...)
	}
}

func (w *secretWorld) readyAgainIn(peer string) {
	w.t.Helper()
	eventually(w.t, peer+" is ready again", func() bool {
		_, out, _ := w.run("peers", "--json")
		return w.stateOf(out, peer) == "ready"
	})
}

func (w *secretWorld) stateOf(out, peer string) string {
	var r struct {
		Peers []struct{ Name, State string }
	}
	_ = json.Unmarshal([]byte(out), &r)
	for _, p := range r.Peers {
		if p.Name == peer {
			return p.State
		}
	}
	return ""
}

// reads runs everything that prints without calling.
func (w *secretWorld) reads(when string) {
	w.t.Helper()
	for _, args := range [][]string{{"tools"}, {"tools", "--json"}, {"peers"}, {"peers", "--json"}, {"events"}, {"events", "--json"}, {"check"}, {"check", "--json"}} {
		w.note(strings.Join(args, " ")+" "+when, args...)
	}
}

// audits runs the program of the auditor on the log.
func (w *secretWorld) audits() {
	w.t.Helper()
	program := filepath.Join(w.t.TempDir(), "waybill-audit")
	if out, err := exec.Command("go", "build", "-o", program, "waybill/cmd/waybill-audit").CombinedOutput(); err != nil {
		w.t.Fatalf("build: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"verify", w.log()}, {"replay", w.log()}, {"show", w.log()}, {"show", "--json", w.log()}, {"export", w.log()}, {"prove", w.log(), "12"}} {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			w.t.Errorf("%v: %v\n%.2000s", args, err, out)
		}
		w.kept["audit "+strings.Join(args[:1], " ")] = out
	}
}

// search looks through all that was kept and through every file but the keys.
func (w *secretWorld) search() {
	w.t.Helper()
	places, size := 0, 0
	look := func(where string, b []byte) {
		places, size = places+1, size+len(b)
		if found := leaks(b, w.needles); len(found) > 0 {
			w.t.Errorf("%s: %d forms: %q", where, len(found), found[:min(6, len(found))])
		}
	}
	for where, b := range w.kept {
		look(where, b)
	}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(path, w.dir) {
			return nil // a file that is renamed as soon as it is whole
		}
		ours := path != w.said() && path != w.file && !strings.HasSuffix(path, ".nk") && !strings.HasSuffix(path, "log.key") && !strings.HasSuffix(path, "payload.key")
		if err == nil && d.Type().IsRegular() && ours {
			if b, err := os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
				look(path, b)
			}
		}
		return err
	})
	if err != nil || places < 60 || size < 1<<20 {
		w.t.Errorf("only %d bytes in %d places were searched: %v", size, places, err)
	}
}

// withoutChanges leaves out the events that quote the definition of a tool.
func withoutChanges(lines []byte) []byte {
	var kept [][]byte
	for _, line := range bytes.Split(lines, []byte("\n")) {
		if !bytes.Contains(line, []byte(`"type":"tool.changed"`)) {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept, []byte("\n"))
}

// evenCompressed looks for what cannot be found by value: it may be in evidence, and
// where evidence is quoted, and still in no other event.
func (w *secretWorld) evenCompressed(places ...string) {
	w.t.Helper()
	for _, s := range w.secrets {
		for _, where := range places {
			if len(w.kept[where]) == 0 || bytes.Contains(withoutChanges(w.kept[where]), []byte(secretForms[compressed](s))) {
				w.t.Errorf("%s is empty, or holds a compressed secret", where)
			}
		}
	}
}

// No secret of the environment, no key of ours is written, printed or published
// anywhere, in whatever form a peer or a host says it; but the host that calls is
// told what the peer said.
func TestSecretsAreNowhere(t *testing.T) {
	w := newSecretWorld(t)
	s := w.serve()
	heard := w.listen()
	w.calls()
	w.requests()
	w.reads("while it runs")
	w.kept["stream"], w.kept["heard"] = w.stream(), heard()
	if !bytes.Contains(w.kept["heard"], []byte("call.settled")) {
		t.Error("no event was heard")
	}
	w.evenCompressed("stream", "heard", "events --json while it runs stdout")
	w.search() // the files of a living process, with what it has not put away yet
	s.stop(syscall.SIGKILL)
	w.kept["killed stdout"], w.kept["killed stderr"] = s.out.Bytes(), []byte(s.errs.String())
	w.reads("after a kill")
	s = w.serve()
	w.readyAgain("spill")
	w.hosts("call after a kill", true, "call", "--json", "spill/spill")
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	w.kept["stopped stdout"], w.kept["stopped stderr"] = s.out.Bytes(), []byte(s.errs.String())
	w.hosts("call --once", true, "call", "--once", "--json", "--progress", "spill/spill")
	w.reads("after the end")
	w.audits()
	w.search()
	if !bytes.Contains(w.kept["stopped stderr"], []byte("[redacted]")) {
		t.Errorf("the peers' standard error is not shown:\n%s", w.kept["stopped stderr"])
	}
}
