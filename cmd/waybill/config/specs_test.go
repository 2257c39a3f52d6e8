package config

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/domain"
	"waybill/harness/peer"
	"waybill/harness/peer/pin"
)

// remote makes a folder with a configuration of an endpoint that is asked in three
// contexts, with a token of a command in one, and of an endpoint asked with nothing.
func remote(t *testing.T) (*File, func(string) (string, bool)) {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "bin/issue"), "#!/bin/sh\necho a-token-of-ours\n", 0o755)
	put(t, filepath.Join(dir, "ca.pem"), certificate, 0o644)
	path := put(t, filepath.Join(dir, "waybill.yaml"), `
limits: {frame: 1MiB}
authorizations:
  alice: {token_file: alice.token}
  bob: {token_env: BOB, scheme: Token, headers: {X-Org: {env: ORG}, X-Fixed: v1}}
  robot: {token_command: {command: issue, args: [--for, us], env: [HOME], secret_env: [CLIENT_SECRET], timeout: 3s}}
peers:
  open: {transport: http, endpoint: 'http://127.0.0.1:8080/mcp?tenant=7', allow_legacy: true}
  work:
    transport: http
    endpoint: https://mcp.example.org/mcp
    authorizations: {a: alice, b: bob, default: robot, z: alice}
    ca_file: ca.pem
    connections: 3
    stream_idle: 0
`, 0o644)
	lookup := environment(map[string]string{"PATH": filepath.Join(dir, "bin"), "BOB": "token-of-bob", "ORG": "organisation-9", "CLIENT_SECRET": "client-secret", "HOME": "/home/x"})
	f, err := LoadWith(path, lookup)
	if err != nil {
		t.Fatal(err)
	}
	return f, lookup
}

func TestAnEndpointIsRefusedUntilItIsPinnedAsItIs(t *testing.T) {
	f, lookup := remote(t)
	c := f.Domain(nil, lookup)
	if p := c.Peers[0]; p.Refusal != domain.CodeNotPinned || p.RefusalReason !=
		"no pin in waybill.lock: see that http://127.0.0.1:8080/mcp?tenant=7 is the endpoint that is meant, then run waybill pin -c "+f.Path {
		t.Errorf("open: %s %s", p.Refusal, p.RefusalReason)
	}
	lock, failed := f.Pin(lookup)
	c = f.Domain(&lock, lookup)
	if len(failed) > 0 || codes(c)["open"] != "" || codes(c)["work"] != "" {
		t.Fatalf("pinned: %v, %v", failed, c.Peers)
	}
	p := c.Peers[1]
	if p.Pin != lock.Peers["work"].Digest() || p.Command != "" || p.Transport != domain.TransportHTTP || p.Endpoint != "https://mcp.example.org/mcp" ||
		!slices.Equal(p.Contexts, []string{"a", "b", "default", "z"}) || !maps.Equal(p.Credentials, map[string]string{"a": "alice", "b": "bob", "default": "robot", "z": "alice"}) {
		t.Errorf("work: %+v", p)
	}
	verify := f.Specs(&lock, lookup)["open"].Verify
	for _, c := range []struct {
		name   string
		pinned pin.Pin
		want   string
	}{
		{"another endpoint", pin.Pin{Endpoint: "http://127.0.0.1:8080/mcp", AllowLegacy: true},
			"the peer is the endpoint http://127.0.0.1:8080/mcp?tenant=7, pinned is the endpoint http://127.0.0.1:8080/mcp: if this is meant, run waybill pin"},
		{"a process", pin.Pin{Command: "x", AllowLegacy: true}, `the peer is the endpoint http://127.0.0.1:8080/mcp?tenant=7, pinned is the command "x": if this is meant, run waybill pin`},
		{"without legacy", pin.Pin{Endpoint: "http://127.0.0.1:8080/mcp?tenant=7"}, "allow_legacy is true, pinned is false: if this is meant, run waybill pin"},
	} {
		lock.Peers["open"] = c.pinned
		p := f.Domain(&lock, lookup).Peers[0]
		if p.Refusal != domain.CodePinMismatch || p.RefusalReason != c.want || p.Pin != c.pinned.Digest() {
			t.Errorf("%s: %s %s", c.name, p.Refusal, p.RefusalReason)
		}
		if code, reason := verify(); code != p.Refusal || reason != c.want {
			t.Errorf("%s: verify: %s %s", c.name, code, reason)
		}
	}
}

func TestATokenCommandIsPinnedLikeAnyCommand(t *testing.T) {
	f, lookup := remote(t)
	lock, _ := f.Pin(lookup)
	spec := f.Specs(&lock, lookup)["work"]
	command := spec.Web.Credentials["default"].Command
	issue := filepath.Join(f.Dir, "bin/issue")
	check := func(what string, want domain.Code, part string) {
		t.Helper()
		p := f.Domain(&lock, lookup).Peers[1]
		if p.Refusal != want || !strings.Contains(p.RefusalReason, part) {
			t.Errorf("%s: domain: %q %q", what, p.Refusal, p.RefusalReason)
		}
		for name, verify := range map[string]func() (domain.Code, string){"peer": spec.Verify, "command": command.Verify} {
			if code, reason := verify(); code != want || !strings.Contains(reason, part) {
				t.Errorf("%s: %s: %q %q", what, name, code, reason)
			}
		}
	}
	check("as pinned", "", "")
	put(t, issue, "#!/bin/sh\necho another\n", 0o755)
	check("changed", domain.CodePinMismatch, "authorization robot: the program "+issue+" has changed: if this is meant, run waybill pin")
	pinned := lock.Authorizations["robot"]
	delete(lock.Authorizations, "robot")
	check("not pinned", domain.CodeNotPinned, "authorization robot: no pin in waybill.lock: look at what its token_command runs, then run waybill pin -c "+f.Path)
	if c := codes(f.Domain(&lock, lookup)); c["open"] != "" {
		t.Errorf("a peer without it is refused: %v", c)
	}
	put(t, issue, "#!/usr/bin/env -S npx issue\n", 0o755)
	put(t, filepath.Join(f.Dir, "bin/npx"), "#!/bin/sh\n", 0o755)
	f.Authorization("robot").Command.Env = []string{"PATH"}
	p := f.Domain(&lock, lookup).Peers[1]
	if p.Refusal != domain.CodeUnpinnedCode || !strings.Contains(p.RefusalReason, "authorization robot: npx runs code that a pin does not cover: name the program") {
		t.Errorf("launcher: %q %q", p.Refusal, p.RefusalReason)
	}
	if _, failed := f.Pin(lookup); len(failed) != 1 || !strings.HasPrefix(failed[0].Error(), "authorization robot: npx runs") {
		t.Errorf("failed: %v", failed)
	}
	lock.Authorizations = map[string]pin.Pin{"robot": pinned}
	if err := os.Remove(issue); err != nil {
		t.Fatal(err)
	}
	check("gone", domain.CodeCommandMissing, "authorization robot: command issue: ")
	if _, ok := f.Specs(&lock, lookup)["work"]; ok {
		t.Error("a peer has a spec whose token command is not there")
	}
	if lock, failed := f.Pin(lookup); len(failed) != 1 || len(lock.Authorizations) != 0 || len(lock.Peers) != 2 || !strings.HasPrefix(failed[0].Error(), "authorization robot: command issue: not found") {
		t.Errorf("pinned %v, failed %v", lock, failed)
	}
}

func TestAnEndpointIsReachedAsConfigured(t *testing.T) {
	f, lookup := remote(t)
	lock, _ := f.Pin(lookup)
	specs := f.Specs(&lock, lookup)
	open, work := specs["open"], specs["work"]
	if open.Path != "" || open.Env != nil || open.Dir != "" || open.Web.Options.Endpoint.String() != "http://127.0.0.1:8080/mcp?tenant=7" || len(open.Web.Credentials) != 0 {
		t.Errorf("open: %+v %+v", open, open.Web)
	}
	o := work.Web.Options
	if got := fmt.Sprint(o.Endpoint, len(o.RootCAs), o.AllowPlain, o.RefusePrivate, o.Proxy, o.Connections, o.Connect, o.Idle, o.MaxHeader, o.MaxBody, o.MaxStream); got !=
		fmt.Sprint("https://mcp.example.org/mcp ", len(certificate), " false false <nil> 3 ", 10*time.Second, " ", time.Duration(0), " ", 64<<10, " ", 1<<20, " ", 64<<20) {
		t.Errorf("options: %s", got)
	}
	robot := work.Web.Credentials["default"]
	command := *robot.Command
	robot.Command, command.Verify = nil, nil
	issue := filepath.Join(f.Dir, "bin/issue")
	for what, pair := range map[string][2]any{
		"a": {work.Web.Credentials["a"], peer.Credential{Name: "alice", File: filepath.Join(f.Dir, "alice.token"), Scheme: "Bearer", Fixed: map[string]string{}}},
		"b": {work.Web.Credentials["b"], peer.Credential{Name: "bob", Token: "token-of-bob", Scheme: "Token",
			Fixed: map[string]string{"X-Org": "organisation-9", "X-Fixed": "v1"}}},
		"z":       {work.Web.Credentials["z"], work.Web.Credentials["a"]},
		"default": {robot, peer.Credential{Name: "robot", Scheme: "Bearer", Fixed: map[string]string{}}},
		"command": {command, peer.TokenCommand{Path: issue, Argv0: issue, Args: []string{"--for", "us"}, Env: []string{"CLIENT_SECRET=client-secret", "HOME=/home/x"}, Dir: f.Dir, Limit: 3000}},
	} {
		if got, want := fmt.Sprintf("%+v", pair[0]), fmt.Sprintf("%+v", pair[1]); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	if err := open.Web.Learn("learned-just-now"); err != nil {
		t.Fatal(err)
	}
	if got := string(work.Redact([]byte("token-of-bob learned-just-now organisation-9"))); got != "[redacted] [redacted] [redacted]" {
		t.Errorf("redacted: %s", got)
	}
	if err := open.Web.Learn("short"); err == nil {
		t.Error("a token was accepted that cannot be redacted")
	}
}

func TestAnEndpointThatHoldsASecretIsNotRecordedWithIt(t *testing.T) {
	f, err := loadText(t, twoTokens+"peers: {a: {transport: http, endpoint: 'https://h.example/?key=0123456789', authorization: x}}\n", testVars)
	if err != nil {
		t.Fatal(err)
	}
	b, err := domain.EncodeConfig(f.Domain(nil, environment(testVars)))
	if err != nil || bytes.Contains(b, []byte("0123456789")) || !bytes.Contains(b, []byte("?key=[redacted]")) {
		t.Errorf("%s, %v", b, err)
	}
}

// A variable that is not set keeps nobody from reading the configuration; the peer that
// needs it is refused, and told apart from those that do not.
func TestAPeerWhoseVariableIsNotSetIsRefused(t *testing.T) {
	f, all := remote(t)
	lock, failed := f.Pin(all)
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	for _, missing := range []string{"BOB", "ORG"} {
		lookup := func(name string) (string, bool) {
			if name == missing {
				return "", false
			}
			return all(name)
		}
		if _, err := LoadWith(f.Path, lookup); err != nil {
			t.Fatalf("without %s: %v", missing, err)
		}
		c := f.Domain(&lock, lookup)
		if open, work := c.Peers[0], c.Peers[1]; open.Refusal != "" || work.Refusal != domain.CodeUnauthorized || !strings.Contains(work.RefusalReason, "bob: the variable "+missing+" is not set") {
			t.Errorf("without %s: %q %q, %q", missing, open.Refusal, work.Refusal, work.RefusalReason)
		}
	}
	if c := f.Domain(&lock, all); c.Peers[1].Refusal != "" {
		t.Errorf("%q", c.Peers[1].RefusalReason)
	}
}
