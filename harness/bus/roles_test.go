package bus

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"waybill/events"
	"waybill/harness/bus/access"
)

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
		{true, "waybill.v1.cancel.local", true},
		{true, "waybill.v1.explain.local", true},
		{true, "waybill.v1.outcome.local", true},
		{true, "waybill.v1.cancel.other", false},
		{true, "waybill.v1.explain.other", false},
		{true, "waybill.v1.outcome.other", false},
		{true, "waybill.v1.status.other", false},
		{false, "waybill.v1.events.>", false},
		{false, "waybill.v1.events." + testLog + ".call.>", false},
		{false, "waybill.v1.events." + testLog + ".era.>", false},
		{false, "waybill.v1.checkpoint.>", false},
		{false, "waybill.v1.checkpoint." + testLog, false},
		{true, "$SRV.INFO.waybill", false},
		{true, "_R_.x", false},
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
	access.OperatorUser: {
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
		{true, "$SRV.PING", true},
		{true, "$SRV.INFO.waybill", true},
		{true, "$SRV.STATS.waybill.x", true},
		{true, "$SRV.OTHER", false},
		{false, "$SRV.>", false},
		{false, "waybill.v1.events.>", false},
		{false, "waybill.v1.checkpoint.>", false},
		{false, "_INBOX.operator.>", true},
		{false, "_INBOX.local.>", false},
		{false, "_INBOX.>", false},
		{false, "waybill.v1.op.*.*", false},
		{false, "waybill.v1.events.>", false},
		{false, "waybill.v1.checkpoint.>", false},
		{false, "waybill.v1.progress.>", false},
		{false, "waybill.v1.call.*", false},
	},
	access.ReplierUser: {
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
	access.ServiceUser: {
		{true, "waybill.v1.events." + testLog + ".call.routed.-", true},
		{true, "waybill.v1.checkpoint." + testLog, true},
		{true, "$SRV.PING", false},
		{true, "_R_.x", true},
		{false, "waybill.v1.read.>", true},
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
	dir, _ := writeCredentials(t, LocalHost, "other")
	c := addReaders(t, dir)
	s := startServer(t, c)
	t.Run("socket", func(t *testing.T) { checkPermissions(t, c, Target{URL: s.ClientURL()}) })
	t.Run("in process", func(t *testing.T) { checkPermissions(t, c, Target{Server: s}) })
	t.Run("between accounts", func(t *testing.T) { checkHearing(t, c, Target{Server: s}) })
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
	dir, _ := writeCredentials(t, LocalHost, "other")
	c := addReaders(t, dir)
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
	checkHearing(t, c, Target{URL: ns.ClientURL()})
}

// checkPermissions tries every permission on its own connection. The server
// answers in order, so a round trip of something that is always refused shows
// that what came before it was not.
func checkPermissions(t *testing.T, c Credentials, to Target) {
	ids := map[string]Identity{access.ServiceUser: c.Service(), access.ReplierUser: c.Replier(), access.OperatorUser: c.Operator(), access.CuratorUser: c.Curator()}
	for _, r := range c.Readers() {
		ids[r.Name()] = r.Identity
	}
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
