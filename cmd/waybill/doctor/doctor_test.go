package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/events"
	"waybill/events/checkpoint"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/projections"
	"waybill/store"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newPatient makes a data directory in which nothing is wrong: a log of a few
// events, credentials, and a peer that is pinned.
func newPatient(t *testing.T, more ...string) Patient {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "waybill.yaml")
	yaml := strings.Join(append(more, "peers: {a: {command: /bin/true}}"), "\n") + "\n"
	noErr(t, os.WriteFile(file, []byte(yaml), 0o600))
	f, err := config.Load(file)
	noErr(t, err)
	lock, failed := f.Pin(os.LookupEnv)
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	noErr(t, config.WriteLock(f.LockPath(), lock))
	noErr(t, os.Mkdir(f.Data, 0o700))
	d := harness.DataDir(f.Data)
	id, _, err := d.Init(f.Node)
	noErr(t, err)
	_, err = bus.WriteCredentials(d.NATSDir(), "waybill", id, []string{"local"})
	noErr(t, err)
	l, err := store.Open(d.LogFile())
	noErr(t, err)
	for seq := int64(1); seq <= 3; seq++ {
		b, err := events.Seal(id, domain.Event{Seq: seq, Time: now.Add(-48 * time.Hour).UnixNano(), Data: domain.ServiceStopped{Reason: "signal"}})
		noErr(t, err)
		_, err = l.Append(t.Context(), seq-1, []store.Entry{{Type: "service.stopped", Bytes: b}})
		noErr(t, err)
	}
	noErr(t, l.Close())
	return Patient{File: f, Lookup: os.LookupEnv, Credentials: d.NATSDir(), Prefix: "waybill", Now: now,
		Ask: func(context.Context) (Service, error) { t.Error("nothing runs"); return Service{}, nil }}
}

// codes lists what was found, as "severity code".
func codes(t *testing.T, p Patient) []string {
	t.Helper()
	found, err := Examine(t.Context(), p)
	noErr(t, err)
	out := []string{}
	for _, f := range found.List {
		if f.Where == "" || f.What == "" || f.Do == "" {
			t.Errorf("%+v does not say where, what and what to do", f)
		}
		out = append(out, f.Severity+" "+f.Code)
	}
	return out
}

func TestNothingIsWrong(t *testing.T) {
	if found, err := Examine(t.Context(), newPatient(t)); err != nil || len(found.List) != 0 || found.Worst() != "" {
		t.Errorf("found %+v, %v", found, err)
	}
}

// Each case breaks one thing, and that is what is found: first, and alone unless
// it is the cause of more.
func TestEachFindingHasItsCode(t *testing.T) {
	away := func(names ...string) func(*testing.T, harness.DataDir) {
		return func(t *testing.T, d harness.DataDir) {
			for _, name := range names {
				noErr(t, os.RemoveAll(filepath.Join(string(d), name)))
			}
		}
	}
	mode := func(name string, mode os.FileMode) func(*testing.T, harness.DataDir) {
		return func(t *testing.T, d harness.DataDir) { noErr(t, os.Chmod(filepath.Join(string(d), name), mode)) }
	}
	write := func(name, text string) func(*testing.T, harness.DataDir) {
		return func(t *testing.T, d harness.DataDir) {
			noErr(t, os.WriteFile(filepath.Join(string(d), name), []byte(text), 0o600))
		}
	}
	both := func(a, b func(*testing.T, harness.DataDir)) func(*testing.T, harness.DataDir) {
		return func(t *testing.T, d harness.DataDir) { a(t, d); b(t, d) }
	}
	for _, c := range []struct {
		name string
		do   func(*testing.T, harness.DataDir)
		want []string
	}{
		{"no directory", away("."), []string{"error not_initialised"}},
		{"no log, no keys", away("log.db", "keys"), []string{"error not_initialised"}},
		{"no log", away("log.db"), []string{"error log_missing"}},
		{"no log, but its end", both(away("log.db"), write("log.db-wal", "x")), []string{"error log_missing", "error wal_alone"}},
		{"half an init", both(away("log.db"), write("init.partial", "")), []string{"error half_initialised"}},
		{"half a restore", both(away("log.db"), write("restore.partial", "x")), []string{"error half_restored"}},
		{"half a rotation", write("keys/next.key", "x"), []string{"note half_rotated"}},
		{"an open directory", mode(".", 0o755), []string{"warning permissions"}},
		{"an open key", mode("keys/log.key", 0o640), []string{"error permissions"}},
		{"an open credential", mode("nats/operator.nk", 0o604), []string{"error permissions"}},
		{"no private key", away("keys/log.key"), []string{"error key_missing"}},
		{"no payload key", away("keys/payload.key"), []string{"error key_missing"}},
		{"a bad payload key", write("keys/payload.key", "short"), []string{"error key_unusable"}},
		{"a bad public key", write("keys/log.pub", "no key"), []string{"error key_differs"}},
		{"a stale run.json", write("run.json", "{}"), []string{"note stale_run"}},
		{"no log at all", write("log.db", "this is no database, however long one reads in it"), []string{"error not_a_log"}},
		{"views that are none", write("views.db", strings.Repeat("no", 9000)), []string{"note views_unreadable"}},
		{"no credentials", away("nats"), []string{"error credentials"}},
		{"no key for operators", away("nats/operator.nk"), []string{"note no_operator", "note accounts_stale"}},
		{"no key of the curator", away("nats/curator.nk", "nats/nats-accounts.conf"), []string{"note no_curator"}},
		{"no key for hosts", away("nats/host-local.nk"), []string{"warning no_host", "note accounts_stale"}},
		{"edited accounts that lack a user", both(both(write("nats/nats-accounts.conf", "edited"), away("nats/operator.nk")), func(t *testing.T, d harness.DataDir) {
			_, err := bus.WriteCredentials(d.NATSDir(), "waybill", "any-00000000", nil)
			if !errors.Is(err, bus.ErrStaleAccounts) {
				t.Fatal(err)
			}
		}), []string{"note accounts_stale"}},
		{"accounts of another log", func(t *testing.T, d harness.DataDir) {
			noErr(t, os.Remove(filepath.Join(d.NATSDir(), bus.AccountsFile)))
			_, err := bus.WriteCredentials(d.NATSDir(), "waybill", "any-00000000", nil)
			noErr(t, err)
		}, []string{"note accounts_stale"}},
		{"no pins", away("../waybill.lock"), []string{"warning no_pins"}},
		{"pins that are none", write("../waybill.lock", "peers: 7"), []string{"error pins_unreadable"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t)
			c.do(t, harness.DataDir(p.File.Data))
			if got := codes(t, p); !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// An outside server reads the accounts, so that stale ones are an error there.
func TestStaleAccountsMatterToAnOutsideServer(t *testing.T) {
	p := newPatient(t, `nats: {url: "nats://127.0.0.1:4222"}`)
	noErr(t, os.WriteFile(filepath.Join(p.Credentials, bus.AccountsFile), []byte("authorization {}\n"), 0o600))
	if got := codes(t, p); !slices.Equal(got, []string{"error accounts_stale"}) {
		t.Errorf("found %q", got)
	}
}

func TestAPeerThatIsNotPinnedIsFound(t *testing.T) {
	p := newPatient(t)
	yaml := "peers: {a: {command: /bin/true}, b: {command: /bin/true}, c: {command: /no/such/program}}\n"
	noErr(t, os.WriteFile(p.File.Path, []byte(yaml), 0o600))
	f, err := config.Load(p.File.Path)
	noErr(t, err)
	p.File = f
	if got := codes(t, p); !slices.Equal(got, []string{"warning not_pinned", "warning command_missing"}) {
		t.Errorf("found %q", got)
	}
}

func TestAFullLogIsFound(t *testing.T) {
	p := newPatient(t, "limits: {log_size: 4KiB}")
	if got := codes(t, p); !slices.Equal(got, []string{"warning log_size", "warning days_left"}) {
		t.Errorf("found %q", got)
	}
}

// What a service says of itself is found; the lock says that one runs.
func TestARunningServiceIsAsked(t *testing.T) {
	for _, c := range []struct {
		says Service
		err  error
		want []string
	}{
		{Service{Head: 5, Published: 5}, nil, []string{}},
		{Service{}, errors.New("no answer"), []string{"error service_silent"}},
		{Service{Stream: "forked at 7"}, nil, []string{"error stream"}},
		{Service{Head: 20_000, Published: 5}, nil, []string{"warning stream_behind"}},
	} {
		p := newPatient(t)
		d := harness.DataDir(p.File.Data)
		lock, err := d.Lock()
		noErr(t, err)
		if got := codes(t, p); !slices.Equal(got, []string{"note locked"}) {
			t.Errorf("before it serves: %q", got)
		}
		noErr(t, d.WriteRun(harness.Run{PID: os.Getpid(), URL: "nats://127.0.0.1:1"}))
		p.Ask = func(context.Context) (Service, error) { return c.says, c.err }
		if got := codes(t, p); !slices.Equal(got, c.want) {
			t.Errorf("%+v, %v: found %q, want %q", c.says, c.err, got, c.want)
		}
		noErr(t, lock.Release())
	}
}

// --verify says what it found of the whole log, and an interruption ends it.
func TestAWholeLogIsDecidedAgainWhereThatIsAsked(t *testing.T) {
	p := newPatient(t)
	var order []string
	p.Verify = func(context.Context, string) error { order = append(order, "verify"); return nil }
	p.Replay = func(_ context.Context, path string) error {
		order = append(order, "replay "+path)
		return fmt.Errorf("event 2 does not follow")
	}
	if got := codes(t, p); !slices.Equal(got, []string{"error diverged"}) || !slices.Equal(order, []string{"verify", "replay " + harness.DataDir(p.File.Data).LogFile()}) {
		t.Errorf("%q after %q", got, order)
	}
	p.Verify = func(context.Context, string) error { return fmt.Errorf("altered at event 2") }
	if got := codes(t, p); !slices.Equal(got, []string{"error altered"}) {
		t.Errorf("what is altered is decided again: %q", got)
	}
}

func TestVerifyIsAsked(t *testing.T) {
	p := newPatient(t)
	asked := ""
	p.Verify = func(_ context.Context, path string) error { asked = path; return fmt.Errorf("altered at event 2") }
	if got := codes(t, p); !slices.Equal(got, []string{"error altered"}) || asked != harness.DataDir(p.File.Data).LogFile() {
		t.Errorf("found %q in %q", got, asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.Verify = func(context.Context, string) error { cancel(); return ctx.Err() }
	if _, err := Examine(ctx, p); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted examination ends with %v", err)
	}
}

// The worst finding decides the exit code, wherever it stands.
func TestFindingsArePrinted(t *testing.T) {
	var out strings.Builder
	f := Findings{[]Finding{{Note, "stale_run", "/d/run.json", "it was left", "nothing"}, {Error, "altered", "/d/log.db", "altered at event 2", "put it back"}, {Severity: Warning}}}
	const want = "note stale_run: /d/run.json\n  it was left\n  do: nothing\nerror altered: /d/log.db\n  altered at event 2\n  do: put it back\n"
	if err := f.Print(&out); err != nil || !strings.HasPrefix(out.String(), want) || f.Worst() != Error {
		t.Errorf("printed %q, worst %s", out.String(), f.Worst())
	}
	out.Reset()
	if err := (Findings{}).Print(&out); err != nil || out.String() != "nothing is wrong\n" {
		t.Errorf("printed %q", out.String())
	}
}

// Views that are not where the log is are made right by themselves, and that is
// said: behind, ahead, of another log.
func TestViewsAreHeldToTheLog(t *testing.T) {
	for _, c := range []struct {
		other bool
		seen  int64
		want  []string
	}{{false, 3, []string{}}, {false, 2, []string{"note views_behind"}}, {false, 5, []string{"note views_ahead"}}, {true, 3, []string{"note views_other"}}} {
		p := newPatient(t)
		d := harness.DataDir(p.File.Data)
		r, err := store.OpenReader(d.LogFile())
		noErr(t, err)
		id := r.ID()
		noErr(t, r.Close())
		if c.other {
			id = "other-00000000"
		}
		v, err := projections.Open(t.Context(), d.ViewsFile(), id, c.seen)
		noErr(t, err)
		for seq := int64(1); seq <= c.seen; seq++ {
			noErr(t, v.Apply(t.Context(), []domain.Event{{Seq: seq, Time: now.UnixNano(), Data: domain.ServiceStopped{}}}))
		}
		noErr(t, v.Close())
		if got := codes(t, p); !slices.Equal(got, c.want) {
			t.Errorf("views at %d, of another log %t: found %q, want %q", c.seen, c.other, got, c.want)
		}
	}
}

// A checkpoint that the log does not have is lost in it; one that it has and that
// is not beside it is missing there.
func TestCheckpointsAreHeldTogether(t *testing.T) {
	for _, c := range []struct {
		inLog, beside bool
		want          []string
	}{{true, true, []string{}}, {true, false, []string{"warning checkpoint_missing"}}, {false, true, []string{"warning checkpoint_lost"}}} {
		p := newPatient(t)
		d := harness.DataDir(p.File.Data)
		l, err := store.Open(d.LogFile())
		noErr(t, err)
		signer, _, err := d.Signer(l.ID())
		noErr(t, err)
		note, err := checkpoint.Sign(signer, checkpoint.Head{Log: l.ID(), Size: 3, Root: l.Head().Root})
		noErr(t, err)
		if c.inLog {
			noErr(t, l.Checkpoint(t.Context(), 3, note))
		}
		if c.beside {
			noErr(t, os.WriteFile(d.CheckpointFile(), note, 0o644))
		}
		noErr(t, l.Close())
		if got := codes(t, p); !slices.Equal(got, c.want) {
			t.Errorf("in the log %t, beside it %t: found %q, want %q", c.inLog, c.beside, got, c.want)
		}
	}
}
