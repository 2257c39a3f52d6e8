package bus

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"waybill/events"
	"waybill/harness/bus/access"
)

func init() { maps.Copy(permissions, readerPermissions) }

// readerPermissions are those of who reads, and of the curator.
var readerPermissions = map[string][]permission{
	access.CuratorUser: {
		{true, "$JS.API.STREAM.CREATE." + PublicStreamName(testLog), true},
		{true, "$JS.API.STREAM.INFO." + PublicStreamName(testLog), true},
		{true, "$JS.API.STREAM.UPDATE." + PublicStreamName(testLog), false},
		{true, "$JS.API.STREAM.DELETE." + PublicStreamName(testLog), true}, // there is none, here
		{true, "$JS.API.STREAM.DELETE." + StreamName(testLog), false},
		{true, "$JS.API.STREAM.DELETE.ELSE", false},
		{true, "$JS.API.STREAM.CREATE.ELSE", false},
		{true, "$JS.API.STREAM.MSG.GET." + PublicStreamName(testLog), true},
		{true, "$JS.API.DIRECT.GET." + PublicStreamName(testLog), true},
		{true, "$JS.API.CONSUMER.CREATE." + PublicStreamName(testLog) + ".any", true},
		{true, "$JS.API.STREAM.SNAPSHOT." + PublicStreamName(testLog), false},
		{true, "$JS.API.STREAM.RESTORE." + PublicStreamName(testLog), false},
		{true, "$JS.API.ACCOUNT.PURGE.WAYBILL_PUBLIC", false},
		{true, "$JS.API.STREAM.PURGE." + PublicStreamName(testLog), false},
		{true, "$JS.API.STREAM.MSG.DELETE." + PublicStreamName(testLog), false},
		{true, access.CopyAPI + ".CONSUMER.CREATE." + StreamName(testLog), false},
		{true, "waybill.v1.events." + testLog + ".era.determined.a", false},
		{true, "waybill.v1.checkpoint." + testLog, false},
		{true, "waybill.v1.call.local", false},
		{false, access.CopyDelivery + ".>", false},
		{false, "waybill.v1.events.>", false},
		{false, "_INBOX.curator.>", true},
		{false, "_INBOX.>", false},
	},
	"auditor":         auditorPermissions,
	"auditor-ann":     auditorPermissions,
	"dashboard":       dashboardPermissions,
	"dashboard-h_a-l": dashboardPermissions,
}

var auditorPermissions = slices.Concat(neverReaders, mayRead(StreamName(testLog)), mayRead(CheckpointStreamName(testLog)), mayNotRead(PublicStreamName(testLog)), []permission{
	{false, "waybill.v1.events." + testLog + ".>", true},
	{false, "waybill.v1.events." + testLog + ".call.>", true},
	{false, "waybill.v1.events.*.>", true},
	{false, "waybill.v1.events.*.era.>", true},
	{false, "waybill.v1.checkpoint." + testLog, true},
	{false, "waybill.v1.checkpoint.*", true},
})

var dashboardPermissions = slices.Concat(neverReaders, mayRead(PublicStreamName(testLog)), mayNotRead(StreamName(testLog)), mayNotRead(CheckpointStreamName(testLog)), []permission{
	{false, "waybill.v1.events." + testLog + ".era.>", true},
	{false, "waybill.v1.events." + testLog + ".collision.>", true},
	{false, "waybill.v1.events." + testLog + ".name.>", true},
	{false, "waybill.v1.events." + testLog + ".namespace.>", true},
	{false, "waybill.v1.events.*.peer.>", true},
	{false, "waybill.v1.events." + testLog + ".call.>", false},
	{false, "waybill.v1.events." + testLog + ".list.>", false},
	{false, "waybill.v1.events." + testLog + ".intake.>", false},
	{false, "waybill.v1.events." + testLog + ".*.determined.*", false},
	{false, "waybill.v1.events." + testLog + ".>", false},
	{false, "waybill.v1.events.*.>", false},
	{false, "waybill.v1.checkpoint." + testLog, false},
})

func mayRead(stream string) []permission {
	return []permission{
		{true, "$JS.API.STREAM.INFO." + stream, true},
		{true, "$JS.API.CONSUMER.CREATE." + stream, true},
		{true, "$JS.API.CONSUMER.CREATE." + stream + ".any.>", true},
		{true, "$JS.API.CONSUMER.DURABLE.CREATE." + stream + ".any", true},
		{true, "$JS.API.CONSUMER.MSG.NEXT." + stream + ".any", true},
		{true, "$JS.API.DIRECT.GET." + stream, true},
		{true, "$JS.ACK." + stream + ".any.1.1.1.1.1", true},
		{true, "$JS.API.CONSUMER.LEADER.STEPDOWN." + stream + ".any", false},
		{true, "$JS.API.CONSUMER.PAUSE." + stream + ".any", false},
		{true, "$JS.API.STREAM.CREATE." + stream, false},
		{true, "$JS.API.STREAM.UPDATE." + stream, false},
		{true, "$JS.API.STREAM.DELETE." + stream, false},
		{true, "$JS.API.STREAM.PURGE." + stream, false},
		{true, "$JS.API.STREAM.SNAPSHOT." + stream, false},
		{true, "$JS.API.STREAM.RESTORE." + stream, false},
		{true, "$JS.API.STREAM.MSG.DELETE." + stream, false},
		{true, "$JS.API.STREAM.LEADER.STEPDOWN." + stream, false},
		{true, access.ReadRoot(DefaultPrefix, stream) + "create", false},
		{true, access.ReadRoot(DefaultPrefix, stream) + "auditor.create", false},
		{true, access.ReadRoot(DefaultPrefix, stream) + "dashboard.create", false},
	}
}

func mayNotRead(stream string) []permission {
	list := mayRead(stream)
	for i := range list {
		list[i].allowed = false
	}
	return list
}

// neverReaders is what nobody may who only reads.
var neverReaders = []permission{
	{true, "waybill.v1.call.local", false},
	{true, "waybill.v1.cancel.local", false},
	{true, "waybill.v1.explain.local", false},
	{true, "waybill.v1.outcome.local", false},
	{true, "waybill.v1.call.auditor", false},
	{true, "waybill.v1.op.revive.ann", false},
	{true, "waybill.v1.events." + testLog + ".era.determined.a", false},
	{true, "waybill.v1.checkpoint." + testLog, false},
	{true, "waybill.v1.progress.local.x", false},
	{true, "$SRV.PING", false},
	{true, "$JS.API.STREAM.CREATE.ANY", false},
	{true, "$JS.API.ACCOUNT.PURGE.WAYBILL_LOG", false},
	{true, "_INBOX.local.x", false},
	{true, "_INBOX.service.x", false},
	{true, "_R_.x", false},
	{false, "_R_.>", false},
	{false, "waybill.v1.call.*", false},
	{false, "waybill.v1.progress.>", false},
	{false, "waybill.v1.op.>", false},
	{false, "_INBOX.local.>", false},
	{false, "_INBOX.service.>", false},
	{false, "_INBOX.>", false},
	{false, "waybill.>", false},
	{false, ">", false},
}

// addReaders makes a second auditor and a second dashboard.
func addReaders(t testing.TB, dir string) Credentials {
	t.Helper()
	must[[]string](t)(access.AddUser(dir, DefaultPrefix, testLog, access.RoleAuditor, "ann"))
	must[[]string](t)(access.AddUser(dir, DefaultPrefix, testLog, access.RoleDashboard, "h_a-l"))
	return must[Credentials](t)(LoadCredentials(dir))
}

// checkHearing publishes one event of each sort, and checks who hears which: what
// passes between the accounts, beside what is permitted in each.
func checkHearing(t *testing.T, c Credentials, to Target) {
	service := connect(t, c.Service(), to)
	subjects := []string{CheckpointSubject(DefaultPrefix, testLog)}
	for _, kind := range []string{"era.determined", "call.routed", "collision.resolved", "intake.refused", "name.assigned", "namespace.merged", "peer.exited", "list.read"} {
		subjects = append(subjects, events.Subject(DefaultPrefix, testLog, kind, "a"))
	}
	for _, r := range c.Readers() {
		nc := connect(t, r.Identity, to)
		heard := make(chan string, 64)
		listens := []string{EventRoot(DefaultPrefix, testLog) + ">", CheckpointSubject(DefaultPrefix, testLog)}
		if r.Role == access.RoleDashboard {
			listens = access.PublicSubjects(DefaultPrefix, testLog)
		}
		for _, subject := range listens {
			must[*nats.Subscription](t)(nc.Subscribe(subject, func(m *nats.Msg) { heard <- m.Subject }))
		}
		if err := nc.FlushWithContext(testContext(t)); err != nil {
			t.Fatal(err)
		}
		for _, s := range subjects {
			if err := service.Publish(s, nil); err != nil {
				t.Fatal(err)
			}
		}
		want := subjects
		if r.Role == access.RoleDashboard {
			want = slices.DeleteFunc(slices.Clone(subjects), func(s string) bool {
				return strings.Contains(s, ".call.") || strings.Contains(s, ".intake.") || strings.Contains(s, ".list.") || strings.Contains(s, ".checkpoint.")
			})
		}
		var got []string
		for range want {
			got = append(got, receive(t, heard))
		}
		slices.Sort(got)
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			t.Errorf("%s heard %v, want %v", r.Name(), got, want)
		}
		if err := nc.FlushWithContext(testContext(t)); err != nil || len(heard) != 0 {
			t.Errorf("%s heard %d more, %v", r.Name(), len(heard), err)
		}
	}
}

// A host and a reader cannot reach across accounts by a reply subject either.
func TestWhatOneReaderIsAnsweredAnotherDoesNotHear(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	c := addReaders(t, dir)
	s := startServer(t, c)
	to := Target{Server: s}
	victim := connect(t, must[Identity](t)(c.Reader("auditor")), to)
	event := events.Subject(DefaultPrefix, testLog, "call.routed", "a")
	sub := must[*nats.Subscription](t)(victim.SubscribeSync(event))
	host := connect(t, must[Identity](t)(c.Host(LocalHost)), to)
	if err := victim.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"auditor-ann", "dashboard"} {
		nc := connect(t, must[Identity](t)(c.Reader(name)), to)
		own := must[*nats.Subscription](t)(nc.SubscribeSync(nc.NewInbox()))
		for _, reply := range []string{event, own.Subject} {
			if err := nc.PublishRequest("$JS.API.INFO", reply, nil); err != nil {
				t.Fatal(err)
			}
		}
		must[*nats.Msg](t)(own.NextMsg(5 * time.Second))
	}
	if err := host.PublishRequest(RequestSubject(DefaultPrefix, CallVerb, LocalHost), event, nil); err != nil {
		t.Fatal(err)
	}
	if err := host.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := victim.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := sub.Pending(); n != 0 {
		t.Errorf("%d messages that nobody published", n)
	}
}

// A directory from before has no readers; it works without them.
func TestADirectoryWithoutReadersServes(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	for _, name := range []string{"curator", "auditor"} { // a dashboard without a curator has nothing to read
		if err := os.Remove(filepath.Join(dir, name+".nk")); err != nil {
			t.Fatal(err)
		}
	}
	c := must[Credentials](t)(LoadCredentials(dir))
	s := startServer(t, c)
	users := must[Users](t)(ConnectUsers(c, Target{Server: s, Logger: quiet}))
	defer users.Close()
	if !users.Connected() || users.Public != nil {
		t.Errorf("%+v", users)
	}
	if _, err := c.Reader("auditor"); err == nil || !strings.Contains(err.Error(), "dashboard") {
		t.Errorf("%v", err)
	}
}
