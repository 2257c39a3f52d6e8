package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/cmd/waybill/config/yamldoc"
	"waybill/domain"
)

// environment is a lookup in a fixed environment.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

func put(t *testing.T, path, content string, mode fs.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func loadText(t *testing.T, content string, vars map[string]string) (*File, error) {
	t.Helper()
	return LoadWith(put(t, filepath.Join(t.TempDir(), "waybill.yaml"), content, 0o644), environment(vars))
}

func mustLoad(t *testing.T, content string) *File {
	t.Helper()
	f, err := loadText(t, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// contract is the example of the README with every key.
const contract = `
node: local                       # with the key's hash: the id of this log
data: .waybill
collision: prefix-on-collision    # or reject-on-collision, prefix-always
separator: /
many_peers_reason: ""
nats: {url: "", tls: {}, listen: 127.0.0.1:4222, credentials: "", replicas: 1, max_bytes: 0, max_age: 0, max_lag: 100000}
limits: {frame: 16MiB, inflight: 1024, host_inflight: 256, host_rate: 0, drain: 10s, log_size: 0}
authorizations: {}
hosts: {}
payloads: none
payload_retention: 30d
moved_window: 10m
idempotency_window: 24h
peers:
  notes:
    transport: stdio
    command: notes-server
    args: [--dir, ./notes]
    env: [PATH, HOME]
    set: {LOG_LEVEL: info}
    secret_env: [API_KEY]
    cwd: .
    capabilities: {}
    allow_legacy: false
    legacy_revisions: [2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05]
    probe_timeout: 10s
    legacy_probe_timeout: 5s
    list_timeout: 10s
    call_timeout: 60s
    call_limit: 0
    idle_timeout: 60s
    shutdown_timeout: 2s
    inflight: 256
    resends: 1
    idempotency: {}
    input_rounds: 10
    input_window: 10m
    output_schema: record
    hung_after: 3
    health_interval: 0s
    health_timeout: 10s
    restarts: 8
    quarantine: 10m
    list_interval: 1s
    list_refresh: 0
    stale_lists: 1h
    subscribe: true
    listen_timeout: 10s
    on_tool_change: record
    share_public: true
    unpinned_code: refused
    data_files: []
    trust_hints: false
    repeatable: []
`

func TestTheContractIsReadAndItsValuesAreTheDefaults(t *testing.T) {
	full := mustLoad(t, contract)
	short := mustLoad(t, `
peers:
  notes:
    command: notes-server
    args: [--dir, ./notes]
    env: [PATH, HOME]
    set: {LOG_LEVEL: info}
    secret_env: [API_KEY]
`)
	for _, f := range []*File{full, short} {
		f.Data = strings.TrimPrefix(f.Data, f.Dir)
		f.Peers[0].Cwd = strings.TrimPrefix(f.Peers[0].Cwd, f.Dir)
		f.Path, f.Dir = "", ""
		f.Peers[0].DataFiles, f.Peers[0].Repeatable = nil, nil
	}
	if a, b := fmt.Sprintf("%#v", full), fmt.Sprintf("%#v", short); a != b {
		t.Errorf("the defaults are not those of the contract:\n%s\n%s", a, b)
	}
	p := full.Peers[0]
	switch {
	case full.Data != "/.waybill", p.Cwd != "":
		t.Errorf("data %q and cwd %q are not beside the file", full.Data, p.Cwd)
	case full.Limits != (Limits{16 << 20, 1024, 256, 0, 10 * time.Second, 0}):
		t.Errorf("limits: %+v", full.Limits)
	case p.ProbeTimeout != 10*time.Second, p.LegacyProbeTimeout != 5*time.Second, p.CallTimeout != time.Minute:
		t.Errorf("timeouts: %v %v %v", p.ProbeTimeout, p.LegacyProbeTimeout, p.CallTimeout)
	case !slices.Equal(p.LegacyRevisions, domain.LegacyRevisions):
		t.Errorf("legacy_revisions: %v", p.LegacyRevisions)
	case string(p.Capabilities) != "{}", p.AllowLegacy, p.UnpinnedCode, p.TrustHints:
		t.Errorf("peer: %+v", p)
	}
}

func TestValuesAreRead(t *testing.T) {
	f := mustLoad(t, "\ufeff"+strings.ReplaceAll(`
node: "7"
data: /var/lib/waybill
collision: prefix-always
separator: __
nats: {url: "tls://nats.example.org:4222", listen: "[::1]:0", credentials: keys/local.creds, replicas: 3, max_bytes: 64GiB, max_age: 720h, max_lag: 0}
limits:
  frame: 4096
  inflight: 1
  host_inflight: 2
  host_rate: 0.5
  drain: 0
  log_size: 2GiB
peers:
  zeta: {command: ./bin/z, cwd: sub, probe_timeout: 1ms, call_timeout: 1h, resends: 0, hung_after: 0}
  1:
    command: /bin/true
    args: [--port, 8080, true, 1.50, "", |-
      two
      lines
      ]
    set: {ZERO: 0, YES: yes, EMPTY: "", HEX: 0x1F}
    capabilities: {z: 1, a: {b: [true, ~, 1.5, -3, x], a: {}}, "io.example/x": {}}
    allow_legacy: true
    legacy_revisions: [2025-06-18]
    unpinned_code: accepted
    data_files: [a.db]
    trust_hints: true
    repeatable: [read_file]
    probe_timeout: 9s
    list_timeout: 2s
    call_timeout: 5s
    call_limit: 5s
    idle_timeout: 3s
    shutdown_timeout: 1m
    inflight: 7
    resends: 2
    idempotency: {charge: key, "a/b": request_id}
    input_rounds: 4
    input_window: 24h
    output_schema: refuse
    hung_after: 9
    health_interval: 1s
    restarts: 1
    quarantine: 5s
`, "|-\n      two\n      lines\n      ", `"two\nlines"`))
	if got := []string{f.Peers[0].Name, f.Peers[1].Name}; !slices.Equal(got, []string{"1", "zeta"}) {
		t.Errorf("peers %v are not sorted by name", got)
	}
	one, zeta := f.Peers[0], f.Peers[1]
	for _, c := range []struct{ what, got, want string }{
		{"node", f.Node, "7"},
		{"data", f.Data, "/var/lib/waybill"},
		{"separator", f.Separator, "__"},
		{"credentials", f.NATS.Credentials, filepath.Join(f.Dir, "keys/local.creds")},
		{"log_size", fmt.Sprint(f.Limits.LogSize), "2147483648"},
		{"listen", f.NATS.Listen, "[::1]:0"},
		{"streams", fmt.Sprint(f.NATS.Replicas, f.NATS.MaxBytes, f.NATS.MaxAge, f.NATS.MaxLag), "3 68719476736 720h0m0s 0"},
		{"cwd", zeta.Cwd, filepath.Join(f.Dir, "sub")},
		{"command", zeta.Command, "./bin/z"},
		{"args", fmt.Sprintf("%q", one.Args), `["--port" "8080" "true" "1.50" "" "two\nlines"]`},
		{"set", fmt.Sprintf("%q", one.Set), `map["EMPTY":"" "HEX":"0x1F" "YES":"yes" "ZERO":"0"]`},
		{"capabilities", string(one.Capabilities), `{"a":{"a":{},"b":[true,null,1.5,-3,"x"]},"io.example/x":{},"z":1}`},
		{"legacy_revisions", fmt.Sprint(one.LegacyRevisions), "[2025-06-18]"},
		{"flags", fmt.Sprint(one.AllowLegacy, one.UnpinnedCode, one.TrustHints), "true true true"},
		{"lists", fmt.Sprint(one.DataFiles, one.Repeatable), "[a.db] [read_file]"},
		{"limits", fmt.Sprint(f.Limits), "{4096 1 2 0.5 0s 2147483648}"},
		{"timeouts", fmt.Sprint(zeta.ProbeTimeout, zeta.CallTimeout), "1ms 1h0m0s"},
		{"derived timeouts", fmt.Sprint(zeta.ListTimeout, zeta.IdleTimeout, zeta.HealthTimeout), "1ms 1h0m0s 1ms"},
		{"calls", fmt.Sprint(one.ListTimeout, one.CallTimeout, one.CallLimit, one.IdleTimeout, one.Inflight, one.Resends, one.Idempotency),
			"2s 5s 5s 3s 7 2 map[a/b:request_id charge:key]"},
		{"input", fmt.Sprint(one.InputRounds, one.InputWindow, one.RefuseOutput), "4 24h0m0s true"},
		{"health", fmt.Sprint(one.HungAfter, one.HealthInterval, one.HealthTimeout), "9 1s 1s"},
		{"recovery", fmt.Sprint(one.ShutdownTimeout, one.Restarts, one.Quarantine), "1m0s 1 5s"},
		{"never", fmt.Sprint(zeta.Resends, zeta.HungAfter, zeta.HealthInterval, zeta.CallLimit), "0 0 0s 0s"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %s, want %s", c.what, c.got, c.want)
		}
	}
}

// mistake is one in a file. The peer cases stand in line 3 and below.
type mistake struct {
	name, yaml string
	line       int
	key        string
	msg        string // a part of it
}

// bad lists one mistake each.
var bad = slices.Concat(badNATS, badPayloads, badLists, badHTTP, badAuthorizations, badHosts, []mistake{
	{"unknown key", "nodes: x\n" + peers, 1, "nodes", "unknown key; did you mean node?"},
	{"unknown key that is like no other", "frobnicate: 1\n" + peers, 1, "frobnicate", "unknown key"},
	{"key given twice", "node: a\nnode: b\n" + peers, 2, "node", "given twice, first in line 1"},
	{"node", "node: Local\n" + peers, 1, "node", "a name is"},
	{"node is a number", "node: 3\n" + peers, 1, "node", "must be text, not a whole number"},
	{"no value", "data:\n" + peers, 1, "data", "has no value"},
	{"data is empty", "data: ''\n" + peers, 1, "data", "is empty"},
	{"collision", "collision: last-wins\n" + peers, 1, "collision", `"last-wins" is not one of prefix-on-collision, reject-on-collision, prefix-always`},
	{"silent overwrite", "collision: silent-overwrite\n" + peers, 1, "collision", "nobody would be told; use prefix-on-collision"},
	{"separator is empty", "separator: ''\n" + peers, 1, "separator", "one to three of the characters"},
	{"separator is long", "separator: ////\n" + peers, 1, "separator", "one to three"},
	{"separator has a letter", "separator: x\n" + peers, 1, "separator", "one to three"},
	{"frame too small", "limits: {frame: 4095}\n" + peers, 1, "limits.frame", "from 4KiB to 256MiB"},
	{"frame too large", "limits: {frame: 257MiB}\n" + peers, 1, "limits.frame", "from 4KiB to 256MiB"},
	{"frame without a known unit", "limits: {frame: 16MB}\n" + peers, 1, "limits.frame", "a size such as 16MiB"},
	{"frame is negative", "limits: {frame: -1}\n" + peers, 1, "limits.frame", "a size such as 16MiB"},
	{"frame overflows", "limits: {frame: 9223372036854775807GiB}\n" + peers, 1, "limits.frame", "a size such as 16MiB"},
	{"inflight is zero", "limits: {inflight: 0}\n" + peers, 1, "limits.inflight", "from 1 to 65536"},
	{"inflight is large", "limits: {inflight: 65537}\n" + peers, 1, "limits.inflight", "from 1 to 65536"},
	{"inflight is text", "limits: {inflight: '1'}\n" + peers, 1, "limits.inflight", "must be a whole number, not text"},
	{"host_inflight is zero", "limits: {host_inflight: 0}\n" + peers, 1, "limits.host_inflight", "from 1 to 65536"},
	{"host_rate is negative", "limits: {host_rate: -1}\n" + peers, 1, "limits.host_rate", "a number from 0.01 to 1000000, or 0 for no limit"},
	{"host_rate is text", "limits: {host_rate: '5'}\n" + peers, 1, "limits.host_rate", "a number from"},
	{"host_rate is no number", "limits: {host_rate: .nan}\n" + peers, 1, "limits.host_rate", "a number from"},
	{"drain without unit", "limits: {drain: 10}\n" + peers, 1, "limits.drain", "a duration such as 10s, 500ms or 2m, or 0 for none"},
	{"drain long", "limits: {drain: 61m}\n" + peers, 1, "limits.drain", "from 1ms to 1h, or 0"},
	{"no peers", "node: a\n", 1, "peers", "no peers"},
	{"peers is empty", "peers: {}\n", 1, "peers", "no peers"},
	{"peers is a list", "peers: [a]\n", 1, "peers", "must be a mapping, not a list"},
	{"not a mapping", "- peers\n", 1, "", "must be a mapping, not a list"},
	{"two documents", peers + "---\nnode: a\n", 5, "", "a second document"},
	{"no YAML", "peers: [\n", 1, "", "cannot be read as YAML"},
	{"an anchor", "node: &a local\n" + peers, 1, "node", "not used here"},
	{"an alias", "node: *a\n" + peers, 1, "node", "not used here"},
	{"a tag", "node: !!str local\n" + peers, 1, "node", "not used here"},
	{"a merge key", "<<: {}\n" + peers, 1, "", "merge keys"},
	{"brackets inside brackets", strings.Repeat("[", 100000), 1, "", "inside each other"},
	{"dashes inside dashes", strings.Repeat("- ", 100000), 1, "", "inside each other"},
	{"too many keys", strings.Repeat("a: b\n", 100000), 13334, "", "at most 40000 words"},
	{"indented deeply", indented(40), 32, "", "inside each other"},

	{"peer name", "peers:\n  Notes: {command: x}\n", 2, "peers.Notes", "a name is"},
	{"peer is text", "peers:\n  a: x\n", 2, "peers.a", "must be a mapping, not text"},
	{"peer is nothing", "peers:\n  a:\n", 2, "peers.a.command", "missing"},
	{"peer given twice", "peers:\n  a: {command: x}\n  a: {command: y}\n", 3, "peers.a", "given twice"},
	{"unknown key of a peer", with("comand: y"), 4, "peers.a.comand", "unknown key; did you mean command?"},
	{"command is empty", "peers:\n  a:\n    command: ' '\n", 3, "peers.a.command", "is empty"},
	{"command is a list", "peers:\n  a:\n    command: [x]\n", 3, "peers.a.command", "must be text, not a list"},
	{"command with NUL", "peers:\n  a:\n    command: \"x\\0\"\n", 3, "peers.a.command", "NUL"},
	{"transport", with("transport: tcp"), 4, "peers.a.transport", `"tcp" is not one of stdio, http`},
	{"args is text", with("args: -v"), 4, "peers.a.args", "must be a list, not text"},
	{"args holds a list", with("args:\n      - a\n      - [b]"), 6, "peers.a.args[1]", "must be text, not a list"},
	{"args holds nothing", with("args: [a, ~]"), 4, "peers.a.args[1]", "must be text, not nothing"},
	{"env name", with("env: [PATH, 'A=B']"), 4, "peers.a.env[1]", "the name of a variable"},
	{"env name twice", with("env: [PATH, PATH]"), 4, "peers.a.env[1]", "listed twice"},
	{"set name", with("set: {1A: x}"), 4, "peers.a.set.1A", "the name of a variable"},
	{"set value", with("set:\n      A: {}"), 5, "peers.a.set.A", "must be text, not a mapping"},
	{"set and env", with("env: [A]\n    set: {A: x}"), 5, "peers.a.set.A", "either set or copied"},
	{"set and secret_env", with("secret_env: [A]\n    set: {A: x}"), 5, "peers.a.set.A", "either set or copied"},
	{"env and secret_env", with("env: [A]\n    secret_env: [A]"), 5, "peers.a.secret_env[0]", "is named by env too"},
	{"cwd is empty", with("cwd: ''"), 4, "peers.a.cwd", "is empty"},
	{"capabilities is a list", with("capabilities: []"), 4, "peers.a.capabilities", "must be a mapping, not a list"},
	{"capabilities not in JSON", with("capabilities: {a: .inf}"), 4, "peers.a.capabilities", "no JSON number"},
	{"allow_legacy is text", with("allow_legacy: 'true'"), 4, "peers.a.allow_legacy", "must be true or false, not text"},
	{"legacy_revisions is empty", with("legacy_revisions: []"), 4, "peers.a.legacy_revisions", "is empty"},
	{"legacy_revisions unknown", with("legacy_revisions: [2025-11-25, 2026-07-28]"), 4, "peers.a.legacy_revisions[1]", "is not one of 2025-11-25"},
	{"probe_timeout without unit", with("probe_timeout: 10"), 4, "peers.a.probe_timeout", "a duration such as 10s"},
	{"probe_timeout zero", with("probe_timeout: 0s"), 4, "peers.a.probe_timeout", "from 1ms to 10m"},
	{"legacy_probe_timeout long", with("legacy_probe_timeout: 10m1s"), 4, "peers.a.legacy_probe_timeout", "from 1ms to 10m"},
	{"call_timeout long", with("call_timeout: 61m"), 4, "peers.a.call_timeout", "from 1ms to 1h"},
	{"call_timeout fine", with("call_timeout: 1500us"), 4, "peers.a.call_timeout", "whole milliseconds"},
	{"list_timeout zero", with("list_timeout: 0s"), 4, "peers.a.list_timeout", "from 1ms to 10m"},
	{"call_limit below call_timeout", with("call_timeout: 10s\n    call_limit: 9s"), 5, "peers.a.call_limit", "not be less than call_timeout (10s)"},
	{"call_limit below the default", with("call_limit: 59s"), 4, "peers.a.call_limit", "not be less than call_timeout (1m)"},
	{"call_limit long", with("call_limit: 25h"), 4, "peers.a.call_limit", "from 1ms to 24h, or 0 for none"},
	{"call_limit is a number", with("call_limit: 60"), 4, "peers.a.call_limit", "a duration such as"},
	{"idle_timeout long", with("idle_timeout: 2h"), 4, "peers.a.idle_timeout", "from 1ms to 1h"},
	{"shutdown_timeout long", with("shutdown_timeout: 61s"), 4, "peers.a.shutdown_timeout", "from 1ms to 1m"},
	{"peer inflight", with("inflight: 0"), 4, "peers.a.inflight", "from 1 to 65536"},
	{"resends", with("resends: 11"), 4, "peers.a.resends", "from 0 to 10"},
	{"idempotency is a list", with("idempotency: [charge]"), 4, "peers.a.idempotency", "must be a mapping, not a list"},
	{"idempotency names no argument", with("idempotency:\n      charge: ''"), 5, "peers.a.idempotency.charge", "the name of an argument"},
	{"idempotency is a number", with("idempotency: {charge: 1}"), 4, "peers.a.idempotency.charge", "must be text, not a whole number"},
	{"idempotency names no tool", with("idempotency: {'': key}"), 4, "peers.a.idempotency.", "not the name of a tool"},
	{"input_rounds", with("input_rounds: 0"), 4, "peers.a.input_rounds", "from 1 to 1000"},
	{"input_window", with("input_window: 0"), 4, "peers.a.input_window", "a duration such as"},
	{"output_schema", with("output_schema: drop"), 4, "peers.a.output_schema", `"drop" is not one of record, refuse`},
	{"hung_after", with("hung_after: -1"), 4, "peers.a.hung_after", "from 0 to 1000"},
	{"health_interval short", with("health_interval: 999ms"), 4, "peers.a.health_interval", "from 1s to 24h, or 0 for none"},
	{"health_timeout over health_interval", with("health_interval: 1s\n    health_timeout: 2s"), 5, "peers.a.health_timeout", "not be more than health_interval (1s)"},
	{"restarts", with("restarts: 0"), 4, "peers.a.restarts", "from 1 to 1000"},
	{"quarantine", with("quarantine: 0s"), 4, "peers.a.quarantine", "from 1ms to 24h"},
	{"unpinned_code", with("unpinned_code: ok"), 4, "peers.a.unpinned_code", `"ok" is not one of refused, accepted`},
	{"data_files", with("data_files: ['']"), 4, "peers.a.data_files[0]", "is not a path"},
	{"trust_hints", with("trust_hints: 1"), 4, "peers.a.trust_hints", "must be true or false"},
	{"repeatable", with("repeatable: [a, a]"), 4, "peers.a.repeatable[1]", "listed twice"},
	{"oauth", with("oauth: {client_id: x}"), 4, "peers.a.oauth", "the work of another program"},
	{"oauth deeper", with("capabilities: {x: [{OAuth: {}}]}"), 4, "peers.a.capabilities.x[0].OAuth", "the work of another program"},
	{"short secret", with("secret_env: [LONG, SHORT]"), 4, "peers.a.secret_env[1]", "fewer than 8 bytes"},
	{"secret like its replacement", with("secret_env: [WORD]"), 4, "peers.a.secret_env[0]", "a part of [redacted]"},
})

const peers = "peers:\n  a:\n    command: x\n"

func with(lines string) string { return peers + "    " + lines + "\n" }

func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}

var testVars = map[string]string{"LONG": "long enough", "SHORT": "geheim!", "WORD": "redacted",
	"TOKEN": "0123456789", "BLANK": " 0123456789", "LINES": "01234\n56789"}

func TestEachMistakeIsReportedWithLineAndKey(t *testing.T) {
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadText(t, c.yaml, testVars)
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("got %v, want Errors", err)
			}
			for _, e := range all {
				if e.Line == c.line && e.Key == c.key && strings.Contains(e.Msg, c.msg) {
					return
				}
			}
			t.Errorf("no error in line %d for %q that says %q, but:\n%v", c.line, c.key, c.msg, err)
		})
	}
}

func TestOneMistakeGivesOneError(t *testing.T) {
	several := []string{"not a mapping", "indented deeply"} // these leave the peers out as well
	for _, c := range bad {
		if slices.Contains(several, c.name) {
			continue
		}
		_, err := loadText(t, c.yaml, testVars)
		var all Errors
		if errors.As(err, &all); len(all) != 1 {
			t.Errorf("%s: %d errors:\n%v", c.name, len(all), err)
		}
	}
}

func TestTheValueOfASecretIsNotInTheError(t *testing.T) {
	_, err := loadText(t, with("secret_env: [SHORT]"), testVars)
	if err == nil || strings.Contains(err.Error(), testVars["SHORT"]) {
		t.Errorf("got %v", err)
	}
}

func TestAllMistakesAreReportedInOrder(t *testing.T) {
	dir := t.TempDir()
	path := put(t, filepath.Join(dir, "waybill.yaml"), `colision: prefix-always
separator: ""
peers:
  notes:
    comand: notes-server
    probe_timeout: 10
  Files:
    command: files
    oauth: {}
`, 0o644)
	_, err := Load(path)
	want := `waybill.yaml:1: colision: unknown key; did you mean collision?
waybill.yaml:2: separator: must be one to three of the characters / _ . : -
waybill.yaml:4: peers.notes.command: missing: name the program of this peer
waybill.yaml:5: peers.notes.comand: unknown key; did you mean command?
waybill.yaml:6: peers.notes.probe_timeout: must be a duration such as 10s, 500ms or 2m
waybill.yaml:7: peers.Files: a name is 1 to 63 of a-z, 0-9, _ and -, and begins with a letter or digit
waybill.yaml:9: peers.Files.oauth: obtaining tokens is the work of another program: have it provide a token as a file, a variable or a command, name that under authorizations with token_file, token_env or token_command, and take this block out`
	if err == nil || strings.ReplaceAll(err.Error(), dir+"/", "") != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	var first *Error
	if !errors.As(err, &first) || first.Where() != path+":1: colision" || first.Column != 1 {
		t.Errorf("first error: %+v", first)
	}
}

func TestAMissingFileSaysHowToMakeOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waybill.yaml")
	_, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), path+": there is no such file") {
		t.Fatalf("got %v", err)
	}
	_, example, _ := strings.Cut(err.Error(), "for example\n")
	f := mustLoad(t, example)
	if f.Peers[0].Command != "notes-server" {
		t.Errorf("the example gives %+v", f.Peers)
	}
}

func TestALargeFileIsRefused(t *testing.T) {
	_, err := loadText(t, peers+"#"+strings.Repeat("x", yamldoc.MaxFile), nil)
	if err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(contract)
	for _, c := range bad {
		if len(c.yaml) < 1000 {
			f.Add(c.yaml)
		}
	}
	f.Fuzz(func(t *testing.T, content string) {
		file, err := loadText(t, content, testVars)
		var all Errors
		if err != nil && (!errors.As(err, &all) || len(all) == 0) {
			t.Fatalf("%v is not a list of mistakes", err)
		}
		if err == nil && (len(file.Peers) == 0 || !domain.ValidName(file.Peers[0].Name) || (file.Peers[0].Command == "") == (file.Peers[0].HTTP == nil)) {
			t.Fatalf("accepted %+v", file)
		}
	})
}

func TestMorePeersThanANodeHoldsAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("many_peers_reason: a test\npeers:\n")
	for i := range mostPeers + 1 {
		fmt.Fprintf(&b, "  p%d: {command: x}\n", i)
	}
	path := filepath.Join(t.TempDir(), "waybill.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "at most 128") {
		t.Errorf("got %v", err)
	}
}
