package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
)

// over is a file whose peer a is an endpoint, with further lines of it from line 5.
func over(lines string) string {
	return "peers:\n  a:\n    transport: http\n    endpoint: https://mcp.example.org/mcp\n    " + lines + "\n"
}

// at is a file whose peer a has this endpoint.
func at(endpoint string) string {
	return "peers:\n  a:\n    transport: http\n    endpoint: '" + endpoint + "'\n"
}

const twoTokens = "authorizations: {x: {token_env: TOKEN}, y: {token_env: TOKEN}}\n"

// badHTTP are the mistakes of peers that are endpoints, and of endpoints of peers
// that are none.
var badHTTP = slices.Concat(misplaced(), []mistake{
	{"no transport", "peers:\n  a:\n    endpoint: https://h.example\n", 3, "peers.a.endpoint", "write transport: http"},
	{"no endpoint", "peers:\n  a:\n    transport: http\n", 2, "peers.a.endpoint", "missing: give the address"},
	{"endpoint is a number", "peers:\n  a:\n    transport: http\n    endpoint: 1\n", 4, "peers.a.endpoint", "must be text, not a whole number"},
	{"endpoint is empty", at(""), 4, "peers.a.endpoint", "must be like https://HOST:PORT or http://HOST:PORT"},
	{"endpoint without a scheme", at("mcp.example.org/mcp"), 4, "peers.a.endpoint", "must be like"},
	{"endpoint without a host", at("https:///mcp"), 4, "peers.a.endpoint", "must be like"},
	{"endpoint of another scheme", at("wss://mcp.example.org/"), 4, "peers.a.endpoint", "must be like"},
	{"endpoint without slashes", at("https:mcp.example.org"), 4, "peers.a.endpoint", "must be like"},
	{"endpoint with a bad port", at("https://h.example:0/"), 4, "peers.a.endpoint", "must be like"},
	{"endpoint with a large port", at("https://h.example:65536/"), 4, "peers.a.endpoint", "must be like"},
	{"endpoint with no port after its colon", at("https://h.example:/"), 4, "peers.a.endpoint", "must be like"},
	{"endpoint with half an address", at("https://10.1/"), 4, "peers.a.endpoint", "must be like"},
	{"endpoint with a bad host", at("https://a..b/"), 4, "peers.a.endpoint", "must be like"},
	{"endpoint with a user", at("https://user:hunter2@h.example/"), 4, "peers.a.endpoint", "must hold no user or password: name an authorization"},
	{"endpoint with a fragment", at("https://h.example/mcp#x"), 4, "peers.a.endpoint", "must hold no fragment"},
	{"endpoint with an empty fragment", at("https://h.example/mcp#"), 4, "peers.a.endpoint", "must hold no fragment"},
	{"endpoint with a blank", at("https://h.example/a b"), 4, "peers.a.endpoint", "write it percent-encoded"},
	{"endpoint beyond ASCII", at("https://bücher.example/"), 4, "peers.a.endpoint", "a host in its ASCII form"},
	{"endpoint is long", at("https://h.example/" + strings.Repeat("x", 2048)), 4, "peers.a.endpoint", "longer than 2048 bytes"},
	{"plain http", at("http://h.example/"), 4, "peers.a.endpoint", "write https, or allow_http: true"},
	{"plain http to an address", at("http://192.168.1.1:80/"), 4, "peers.a.endpoint", "allow_http"},
	{"plain http to what looks local", at("http://localhost.example/"), 4, "peers.a.endpoint", "allow_http"},
	{"allow_http is text", over("allow_http: 'yes'"), 5, "peers.a.allow_http", "must be true or false"},
	{"private_addresses", over("private_addresses: none"), 5, "peers.a.private_addresses", `"none" is not one of allowed, refused`},
	{"proxy of another scheme", over("proxy: ftp://h.example"), 5, "peers.a.proxy", "must be like http://HOST:PORT or https://HOST:PORT or socks5://HOST:PORT"},
	{"proxy with a password", over("proxy: http://u:hunter2@h.example"), 5, "peers.a.proxy", "name a proxy that needs none"},
	{"proxy with a path", over("proxy: http://h.example/x"), 5, "peers.a.proxy", "without a path"},
	{"proxy with a query", over("proxy: http://h.example/?x"), 5, "peers.a.proxy", "without a path"},
	{"proxy is empty", over("proxy: ''"), 5, "peers.a.proxy", "must be like"},
	{"proxy with private_addresses", over("private_addresses: refused\n    proxy: socks5://h.example:1080"), 6, "peers.a.proxy", "keep one of the two"},
	{"connections zero", over("connections: 0"), 5, "peers.a.connections", "from 1 to 1024"},
	{"connections many", over("connections: 1025"), 5, "peers.a.connections", "from 1 to 1024"},
	{"connect_timeout zero", over("connect_timeout: 0s"), 5, "peers.a.connect_timeout", "from 1ms to 10m"},
	{"stream_idle short", over("stream_idle: 1ms"), 5, "peers.a.stream_idle", "from 1s to 24h, or 0 for none"},
	{"ca_file is empty", over("ca_file: ''"), 5, "peers.a.ca_file", "is empty"},
	{"ca_file is not there", over("ca_file: no-such-file.pem"), 5, "peers.a.ca_file", "cannot be read"},
	{"ca_file without certificates", over("ca_file: waybill.yaml"), 5, "peers.a.ca_file", "holds no certificate in PEM"},
	{"legacy HTTP+SSE", over("legacy_revisions: [2025-11-25, 2024-11-05]"), 5, "peers.a.legacy_revisions[1]", "2024-11-05 is the HTTP+SSE transport, which is not spoken here"},
	{"an unknown revision over http", over("legacy_revisions: [2023-01-01]"), 5, "peers.a.legacy_revisions[0]", "is not one of 2025-11-25, 2025-06-18, 2025-03-26"},
	{"unknown key over http", over("timeout: 1s"), 5, "peers.a.timeout", "unknown key"},
	{"authorization unknown", over("authorization: z"), 5, "peers.a.authorization", `"z" is none of the authorizations of this file`},
	{"authorization is a list", over("authorization: [x]"), 5, "peers.a.authorization", "must be text, not a list"},
	{"authorization twice", twoTokens + over("authorization: x\n    authorizations: [y]"), 7, "peers.a.authorizations", "is given beside authorization"},
	{"authorizations is text", over("authorizations: x"), 5, "peers.a.authorizations", "must be a list of names, or a mapping"},
	{"authorizations is empty", over("authorizations: []"), 5, "peers.a.authorizations", "is empty"},
	{"authorizations is an empty mapping", over("authorizations: {}"), 5, "peers.a.authorizations", "is empty"},
	{"authorizations unknown", twoTokens + over("authorizations: [x, z]"), 6, "peers.a.authorizations[1]", `"z" is none of`},
	{"authorizations twice", twoTokens + over("authorizations: [x, x]"), 6, "peers.a.authorizations[1]", "listed twice"},
	{"authorizations of a bad context", twoTokens + over("authorizations: {Alice: x}"), 6, "peers.a.authorizations.Alice", "is no name of a context"},
	{"authorizations of a context unknown", twoTokens + over("authorizations: {alice: z}"), 6, "peers.a.authorizations.alice", `"z" is none of`},
	{"authorizations of a context no text", twoTokens + over("authorizations: {alice: [x]}"), 6, "peers.a.authorizations.alice", "must be text, not a list"},
	{"allow_legacy in two contexts", twoTokens + over("authorizations: [x, y]\n    allow_legacy: true"), 7, "peers.a.allow_legacy", "give each a peer of its own"},
	{"one credential for two origins", twoTokens + over("authorization: x") + "  b: {transport: http, endpoint: 'https://mcp.example.org:8443/mcp', authorization: x}\n",
		7, "peers.b.authorization", "x goes to https://mcp.example.org:443 already"},
	{"one credential for two schemes", twoTokens + over("authorizations: {u: x, v: y}") + "  b: {transport: http, endpoint: 'http://mcp.example.org:443', allow_http: true, authorizations: {v: y}}\n",
		7, "peers.b.authorizations.v", "make another authorization"},
})

// misplaced makes a mistake of each key that the transport of its peer does not know.
func misplaced() []mistake {
	values := map[string]string{"command": "x", "args": "[x]", "env": "[A]", "set": "{A: x}", "secret_env": "[A]", "cwd": ".", "unpinned_code": "accepted",
		"data_files": "[x]", "shutdown_timeout": "1s", "endpoint": "https://h.example", "authorization": "x", "authorizations": "[x]", "ca_file": "x",
		"allow_http": "true", "private_addresses": "refused", "proxy": "http://h.example", "connections": "1", "connect_timeout": "1s", "stream_idle": "0"}
	var all []mistake
	for _, key := range []string{"command", "args", "env", "set", "secret_env", "cwd", "unpinned_code", "data_files", "shutdown_timeout"} {
		all = append(all, mistake{key + " of an endpoint", over(key + ": " + values[key]), 5, "peers.a." + key, "is about a process, and a peer over http is none"})
		delete(values, key)
	}
	for key, value := range values {
		all = append(all, mistake{key + " of a process", with(key + ": " + value), 4, "peers.a." + key, "is about an endpoint, and this peer is a process"})
	}
	return all
}

func TestEndpointsAreRead(t *testing.T) {
	for endpoint, plain := range map[string]bool{
		"https://mcp.example.org/mcp?tenant=7": false, "https://mcp.example.org": false, "HTTPS://MCP.example.org:8443/a%20b": false, "https://[2001:db8::1]:443/": false,
		"http://localhost:3000/mcp": false, "http://LocalHost/": false, "http://127.0.0.1/": false, "http://127.8.9.1:1/": false, "http://[::1]/": false, "http://[::ffff:127.0.0.1]/": false,
		"http://my_server.internal./mcp": true, "http://10.0.0.1/": true, "https://h.example/" + strings.Repeat("x", 2048-18): false,
	} {
		f, err := loadText(t, at(endpoint)+fmt.Sprintf("    allow_http: %t\n", plain), nil)
		if err != nil {
			t.Errorf("%s: %v", endpoint, err)
			continue
		}
		if h := f.Peers[0].HTTP; h.Endpoint != endpoint || h.URL.Host == "" || h.AllowPlain != plain {
			t.Errorf("%s: read as %+v", endpoint, h)
		}
	}
}

func TestWhatAnEndpointHasByDefaultAndByKeys(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "ca.pem"), certificate, 0o644)
	load := func(content string) *Peer {
		f, err := LoadWith(put(t, filepath.Join(dir, "waybill.yaml"), content, 0o644), environment(map[string]string{"TOKEN": "0123456789"}))
		if err != nil {
			t.Fatal(err)
		}
		return &f.Peers[0]
	}
	got := func(p *Peer) string {
		h := p.HTTP
		return fmt.Sprint(p.Transport+" ", p.Command, p.AllowLegacy, p.LegacyRevisions, len(h.RootCAs) > 0, h.AllowPlain, h.RefusePrivate, h.Proxy, h.Connections, h.Connect, h.Idle, h.Contexts, h.Credentials)
	}
	for _, c := range []struct{ name, content, want string }{
		{"defaults", over("probe_timeout: 10s"), "http false [2025-11-25 2025-06-18 2025-03-26] false false false <nil> 16 10s 30m0s [] map[]"},
		{"all", twoTokens + over("authorization: x\n    ca_file: ca.pem\n    private_addresses: refused\n    connections: 1024\n    connect_timeout: 1s\n"+
			"    stream_idle: 0\n    allow_legacy: true\n    legacy_revisions: [2025-03-26]"), "http true [2025-03-26] true false true <nil> 1024 1s 0s [] map[default:x]"},
		{"proxy", over("proxy: socks5://127.0.0.1:1080/"), "http false [2025-11-25 2025-06-18 2025-03-26] false false false socks5://127.0.0.1:1080/ 16 10s 30m0s [] map[]"},
		{"a list", twoTokens + over("authorizations: [y, x]"), "http false [2025-11-25 2025-06-18 2025-03-26] false false false <nil> 16 10s 30m0s [x y] map[x:x y:y]"},
		{"a mapping", twoTokens + over("authorizations: {one: y, default: y}"), "http false [2025-11-25 2025-06-18 2025-03-26] false false false <nil> 16 10s 30m0s [default one] map[default:y one:y]"},
		{"legacy in one context", twoTokens + over("authorizations: {one: y}\n    allow_legacy: true"), "http true [2025-11-25 2025-06-18 2025-03-26] false false false <nil> 16 10s 30m0s [one] map[one:y]"},
	} {
		if got := got(load(c.content)); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

// One authorization may go to several endpoints of one origin.
func TestAnOriginIsSchemeHostAndPort(t *testing.T) {
	f, err := loadText(t, twoTokens+over("authorization: x")+
		"  b: {transport: http, endpoint: 'https://MCP.example.org:443/other', authorizations: [x, y]}\n", testVars)
	if err != nil || len(f.Warnings) != 0 {
		t.Errorf("got %v, %v", f, err)
	}
}

func TestAnAddressIsNotRepeatedInErrors(t *testing.T) {
	for _, content := range []string{at("https://user:hunter2@h.example/"), over("proxy: http://u:hunter2@h.example"), at("ftp://user:hunter2@h.example/"), at("https://hunter2 /")} {
		if _, err := loadText(t, content, nil); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
}

// A peer that is an endpoint is held to the same bounds as one that is a process.
func TestTheOtherKeysHoldForBothTransports(t *testing.T) {
	lines := "call_timeout: 5s\n    inflight: 3\n    hung_after: 0\n    list_interval: 2s\n    probe_timeout: 1s\n    trust_hints: true\n    repeatable: [x]\n    capabilities: {a: {}}\n    payloads: full"
	one, other := mustLoad(t, with(lines)).Domain(nil, environment(nil)).Peers[0], mustLoad(t, over(lines)).Domain(nil, environment(nil)).Peers[0]
	other.Transport, other.Command, other.Endpoint = one.Transport, one.Command, ""
	other.LegacyRevisions, other.Refusal, other.RefusalReason = one.LegacyRevisions, one.Refusal, one.RefusalReason
	if !reflect.DeepEqual(one, other) {
		t.Errorf("a process\n%+v\nan endpoint\n%+v", one, other)
	}
	if domain.TransportHTTP != transportHTTP || domain.TransportStdio != transportStdio {
		t.Error("the words of the configuration are not those of decisions")
	}
}

const certificate = `-----BEGIN CERTIFICATE-----
MIIBPzCB56ADAgECAgEBMAoGCCqGSM49BAMCMA8xDTALBgNVBAMTBHRlc3QwIBcN
MjMxMTE0MjIxMzIwWhgPMjA5NjEwMDIwNzA2NDBaMA8xDTALBgNVBAMTBHRlc3Qw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATDKGwXWKCvnzgyjKglTxxVc215T9sh
yChCYtYjGGmXr5k9iV/MStbJ9Eu3WnAEC009Lq2yjQGq/7vj9Ivu8fNSozIwMDAP
BgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBSmFoX2jbCl9F41JZr10l4tI8ze5TAK
BggqhkjOPQQDAgNHADBEAiBoDdAivALlFtwZNAqu+IkdjydhncDSYSKZNyXmX0wQ
WgIgboX0F+DeSR3EeSwiHY1vj/kpnWYNeCi9ZW7CXNl8OHk=
-----END CERTIFICATE-----
`
