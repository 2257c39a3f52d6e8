package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/users"
	"waybill/harness/bus"
	"waybill/harness/bus/access"
)

func TestAHostIsAddedWhileTheServiceRunsAndCallsAfterItsNextStart(t *testing.T) {
	w := newWorld(t, "", peerYAML{"notes", "modern", nil}).ready()
	s := w.serve()
	doc := decode[users.Added](t, w.must(exitDone, "host", "add", "batch", "--json"))
	if doc.Role != access.RoleHost || doc.Name != "batch" || doc.Inbox != "_INBOX.batch" || len(doc.Made) != 3 || len(doc.Next) != 1 || !strings.Contains(doc.Next[0], "restart") {
		t.Errorf("%+v", doc)
	}
	if code, _, errs := w.run("tools", "--host", "batch"); code == exitDone {
		t.Errorf("a server that was started before knows the host: %s", errs)
	}
	s.stop(syscall.SIGTERM)
	w.serve()
	w.must(exitDone, "tools", "--host", "batch")
	again := decode[users.Added](t, w.must(exitDone, "host", "add", "batch", "--json"))
	if len(again.Made) != 0 || len(again.Next) != 0 || again.PublicKey != doc.PublicKey {
		t.Errorf("%+v", again)
	}
	list := decode[[]access.UserInfo](t, w.must(exitDone, "host", "list", "--json"))
	if len(list) != 2 || list[0] != doc.UserInfo || list[1].Name != localHost {
		t.Errorf("%+v", list)
	}
	if out := w.must(exitDone, "host", "list"); !strings.Contains(out, doc.PublicKey) || strings.Count(out, "\n") != 2 {
		t.Errorf("%s", out)
	}
}

func TestCommandsThatAddUsersSayWhatIsWrong(t *testing.T) {
	w := newWorld(t, "", peerYAML{"notes", "modern", nil})
	for _, role := range []string{"host", "auditor", "dashboard"} {
		w.must(exitNotRunning, role, "add", "ann")
		w.must(exitNotRunning, role, "list")
	}
	w.ready()
	w.must(exitConfig, "host", "add", "Ann")
	w.must(exitConfig, "host", "add", "service")
	w.must(exitConfig, "host", "add", "ann", "--context", "nowhere")
	w.must(exitConfig, "dashboard", "add", "a.b")
	accounts := filepath.Join(w.dir, ".waybill", "nats", bus.AccountsFile)
	if err := os.WriteFile(accounts, []byte("edited\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, errs := w.run("auditor", "add", "ann"); !strings.Contains(errs, "warning") || !strings.Contains(out, "auditor-ann.nk") {
		t.Errorf("%s%s", out, errs)
	}
	yaml, err := os.ReadFile(w.file)
	if err == nil {
		err = os.WriteFile(w.file, []byte(strings.Replace(string(yaml), "listen: ", "url: 'nats://127.0.0.1:1', listen: ", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	code, out, _ := w.run("auditor", "add", "bob", "--json")
	if doc := decode[map[string]map[string]any](t, out); code != exitConfig || doc["error"]["code"] != "accounts_stale" {
		t.Errorf("exit %d, %s", code, out)
	}
	if err := os.Remove(accounts); err != nil {
		t.Fatal(err)
	}
	doc := decode[users.Added](t, w.must(exitDone, "auditor", "add", "eve", "--json"))
	if len(doc.Next) != 1 || !strings.Contains(doc.Next[0], bus.AccountsFile) {
		t.Errorf("%+v", doc)
	}
}

// reading connects to the running service as a reader.
func (w *world) reading(name string) jetstream.JetStream {
	w.t.Helper()
	f, err := config.Load(w.file)
	if err != nil {
		w.t.Fatal(err)
	}
	run, err := dataDir(f).Running()
	if err != nil || run == nil {
		w.t.Fatalf("no service: %v", err)
	}
	id, err := bus.LoadReader(run.Credentials, name)
	if err != nil {
		w.t.Fatal(err)
	}
	nc, err := bus.Connect(id, target(*run))
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

// subjects are those of all messages of a stream, by a consumer.
func subjects(t *testing.T, js jetstream.JetStream, stream string) (list []string) {
	t.Helper()
	consumer, err := js.CreateConsumer(t.Context(), stream, jetstream.ConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for pending := consumer.CachedInfo().NumPending; pending > 0; pending-- {
		msg, err := consumer.Next()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, msg.Subject())
	}
	return list
}

func TestReadersReadTheStreamsOfTheService(t *testing.T) {
	w := newWorld(t, "", peerYAML{"notes", "modern", nil}).ready()
	log := decode[map[string]any](t, w.must(exitDone, "init", "--json"))["log"].(string)
	w.serve()
	w.run("call", "no_such_tool", "{}")
	eventually(t, "what dashboards read is there", func() bool {
		h := w.health()
		return h.Public != nil && h.Public.State == "ok" && h.Public.Position > 0 && h.Publisher.Lag == 0
	})
	all := subjects(t, w.reading("auditor"), bus.StreamName(log))
	public := slices.DeleteFunc(slices.Clone(all), func(s string) bool {
		noun := strings.Split(s, ".")[4]
		return !slices.Contains([]string{"era", "collision", "name", "namespace", "peer"}, noun)
	})
	eventually(t, "the dashboard reads what is public", func() bool {
		return slices.Equal(subjects(t, w.reading("dashboard"), bus.PublicStreamName(log)), public)
	})
	if len(public) == 0 || len(public) == len(all) || !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, ".call.") }) {
		t.Errorf("%d public events of %d", len(public), len(all))
	}
	if out := w.must(exitDone, "status"); !strings.Contains(out, "dashboards: ok, up to event ") {
		t.Errorf("%s", out)
	}
}
