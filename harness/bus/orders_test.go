package bus

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"waybill/harness/bus/access"
)

// ordering is echo with an order that answers who ordered what.
func ordering() Handlers {
	h := echo()
	h.Order = map[string]func(context.Context, *Request){"revive": func(_ context.Context, r *Request) {
		_ = r.Respond([]byte(strings.Join([]string{r.Verb, r.Host, r.Operator, string(r.Data)}, "|")), "", 0)
	}}
	return h
}

func dialOperator(t testing.TB, st stage) *Client {
	t.Helper()
	client := must[*Client](t)(DialAs(testContext(t), st.c.Operator(), Target{Server: st.server, Logger: quiet}, DefaultPrefix))
	t.Cleanup(client.Close)
	return client
}

func TestAnOrderReachesItsHandlerWithTheNameOfTheOperator(t *testing.T) {
	st := startStage(t, serviceConfig(), ordering())
	got, code := must2(t)(dialOperator(t, st).Order(testContext(t), "revive", "ann", []byte("x")))
	if got != "revive||ann|x" || code != "" {
		t.Errorf("reply %q, code %q", got, code)
	}
}

func TestAHostMayNotOrder(t *testing.T) {
	st := startStage(t, serviceConfig(), ordering())
	var refused *NotPermittedError
	if _, _, err := dial(t, st.c, st.server, LocalHost).Order(testContext(t), "revive", LocalHost, nil); !errors.As(err, &refused) {
		t.Errorf("error %v", err)
	}
	if _, _, err := dialOperator(t, st).Request(testContext(t), CallVerb, nil); !errors.As(err, &refused) {
		t.Errorf("a call of the operator: %v", err)
	}
}

func TestAnOrderUnderNoNameOrWithAForeignReplySubjectIsDropped(t *testing.T) {
	st := startStage(t, serviceConfig(), ordering())
	nc := connect(t, st.c.Operator(), Target{Server: st.server})
	for _, m := range []nats.Msg{
		{Subject: CommandSubject(DefaultPrefix, "revive", "Ann"), Reply: "_INBOX.operator.x"},
		{Subject: CommandSubject(DefaultPrefix, "revive", "-a"), Reply: "_INBOX.operator.x"},
		{Subject: CommandSubject(DefaultPrefix, "revive", "ann"), Reply: "_INBOX.local.x"},
		{Subject: CommandSubject(DefaultPrefix, "revive", "ann"), Reply: ProgressSubject(DefaultPrefix, LocalHost, "x")},
		{Subject: CommandSubject(DefaultPrefix, "revive", "ann")},
	} {
		if err := nc.PublishMsg(&m); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are counted", func() bool { return st.Dropped() == 5 })
}

func TestOrdersAreBoundedAndAreAnsweredAfterStop(t *testing.T) {
	started, release := make(chan struct{}, 1), make(chan struct{})
	cfg := serviceConfig()
	cfg.Orders = 1
	h := ordering()
	h.Order["resend"] = func(_ context.Context, r *Request) {
		started <- struct{}{}
		<-release
		_ = r.Respond([]byte("sent"), "", 0)
	}
	st := startStage(t, cfg, h)
	client := dialOperator(t, st)
	replies := make(chan string, 1)
	go func() {
		body, _, err := client.Order(context.Background(), "resend", "ann", nil)
		if err != nil {
			body = []byte(err.Error())
		}
		replies <- string(body)
	}()
	receive(t, started)
	if _, code := must2(t)(client.Order(testContext(t), "revive", "ann", nil)); code != "overloaded" {
		t.Errorf("a second order: code %q", code)
	}
	st.Stop() // does not wait for orders
	if _, _, err := client.Order(testContext(t), "revive", "ann", nil); !errors.Is(err, ErrNotServing) {
		t.Errorf("after stop: %v", err)
	}
	close(release)
	st.Wait()
	if got := receive(t, replies); got != "sent" {
		t.Errorf("reply %q", got)
	}
}

func TestADirectoryWithoutAnOperatorGetsOneByWritingCredentialsAgain(t *testing.T) {
	dir, before := writeCredentials(t, LocalHost)
	if err := os.Remove(filepath.Join(dir, "operator.nk")); err != nil {
		t.Fatal(err)
	}
	c := must[Credentials](t)(LoadCredentials(dir))
	if c.Operator().Public() != "" || strings.Contains(c.String(), access.OperatorUser) {
		t.Errorf("there is an operator: %v", c)
	}
	startServer(t, c) // serves the others
	if _, err := LoadOperator(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "run waybill init") {
		t.Errorf("loaded without a key: %v", err)
	}
	made, err := WriteCredentials(dir, DefaultPrefix, testLog, []string{LocalHost})
	if got := len(made); got != 2 || err != nil {
		t.Errorf("made %v, error %v", made, err)
	}
	after := must[Credentials](t)(LoadCredentials(dir))
	if after.Operator().Public() == "" || after.Service().Public() != before.Service().Public() {
		t.Errorf("%v, then %v", before.Service(), after.Service())
	}
}

func TestADamagedKeyOfTheOperatorIsAnError(t *testing.T) {
	dir, _ := writeCredentials(t, LocalHost)
	if err := os.WriteFile(filepath.Join(dir, "operator.nk"), []byte("SUABC\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCredentials(dir); err == nil || !strings.Contains(err.Error(), "operator.nk") {
		t.Errorf("error %v", err)
	}
}

func TestAnOrderThatCannotBeIsRefused(t *testing.T) {
	nc := startOpenServer(t)
	for verb, handler := range map[string]func(context.Context, *Request){"a.b": func(context.Context, *Request) {}, "revive": nil} {
		h := echo()
		h.Order = map[string]func(context.Context, *Request){verb: handler}
		if s, err := StartService(nc, serviceConfig(), h); err == nil {
			s.Stop()
			t.Errorf("%s: started", verb)
		}
	}
}
