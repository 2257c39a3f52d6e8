package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// startListeners publishes as the replier of the stage does.
func startListeners(t *testing.T, nc *nats.Conn) *Listeners {
	t.Helper()
	l := StartListeners(nc, DefaultPrefix)
	t.Cleanup(l.Stop)
	return l
}

func TestProgressReachesItsHostBeforeTheReplyAndNobodyElse(t *testing.T) {
	var l *Listeners
	st := startStage(t, serviceConfig(), Handlers{Call: func(r *Request) {
		for i := range 100 {
			l.Publish(r.Host, "mine", fmt.Appendf(nil, "%d", i))
		}
		l.Publish(r.Host, "another", []byte("not mine"))
		l.Publish("other", "mine", []byte("not mine"))
		l.Settle(r.Host, "mine")
		_ = r.Respond(nil, "", 0)
	}})
	l = startListeners(t, st.replier)
	client, other := dial(t, st.c, st.server, LocalHost), dial(t, st.c, st.server, "other")
	var got, others []string
	stop := must[func() error](t)(client.Progress(testContext(t), "mine", func(b []byte) { got = append(got, string(b)) }))
	stopOther := must[func() error](t)(other.Progress(testContext(t), "mine", func(b []byte) { others = append(others, string(b)) }))
	must2(t)(client.Request(testContext(t), CallVerb, nil))
	if err := stop(); err != nil {
		t.Error(err)
	}
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprint(i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	l.Settle("other", "mine")
	if err := st.replier.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	must2(t)(other.Request(testContext(t), CallVerb, nil)) // what was published before has come
	if err := stopOther(); err != nil || slices.Contains(others, "0") != true || others[0] != "not mine" {
		t.Errorf("the other host got %v, %v", others, err)
	}
	if l.Dropped() != 0 {
		t.Errorf("%d dropped", l.Dropped())
	}
}

func TestAHostCannotListenToAnother(t *testing.T) {
	st := startStage(t, serviceConfig(), echo())
	l := startListeners(t, st.replier)
	client := dial(t, st.c, st.server, LocalHost)
	client.host = "other" // the key is still that of local
	var got []string
	var refused *NotPermittedError
	told, done := client.watch(testContext(t), ProgressSubject(DefaultPrefix, "other", "theirs"))
	defer done()
	stop, err := client.Progress(testContext(t), "theirs", func(b []byte) { got = append(got, string(b)) })
	if errors.As(err, &refused) { // the server was faster than the subscription's own answer
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Publish("other", "theirs", []byte("secret"))
	l.Settle("other", "theirs")
	<-told.Done()
	client.mu.Lock() // both who wait are told under this lock
	client.host = LocalHost
	client.mu.Unlock()
	must2(t)(client.Request(testContext(t), CallVerb, nil))
	if err := stop(); !errors.As(err, &refused) || refused.Publish || len(got) != 0 {
		t.Errorf("got %v, error %v", got, err)
	}
}

func TestProgressIsDroppedWhileTheConnectionIsAway(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	w := newWire(t, "127.0.0.1:1")
	l := startListeners(t, connect(t, c.Replier(), Target{URL: w.URL(), KeepTrying: true}))
	l.Publish(LocalHost, "x", []byte("1"))
	l.Settle(LocalHost, "x")
	if l.Dropped() != 1 {
		t.Errorf("%d dropped, want 1", l.Dropped())
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	s := startServer(t, c)
	l := startListeners(t, connect(t, c.Replier(), Target{Server: s}))
	client := dial(t, c, s, LocalHost)
	count := 0
	stop := must[func() error](t)(client.Progress(testContext(t), "x", func([]byte) { count++ }))
	l.publishing.Lock() // as a connection does that takes nothing
	for range progressQueue + 10 {
		l.Publish(LocalHost, "x", []byte("1"))
	}
	l.Publish(LocalHost, "x", make([]byte, MaxMessage+1))
	if l.Dropped() != 11 {
		t.Errorf("%d dropped of a full queue", l.Dropped())
	}
	l.take(func(progress) bool { return true })
	for range 2 * progressBytes / MaxMessage {
		l.Publish(LocalHost, "x", []byte(strings.Repeat("x", MaxMessage)))
	}
	if got := l.Dropped() - 11; got != progressBytes/MaxMessage {
		t.Errorf("%d dropped of too many bytes", got)
	}
	l.publishing.Unlock()
	l.Stop()
	if err := l.nc.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := client.nc.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil || count != progressBytes/MaxMessage {
		t.Errorf("%d came, %v", count, err)
	}
	l.Publish(LocalHost, "x", nil)
	if l.Dropped() != 12+progressBytes/MaxMessage {
		t.Error("progress after the end is not counted")
	}
}

func TestListeningEndsWithTheConnection(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	s := startServer(t, c)
	client := dial(t, c, s, LocalHost)
	stop := must[func() error](t)(client.Progress(testContext(t), "x", func([]byte) {}))
	s.Close()
	eventually(t, "the loss is seen", func() bool { return !client.nc.IsConnected() })
	if err := stop(); err != nil && !errors.Is(err, ErrConnectionLost) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := client.Progress(ctx, "x", func([]byte) {}); err == nil {
		t.Error("listening without a connection")
	}
}
