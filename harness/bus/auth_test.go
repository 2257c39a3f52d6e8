package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"waybill/events"
)

func TestWriteCredentialsMakesWhatIsMissingAndNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	made := must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost}))
	want := []string{"service.nk", "replier.nk", "operator.nk", "host-local.nk", AccountsFile}
	if got := baseNames(made); !slices.Equal(got, want) {
		t.Fatalf("made %v, want %v", got, want)
	}
	before := readAll(t, dir)
	made = must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost}))
	if len(made) != 0 || !equalFiles(before, readAll(t, dir)) {
		t.Fatalf("the second call made %v or changed a file", made)
	}
	if err := os.Remove(filepath.Join(dir, AccountsFile)); err != nil {
		t.Fatal(err)
	}
	made = must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost}))
	if got := baseNames(made); !slices.Equal(got, []string{AccountsFile}) || !equalFiles(before, readAll(t, dir)) {
		t.Fatalf("made %v, want the same configuration again", got)
	}
}

func TestWriteCredentialsSaysThatTheConfigurationLacksAUser(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	made, err := WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost, "second"})
	if !errors.Is(err, ErrStaleAccounts) || !strings.Contains(err.Error(), "second") {
		t.Fatalf("error %v, want ErrStaleAccounts that names the host", err)
	}
	if got := baseNames(made); !slices.Equal(got, []string{"host-second.nk"}) {
		t.Fatalf("made %v, want the new seed", got)
	}
}

func TestWriteCredentialsSurvivesACrashBetweenWritingAndLinking(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "service.nk.tmp"), []byte("SUA"), 0o644); err != nil {
		t.Fatal(err)
	}
	must[[]string](t)(WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost}))
	must[Credentials](t)(LoadCredentials(dir))
	if left := must[[]string](t)(filepath.Glob(filepath.Join(dir, "*.tmp"))); len(left) != 0 {
		t.Fatalf("left %v", left)
	}
}

func TestSeedsCanBeReadByTheirOwnerOnly(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	for _, path := range must[[]string](t)(filepath.Glob(filepath.Join(dir, "*"))) {
		if mode := must[fs.FileInfo](t)(os.Stat(path)).Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %v", path, mode)
		}
	}
}

func TestPrintedCredentialsShowNoSeed(t *testing.T) {
	dir, c := writeCredentials(t, LocalHost)
	id := must[Identity](t)(c.Host(LocalHost))
	shown := fmt.Sprintf("%v %+v %#v %s %v %+v %#v", c, c, c, c, id, id, id)
	shown += readAll(t, dir)[AccountsFile]
	shown += fmt.Sprintf("%+v %#v", ServerConfig{Credentials: c}, ServerConfig{Credentials: c})
	for name, data := range readAll(t, dir) {
		if strings.HasSuffix(name, ".nk") && strings.Contains(shown, strings.TrimSpace(data)) {
			t.Errorf("the seed of %s is shown in %s", name, shown)
		}
	}
	if !strings.Contains(shown, id.Public()) {
		t.Errorf("the public key is not shown in %s", shown)
	}
}

func TestBadNamesAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	for _, tc := range []struct{ prefix, log, host string }{
		{"waybill", testLog, "Upper"},
		{"waybill", testLog, "a.b"},
		{"waybill", testLog, "*"},
		{"waybill", testLog, ""},
		{"waybill", testLog, "service"},
		{"waybill", testLog, "replier"},
		{"waybill", testLog, "operator"},
		{"waybill", testLog, strings.Repeat("a", 64)},
		{"way bill", testLog, "a"},
		{"_INBOX", testLog, "a"},
		{"$JS", testLog, "a"},
		{"waybill.", testLog, "a"},
		{"waybill", "a.b", "a"},
		{"waybill", "", "a"},
	} {
		dir := filepath.Join(t.TempDir(), "keys")
		if _, err := WriteCredentials(dir, tc.prefix, tc.log, []string{tc.host}); err == nil {
			t.Errorf("%+v was accepted", tc)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: the directory was made", tc)
		}
	}
	if _, err := WriteCredentials(t.TempDir(), "waybill", testLog, []string{"a", "b", "a"}); err == nil {
		t.Error("a host named twice was accepted")
	}
}

func TestLoadingMissingOrBadCredentialsSaysWhatToDo(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost, "second")
	expect := func(what string, err error, words ...string) {
		t.Helper()
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: error %v does not say %q", what, err, word)
			}
		}
	}
	_, err := LoadHost(dir, "third")
	expect("unknown host", err, `"third"`, "--host", "local, second")
	_, err = LoadHost(t.TempDir(), LocalHost)
	expect("empty directory", err, "host-local.nk", "run waybill init")
	_, err = LoadCredentials(t.TempDir())
	expect("empty directory", err, "service.nk", "run waybill init")
	if err := os.WriteFile(filepath.Join(dir, "replier.nk"), []byte("SUABC\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = LoadCredentials(dir)
	expect("damaged seed", err, "replier.nk", "run waybill init")
}

// permission is one thing that a user may or may not do.
type permission struct {
	publish bool
	subject string
	allowed bool
}

var permissions = map[string][]permission{
	LocalHost: {
		{true, "waybill.v1.call.local", true},
		{true, "waybill.v1.tools.local", true},
		{true, "waybill.v1.call.other", false},
		{true, "waybill.v1.events." + testLog + ".call.routed.-", false},
		{true, "waybill.v1.checkpoint." + testLog, false},
		{true, "waybill.v1.checkpoint.local", false},
		{true, "waybill.v1.op.reload.local", false},
		{true, "waybill.v1.op.revive.local", false},
		{true, "waybill.v1.op.local", false},
		{true, "waybill.v1.progress.local", false},
		{true, "waybill.v1.progress.local.x", false},
		{true, "waybill.v1.progress.other.x", false},
		{true, "_INBOX.operator.x", false},
		{true, "_INBOX.local.x", false},
		{true, "_INBOX.other.x", false},
		{true, "$JS.API.INFO", false},
		{true, "$SRV.PING", false},
		{false, "_INBOX.local.x", true},
		{false, "_INBOX.local.>", true},
		{false, "waybill.v1.progress.local.>", true},
		{false, "waybill.v1.progress.local.x", true},
		{false, "waybill.v1.progress.other.>", false},
		{false, "waybill.v1.progress.other.x", false},
		{false, "waybill.v1.progress.*.x", false},
		{false, "waybill.v1.progress.>", false},
		{false, "waybill.v1.op.*.*", false},
		{false, "_INBOX.operator.>", false},
		{false, "waybill.v1.events.>", true},
		{false, "waybill.v1.events." + testLog + ".call.>", true},
		{false, "waybill.v1.checkpoint.>", true},
		{false, "waybill.v1.checkpoint." + testLog, true},
		{true, "$JS.API.DIRECT.GET." + CheckpointStreamName(testLog) + ".waybill.v1.checkpoint." + testLog, false},
		{true, "$JS.API.STREAM.MSG.GET." + StreamName(testLog), false},
		{true, "$JS.API.CONSUMER.CREATE." + StreamName(testLog), false},
		{false, "_INBOX.other.x", false},
		{false, "_INBOX.service.>", false},
		{false, "_INBOX.>", false},
		{false, ">", false},
		{false, "*.*.*.*", false},
		{false, "waybill.v1.call.local", false},
		{false, "waybill.v1.call.*", false},
		{false, "waybill.v1.>", false},
		{false, "$JS.API.>", false},
	},
	"other": {
		{true, "waybill.v1.call.other", true},
		{true, "waybill.v1.call.local", false},
		{false, "waybill.v1.progress.other.x", true},
		{false, "waybill.v1.progress.local.x", false},
		{false, "_INBOX.local.>", false},
		{false, "_INBOX.other.>", true},
	},
	operatorUser: {
		{true, "waybill.v1.op.revive.ann", true},
		{true, "waybill.v1.op.resend.ann", true},
		{true, "waybill.v1.op.revive", false},
		{true, "waybill.v1.call.local", false},
		{true, "waybill.v1.call.operator", false},
		{true, "waybill.v1.cancel.local", false},
		{true, "waybill.v1.progress.local.x", false},
		{true, "waybill.v1.events." + testLog + ".call.routed.-", false},
		{true, "_INBOX.operator.x", false},
		{true, "_INBOX.local.x", false},
		{true, "$JS.API.INFO", false},
		{true, "$SRV.PING", false},
		{false, "_INBOX.operator.>", true},
		{false, "_INBOX.local.>", false},
		{false, "_INBOX.>", false},
		{false, "waybill.v1.op.*.*", false},
		{false, "waybill.v1.events.>", false},
		{false, "waybill.v1.checkpoint.>", false},
		{false, "waybill.v1.progress.>", false},
		{false, "waybill.v1.call.*", false},
	},
	replierUser: {
		{true, "_INBOX.local.x", true},
		{true, "_INBOX.operator.x", true},
		{true, "waybill.v1.progress.local.x", true},
		{true, "waybill.v1.progress.local.x.y", false},
		{true, "waybill.v1.op.revive.ann", false},
		{true, "waybill.v1.events." + testLog + ".call.routed.-", false},
		{true, "waybill.v1.checkpoint." + testLog, false},
		{true, "waybill.v1.call.local", false},
		{true, "$JS.API.INFO", false},
		{false, "waybill.v1.call.*", true},
		{false, "waybill.v1.op.revive.*", true},
		{false, "waybill.v1.op.resend.*", true},
		{false, "waybill.v1.progress.>", false},
		{false, "waybill.v1.progress.local.x", false},
		{false, "$SRV.PING", true},
		{false, "waybill.v1.events.>", false},
		{false, "waybill.v1.checkpoint.*", false},
		{false, "waybill.>", false},
		{false, "_INBOX.local.>", false},
	},
	serviceUser: {
		{true, "waybill.v1.events." + testLog + ".call.routed.-", true},
		{true, "waybill.v1.checkpoint." + testLog, true},
		{true, "$SRV.PING", true},
		{true, "$JS.API.STREAM.INFO." + StreamName(testLog), true},
		{true, "$JS.API.STREAM.INFO." + CheckpointStreamName(testLog), true},
		{true, "$JS.API.STREAM.DELETE." + CheckpointStreamName(testLog), false},
		{true, "$JS.API.STREAM.PURGE." + CheckpointStreamName(testLog), false},
		{true, "$JS.API.STREAM.UPDATE." + CheckpointStreamName(testLog), false},
		{true, "$JS.API.STREAM.MSG.DELETE." + CheckpointStreamName(testLog), false},
		{true, "waybill.v1.checkpoint.other-00000000", false},
		{false, "waybill.v1.checkpoint." + testLog, true},
		{true, "$JS.API.STREAM.DELETE." + StreamName(testLog), false},
		{true, "$JS.API.STREAM.PURGE." + StreamName(testLog), false},
		{true, "$JS.API.STREAM.UPDATE." + StreamName(testLog), false},
		{true, "$JS.API.STREAM.MSG.DELETE." + StreamName(testLog), false},
		{true, "waybill.v1.events.other-00000000.call.routed.-", false},
		{true, "waybill.v1.call.local", false},
		{true, "waybill.v1.op.revive.ann", false},
		{true, "waybill.v1.progress.local.x", false},
		{false, "waybill.v1.progress.>", false},
		{true, "_INBOX.local.x", false},
		{false, "_INBOX.service.>", true},
		{false, "waybill.v1.call.*", false},
		{false, "_INBOX.local.>", false},
	},
}

func TestTheEmbeddedServerHoldsEachUserToItsSubjects(t *testing.T) {
	_, c := writeCredentials(t, LocalHost, "other")
	s := startServer(t, c)
	t.Run("socket", func(t *testing.T) { checkPermissions(t, c, Target{URL: s.ClientURL()}) })
	t.Run("in process", func(t *testing.T) { checkPermissions(t, c, Target{Server: s}) })
}

func TestTheReplierNeverSeesAnEvent(t *testing.T) {
	_, c := writeCredentials(t)
	s := startServer(t, c)
	replier, service := connect(t, c.Replier(), Target{Server: s}), connect(t, c.Service(), Target{Server: s})
	// The server lets this one be made; what matters is what it delivers.
	sub := must[*nats.Subscription](t)(replier.SubscribeSync("waybill.v1.*.>"))
	if err := replier.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{events.Subject(DefaultPrefix, testLog, "call.routed", ""), CheckpointSubject(DefaultPrefix, testLog)} {
		if err := service.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := replier.Publish(ProgressSubject(DefaultPrefix, LocalHost, "x"), nil); err != nil {
		t.Fatal(err)
	}
	for _, nc := range []*nats.Conn{service, replier} {
		if err := nc.FlushWithContext(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	if n, _, _ := sub.Pending(); n != 0 || !sub.IsValid() {
		t.Errorf("%d events received", n)
	}
}

func TestTheWrittenConfigurationGivesTheSamePermissions(t *testing.T) {
	dir, c := writeCredentials(t, LocalHost, "other")
	opts := must[*server.Options](t)(server.ProcessConfigFile(filepath.Join(dir, AccountsFile)))
	opts.Host, opts.Port = "127.0.0.1", server.RANDOM_PORT
	opts.NoSigs, opts.NoLog = true, true
	opts.JetStream, opts.StoreDir = true, t.TempDir()
	ns := must[*server.Server](t)(server.NewServer(opts))
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(patience) {
		t.Fatal("server not ready")
	}
	if nc, err := nats.Connect(ns.ClientURL()); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Fatalf("without a key: %v", err)
	}
	checkPermissions(t, c, Target{URL: ns.ClientURL()})
}

// checkPermissions tries every permission on its own connection. The server
// answers in order, so a round trip of something that is always refused shows
// that what came before it was not.
func checkPermissions(t *testing.T, c Credentials, to Target) {
	ids := map[string]Identity{serviceUser: c.Service(), replierUser: c.Replier(), operatorUser: c.Operator()}
	for _, name := range c.HostNames() {
		ids[name] = must[Identity](t)(c.Host(name))
	}
	for name, list := range permissions {
		refused := make(chan Violation, 8)
		to.OnViolation = func(v Violation) { refused <- v }
		nc := connect(t, ids[name], to)
		for _, p := range list {
			try(t, nc, p)
			if err := nc.Publish("never.permitted", nil); err != nil {
				t.Fatal(err)
			}
			got := receive(t, refused)
			if want := (Violation{p.publish, p.subject}); !p.allowed && got != want {
				t.Errorf("%s: %+v was allowed", name, p)
				continue
			}
			if !p.allowed {
				got = receive(t, refused)
			}
			if got != (Violation{true, "never.permitted"}) {
				t.Errorf("%s: %+v was refused", name, p)
				receive(t, refused)
			}
		}
	}
}

func try(t *testing.T, nc *nats.Conn, p permission) {
	t.Helper()
	var err error
	if p.publish {
		err = nc.Publish(p.subject, nil)
	} else {
		_, err = nc.SubscribeSync(p.subject)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func baseNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	return names
}

func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, path := range must[[]string](t)(filepath.Glob(filepath.Join(dir, "*"))) {
		files[filepath.Base(path)] = string(must[[]byte](t)(os.ReadFile(path)))
	}
	return files
}

func equalFiles(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, data := range a {
		if b[name] != data {
			return false
		}
	}
	return true
}
