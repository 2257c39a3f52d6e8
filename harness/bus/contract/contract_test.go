package contract_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"waybill/harness/bus/contract"
	"waybill/harness/bus/contract/contracttest"
)

func TestEveryVerbHasBothSchemasAndSaysWhatItDoes(t *testing.T) {
	verbs := append(contract.Verbs(), contract.Orders()...)
	if len(verbs) < 11 {
		t.Fatalf("verbs %v", verbs)
	}
	for _, verb := range verbs {
		contracttest.Published(t, contract.Request(verb))
		contracttest.Published(t, contract.Reply(verb))
		if len(contract.Description(verb)) < 20 {
			t.Errorf("%s: description %q", verb, contract.Description(verb))
		}
	}
	for _, schema := range [][]byte{contract.Refusal(), contract.Progress()} {
		contracttest.Published(t, schema)
	}
	if contract.Request("nothing") != nil || contract.Reply("../event/call.routed") != nil || contract.Event("") != nil || contract.Description("x") != "" {
		t.Error("there is a schema of what is not there")
	}
}

func TestEverySchemaHasAnIDOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, schema := range all() {
		var head struct {
			Schema string `json:"$schema"`
			ID     string `json:"$id"`
		}
		if err := json.Unmarshal(schema, &head); err != nil || head.Schema != "https://json-schema.org/draft/2020-12/schema" || head.ID == "" || seen[head.ID] {
			t.Errorf("%+v: %v", head, err)
		}
		seen[head.ID] = true
	}
}

func all() (out [][]byte) {
	for _, kind := range contract.EventTypes() {
		out = append(out, contract.Event(kind))
	}
	for _, verb := range append(contract.Verbs(), contract.Orders()...) {
		out = append(out, contract.Request(verb), contract.Reply(verb))
	}
	return append(out, contract.Refusal(), contract.Progress())
}

// What Terse leaves out must not be what a schema says of messages: a member may be
// named like a keyword that is for people.
func TestATerseSchemaTakesWhatTheSchemaTakes(t *testing.T) {
	schema := []byte(`{"title":"T","description":"D","type":"object","properties":{"title":{"type":"integer","description":"x","maximum":9007199254740993},
		"list":{"items":{"description":"y","type":"string"}},"fixed":{"const":{"title":"T"}}},"required":["title"],"anyOf":[{"$comment":"z"}],"$defs":{"description":{"title":"q"}}}`)
	want := `{"$defs":{"description":{}},"anyOf":[{}],"properties":{"fixed":{"const":{"title":"T"}},"list":{"items":{"type":"string"}},` +
		`"title":{"maximum":9007199254740993,"type":"integer"}},"required":["title"],"type":"object"}`
	if got := string(contract.Terse(schema)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if contract.Terse([]byte("[]")) != nil || contract.Terse(nil) != nil {
		t.Error("what is no schema has a terse form")
	}
	for _, kind := range contract.EventTypes() {
		contracttest.Check(t, contracttest.Closed(t, contract.Terse(contract.Event(kind))), kind, golden(t, kind))
	}
}

func TestWhoAsksOwnsTheBytes(t *testing.T) {
	first := contract.Request("call")
	kept := slices.Clone(first)
	clear(first)
	if !bytes.Equal(contract.Request("call"), kept) {
		t.Error("a schema was changed by who asked for it")
	}
}
