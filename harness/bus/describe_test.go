package bus

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"waybill/harness/bus/contract"
)

// everyVerb has a handler for all that the contract names.
func everyVerb() Handlers {
	h := Handlers{Call: func(*Request) {}, Read: map[string]func(context.Context, *Request){}, Order: map[string]func(context.Context, *Request){}}
	for _, verb := range contract.Verbs() {
		if verb != CallVerb {
			h.Read[verb] = func(context.Context, *Request) {}
		}
	}
	for _, verb := range contract.Orders() {
		h.Order[verb] = func(context.Context, *Request) {}
	}
	return h
}

func TestInfoTellsTheContractOfEveryEndpoint(t *testing.T) {
	st := startStage(t, serviceConfig(), everyVerb())
	nc := connect(t, st.c.Operator(), Target{Server: st.server})
	msg := must[*nats.Msg](t)(nc.RequestWithContext(testContext(t), "$SRV.INFO."+serviceName, nil))
	var info micro.Info
	if err := json.Unmarshal(msg.Data, &info); err != nil {
		t.Fatal(err)
	}
	if info.Description == "" || info.Version != serviceVersion || info.Metadata["log"] != testLog || info.Metadata["prefix"] != DefaultPrefix {
		t.Errorf("%+v", info)
	}
	var names []string
	for _, e := range info.Endpoints {
		verb, ordered := strings.CutPrefix(e.Name, opToken+"-")
		want := map[string]string{"role": "host", "description": contract.Description(verb),
			"schema.request": string(contract.Terse(contract.Request(verb))), "schema.response": string(contract.Terse(contract.Reply(verb)))}
		subject := RequestSubject(DefaultPrefix, verb, "*")
		if ordered {
			want["role"], subject = "operator", CommandSubject(DefaultPrefix, verb, "*")
		}
		for key, value := range want {
			if value == "" || e.Metadata[key] != value {
				t.Errorf("%s: %s is %.200q, want %.200q", e.Name, key, e.Metadata[key], value)
			}
		}
		if e.Subject != subject || len(e.Metadata) != len(want) {
			t.Errorf("%s: subject %q, metadata %v", e.Name, e.Subject, e.Metadata)
		}
		names = append(names, e.Name)
	}
	wanted := contract.Verbs()
	for _, verb := range contract.Orders() {
		wanted = append(wanted, opToken+"-"+verb)
	}
	slices.Sort(names)
	slices.Sort(wanted)
	if !slices.Equal(names, wanted) {
		t.Errorf("endpoints %v, want %v", names, wanted)
	}
	if len(msg.Data) > MaxMessage/16 {
		t.Errorf("the description has %d bytes", len(msg.Data))
	}
	t.Logf("the description has %d bytes", len(msg.Data))
}
