package bus

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestARefusedRequestIsAClearErrorAndNoTimeout(t *testing.T) {
	st := startStage(t, serviceConfig(), echo())
	client := dial(t, st.c, st.server, LocalHost)
	client.host = "other" // the key is still that of local
	_, _, err := client.Request(testContext(t), CallVerb, nil)
	var refused *NotPermittedError
	if !errors.As(err, &refused) || refused.Subject != "waybill.v1.call.other" {
		t.Fatalf("error %v", err)
	}
	if want := `not permitted to publish to "waybill.v1.call.other": use --host with a name whose credentials exist`; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	client.host = LocalHost
	if got, _ := must2(t)(client.Request(testContext(t), CallVerb, nil)); got != "call|local||" {
		t.Errorf("the next request got %q", got)
	}
	if len(client.waiting) != 0 {
		t.Errorf("still waiting for %v", client.waiting)
	}
}

func TestAWrongPrefixIsAClearError(t *testing.T) {
	st := startStage(t, serviceConfig(), echo())
	id := must[Identity](t)(st.c.Host(LocalHost))
	client := must[*Client](t)(DialAs(testContext(t), id, Target{Server: st.server, Logger: quiet}, "elsewhere"))
	defer client.Close()
	var refused *NotPermittedError
	if _, _, err := client.Request(testContext(t), CallVerb, nil); !errors.As(err, &refused) {
		t.Errorf("request: %v", err)
	}
	if err := client.Events(testContext(t), testLog, ">", nil, nil); !errors.As(err, &refused) || refused.Publish {
		t.Errorf("events: %v", err)
	}
}

func TestNobodyServingIsToldAtOnce(t *testing.T) {
	_, c := writeCredentials(t, LocalHost)
	client := dial(t, c, startServer(t, c), LocalHost)
	_, _, err := client.Request(testContext(t), CallVerb, nil)
	if !errors.Is(err, ErrNotServing) || !strings.Contains(err.Error(), "waybill.v1.call.local") {
		t.Errorf("error %v", err)
	}
}

func TestAnUnansweredRequestEndsWithItsContext(t *testing.T) {
	got := make(chan struct{})
	st := startStage(t, serviceConfig(), Handlers{Call: func(*Request) { close(got) }})
	ctx, cancel := context.WithCancelCause(testContext(t))
	go func() { <-got; cancel(errors.New("enough")) }()
	_, _, err := dial(t, st.c, st.server, LocalHost).Request(ctx, CallVerb, nil)
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v", err)
	}
}

func TestDialFailsInPlainWords(t *testing.T) {
	dir, c := writeCredentials(t, LocalHost)
	s := startServer(t, c)
	if _, err := Dial(testContext(t), s.ClientURL(), dir, "nobody", DefaultPrefix); err == nil || !strings.Contains(err.Error(), "--host") {
		t.Errorf("unknown host: %v", err)
	}
	if _, err := Dial(cancelled(), s.ClientURL(), dir, LocalHost, DefaultPrefix); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	stranger, _ := writeCredentials(t, LocalHost)
	if _, err := Dial(testContext(t), s.ClientURL(), stranger, LocalHost, DefaultPrefix); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("foreign key: %v", err)
	}
	url := s.ClientURL()
	s.Close()
	if _, err := Dial(testContext(t), url, dir, LocalHost, DefaultPrefix); err == nil || !strings.Contains(err.Error(), url) {
		t.Errorf("no server: %v", err)
	}
}
