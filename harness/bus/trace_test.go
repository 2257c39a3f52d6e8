package bus

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestATracestateIsPassedOnUpToItsBound(t *testing.T) {
	st := startStage(t, serviceConfig(), echo())
	local := must[Identity](t)(st.c.Host(LocalHost))
	nc := connect(t, local, Target{Server: st.server})
	for state, want := range map[string]string{"a=b": "a=b", strings.Repeat("a", maxTracestate+1): ""} {
		m := &nats.Msg{Subject: RequestSubject(DefaultPrefix, CallVerb, LocalHost), Header: nats.Header{stateHeader: []string{state}}}
		if got := must[*nats.Msg](t)(nc.RequestMsgWithContext(testContext(t), m)); string(got.Data) != "call|local|"+want+"|" {
			t.Errorf("reply %q", got.Data)
		}
	}
}
