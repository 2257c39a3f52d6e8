package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"waybill/domain"
)

// authorized is a file with one authorization, whose first line is line 2.
func authorized(lines string) string {
	return "authorizations:\n  x: " + lines + "\n" + over("authorization: x")
}

// badAuthorizations are the mistakes of the section authorizations, and of what
// stands in the place of one.
var badAuthorizations = []mistake{
	{"authorizations are a list", "authorizations: []\n" + peers, 1, "authorizations", "must be a mapping, not a list"},
	{"authorization of a bad name", "authorizations: {X: {token_env: TOKEN}}\n" + peers, 1, "authorizations.X", "a name is"},
	{"authorization is text", authorized("TOKEN"), 2, "authorizations.x", "must be a mapping, not text"},
	{"authorization is nothing", authorized(""), 2, "authorizations.x", "has no value"},
	{"authorization is empty", authorized("{}"), 2, "authorizations.x", "says nothing: give one of token_file, token_env, token_command, or headers"},
	{"two ways in", authorized("{token_file: x, token_env: TOKEN}"), 2, "authorizations.x.token_env", "is given beside token_file: keep one"},
	{"token_file is empty", authorized("{token_file: ''}"), 2, "authorizations.x.token_file", "is empty"},
	{"token_env is empty", authorized("{token_env: ''}"), 2, "authorizations.x.token_env", "is not the name of a variable"},
	{"token_env is no variable", authorized("{token_env: a-b}"), 2, "authorizations.x.token_env", "is not the name of a variable"},
	{"token_env is a number", authorized("{token_env: 1}"), 2, "authorizations.x.token_env", "must be text"},
	{"token_env is short", authorized("{token_env: SHORT}"), 2, "authorizations.x.token_env", "the value of SHORT cannot be found and redacted, because it has fewer than 8 bytes"},
	{"token_env like its replacement", authorized("{token_env: WORD}"), 2, "authorizations.x.token_env", "a part of [redacted]"},
	{"token_env with a blank", authorized("{token_env: BLANK}"), 2, "authorizations.x.token_env", "cannot stand in a header"},
	{"token_env of two lines", authorized("{token_env: LINES}"), 2, "authorizations.x.token_env", "cannot stand in a header"},
	{"token_command is text", authorized("{token_command: x}"), 2, "authorizations.x.token_command", "must be a mapping, not text"},
	{"token_command without a command", authorized("{token_command: {args: [x]}}"), 2, "authorizations.x.token_command.command", "missing: name the program of this token_command"},
	{"token_command with an unknown key", authorized("{token_command: {command: x, set: {A: b}}}"), 2, "authorizations.x.token_command.set", "unknown key"},
	{"token_command timeout", authorized("{token_command: {command: x, timeout: 0s}}"), 2, "authorizations.x.token_command.timeout", "from 1ms to 10m"},
	{"token_command with a short secret", authorized("{token_command: {command: x, secret_env: [SHORT]}}"), 2, "authorizations.x.token_command.secret_env[0]", "fewer than 8 bytes"},
	{"scheme", authorized("{token_env: TOKEN, scheme: 'a b'}"), 2, "authorizations.x.scheme", "must be a word such as Bearer"},
	{"scheme without a token", authorized("{headers: {X-Key: long enough}, scheme: Basic}"), 2, "authorizations.x.scheme", "none is given"},
	{"unknown key of an authorization", authorized("{token_envs: TOKEN, token_env: TOKEN}"), 2, "authorizations.x.token_envs", "did you mean token_env?"},
	{"headers are empty", authorized("{headers: {}}"), 2, "authorizations.x.headers", "is empty"},
	{"header of a bad name", authorized("{headers: {'X Key': long enough}}"), 2, "authorizations.x.headers.X Key", "not the name of a header"},
	{"header in other letters", authorized("{headers: {X-Key: long enough, x-key: long enough}}"), 2, "authorizations.x.headers.x-key", "is X-Key in other letters"},
	{"header beside a token", authorized("{token_env: TOKEN, headers: {authorization: long enough}}"), 2, "authorizations.x.headers.authorization", "is the header that the token goes into"},
	{"header is a list", authorized("{headers: {X-Key: [a]}}"), 2, "authorizations.x.headers.X-Key", "must be text, {env: NAME} or {file: PATH}, not a list"},
	{"header is nothing", authorized("{headers: {X-Key: }}"), 2, "authorizations.x.headers.X-Key", "has no value"},
	{"header is empty", authorized("{headers: {X-Key: ''}}"), 2, "authorizations.x.headers.X-Key", "cannot stand in a header"},
	{"header with a line end", authorized(`{headers: {X-Key: "a\nb"}}`), 2, "authorizations.x.headers.X-Key", "cannot stand in a header"},
	{"header from nowhere", authorized("{headers: {X-Key: {}}}"), 2, "authorizations.x.headers.X-Key", "must be {env: NAME} or {file: PATH}, and not both"},
	{"header from two places", authorized("{headers: {X-Key: {env: TOKEN, file: waybill.yaml}}}"), 2, "authorizations.x.headers.X-Key", "and not both"},
	{"header from elsewhere", authorized("{headers: {X-Key: {env: TOKEN, command: x}}}"), 2, "authorizations.x.headers.X-Key.command", "unknown key"},
	{"header of a short variable", authorized("{headers: {X-Key: {env: SHORT}}}"), 2, "authorizations.x.headers.X-Key.env", "fewer than 8 bytes"},
	{"header of a file that is not there", authorized("{headers: {X-Key: {file: nowhere}}}"), 2, "authorizations.x.headers.X-Key.file", "cannot be read"},
	{"header of a file of lines", authorized("{headers: {X-Key: {file: waybill.yaml}}}"), 2, "authorizations.x.headers.X-Key.file", "what is in waybill.yaml cannot stand in a header"},
	{"oauth at the top", "oauth: {client_id: x}\n" + peers, 1, "oauth", "the work of another program"},
	{"oauth of an authorization", authorized("{token_env: TOKEN, oauth2: {client_id: x}}"), 2, "authorizations.x.oauth2", "with token_file, token_env or token_command"},
	{"oauth of a token command", authorized("{token_command: {command: x, OAuth: {}}}"), 2, "authorizations.x.token_command.OAuth", "token_file, token_env or token_command"},
	{"oauth as an authorization", "authorizations: {oauth: {client_id: x}}\n" + peers, 1, "authorizations.oauth", "token_file, token_env or token_command"},
	{"oauth of an endpoint", over("oauth: {client_id: x}"), 5, "peers.a.oauth", "token_file, token_env or token_command"},
}

func TestHeadersOfOurOwnAreReserved(t *testing.T) {
	for _, name := range []string{"Accept", "content-TYPE", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Host", "Connection", "Cookie",
		"Mcp-Session-Id", "mcp-param-x", "MCP-Protocol-Version", "Last-Event-ID", "Accept-Encoding", "Proxy-Authorization", "TE", "Upgrade"} {
		_, err := loadText(t, authorized("{headers: {"+name+": long enough}}"), testVars)
		if err == nil || !strings.Contains(err.Error(), ":2: authorizations.x.headers."+name+": is a header that requests have of themselves") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "x_y", "User-Agent"} {
		if _, err := loadText(t, authorized("{headers: {"+name+": long enough}}"), testVars); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is only called oauth is no block.
func TestANameMayBeOauth(t *testing.T) {
	f, err := loadText(t, "authorizations: {oauth: {token_env: TOKEN, headers: {OAuth: v1}}}\n"+
		"peers: {oauth: {transport: http, endpoint: 'https://h.example', authorizations: {oauth: oauth}}}\nhosts: {oauth: {context: oauth}, local: {}}\n", testVars)
	if err != nil || f.Peers[0].HTTP.Credentials["oauth"] != "oauth" || len(f.Warnings) != 0 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestAnAuthorizationThatNobodyUsesIsWarnedOf(t *testing.T) {
	f, err := loadText(t, "authorizations: {x: {token_env: TOKEN}, idle: {token_file: t}}\n"+over("authorization: x"), testVars)
	if err != nil || len(f.Warnings) != 1 || !strings.HasSuffix(f.Warnings[0], "authorizations.idle: no peer uses it") {
		t.Errorf("got %v, %v", f.Warnings, err)
	}
}

// secretive is a file with every source of a secret, beside its files.
func secretive(t *testing.T) (*File, func(string) (string, bool), []string) {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "token"), "\n file-token-1\n", 0o600)
	put(t, filepath.Join(dir, "key"), "file-header-1\n", 0o600)
	path := put(t, filepath.Join(dir, "waybill.yaml"), `
authorizations:
  file: {token_file: token}
  gone: {token_file: no-such-token}
  env: {token_env: ENV_TOKEN, scheme: Basic}
  command: {token_command: {command: /bin/echo, args: [token], env: [HOME], secret_env: [CLIENT_SECRET], timeout: 3s}}
  fixed: {headers: {X-Text: text-header-1, X-Env: {env: ENV_HEADER}, X-File: {file: key}, X-Short: v1}}
peers:
  a: {transport: http, endpoint: 'https://h.example/mcp', authorizations: [file, gone, env, command, fixed]}
  b: {command: x, secret_env: [PEER_SECRET]}
`, 0o644)
	lookup := environment(map[string]string{"ENV_TOKEN": "env-token-1", "ENV_HEADER": "env-header-1", "CLIENT_SECRET": "client-secret-1",
		"PEER_SECRET": "peer-secret-1", "HOME": "/home/somebody", "PATH": "/bin"})
	f, err := LoadWith(path, lookup)
	if err != nil {
		t.Fatal(err)
	}
	return f, lookup, []string{"client-secret-1", "env-header-1", "env-token-1", "file-header-1", "file-token-1", "peer-secret-1", "text-header-1"}
}

func TestEverySecretIsKnown(t *testing.T) {
	f, lookup, want := secretive(t)
	got := f.Secrets(lookup)
	if i := slices.Index(got, "v1"); i >= 0 {
		got = slices.Delete(got, i, i+1) // too short to be one
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if all, err := f.AllSecrets(lookup); err != nil || !slices.Contains(all, "file-token-1") {
		t.Errorf("all: %q, %v", all, err)
	}
	redacted := string(f.Specs(nil, lookup)["a"].Redact([]byte(strings.Join(want, " "))))
	if redacted != strings.TrimSpace(strings.Repeat("[redacted] ", len(want))) {
		t.Errorf("redacted: %s", redacted)
	}
	c, err := domain.EncodeConfig(f.Domain(nil, lookup))
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%s %+v %#v %v", c, *f, *f, f.Authorizations)
	for _, secret := range want {
		if strings.Contains(shown, secret) {
			t.Errorf("%s is shown", secret)
		}
	}
	put(t, filepath.Join(f.Dir, "token"), "file-token-2", 0o600)
	if got := f.Secrets(lookup); !slices.Contains(got, "file-token-2") || slices.Contains(got, "file-token-1") {
		t.Errorf("after a change: %q", got)
	}
}

func TestTheErrorOfABadSecretDoesNotHoldIt(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "key"), "geheim!\n", 0o600)
	for _, lines := range []string{"{token_env: SHORT}", "{token_env: LINES}", "{headers: {X-Key: {env: SHORT}}}", "{headers: {X-Key: {file: key}}}", `{headers: {X-Key: "geheim!\n"}}`} {
		_, err := LoadWith(put(t, filepath.Join(dir, "waybill.yaml"), authorized(lines), 0o644), environment(testVars))
		if err == nil || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "01234") {
			t.Errorf("%s: %v", lines, err)
		}
	}
}

// A token file that is not there yet is no mistake: another program writes it.
func TestATokenFileMayComeLater(t *testing.T) {
	f, lookup, _ := secretive(t)
	c := f.Specs(nil, lookup)["a"].Web.Credentials["gone"]
	if _, err := os.Stat(c.File); err == nil || c.File != filepath.Join(f.Dir, "no-such-token") {
		t.Errorf("got %+v", c)
	}
}
