package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill/events"
	"waybill/harness/bus"
	"waybill/harness/bus/contract"
)

const asyncFile = root + "/docs/asyncapi.yaml"

// tree is a part of a document: map[string]any, []any or a scalar.
type tree map[string]any

// asyncAPI is the document, as JSON would be read.
func asyncAPI(t testing.TB) tree {
	t.Helper()
	content, err := os.ReadFile(asyncFile)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON(content)
	if err != nil {
		t.Fatalf("docs/asyncapi.yaml: %v", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return doc.(map[string]any)
}

// at follows names from the top.
func (x tree) at(names ...string) tree {
	v := any(map[string]any(x))
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	m, _ := v.(map[string]any)
	return m
}

func (x tree) names(names ...string) []string { return slices.Sorted(maps.Keys(x.at(names...))) }

func TestTheDocumentIsAsyncAPI(t *testing.T) {
	content, err := os.ReadFile("testdata/asyncapi/3.0.0.json")
	if err != nil {
		t.Fatal(err)
	}
	official, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	if err := c.AddResource("http://asyncapi.com/definitions/3.0.0/asyncapi.json", official); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("http://asyncapi.com/definitions/3.0.0/asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	doc := asyncAPI(t)
	if err := s.Validate(map[string]any(doc)); err != nil {
		t.Errorf("%v", err)
	}
	for name, spoil := range map[string]func(tree){
		"a member that AsyncAPI does not know":  func(x tree) { x["chanels"] = "x" },
		"an action that is none":                func(x tree) { x.at("operations", "call")["action"] = "reply" },
		"a security scheme that is none":        func(x tree) { x.at("components", "securitySchemes", "nkey")["type"] = "nkey" },
		"a binding that the bindings lack":      func(x tree) { x.at("components", "operationBindings", "shared", "nats")["stream"] = "x" },
		"a channel with an address of a number": func(x tree) { x.at("channels", "call")["address"] = json.Number("1") },
	} {
		broken := asyncAPI(t)
		spoil(broken)
		if s.Validate(map[string]any(broken)) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestEveryReferenceOfTheDocumentLeadsSomewhere(t *testing.T) {
	doc := asyncAPI(t)
	files := map[string]bool{}
	n := 0
	each(map[string]any(doc), func(ref string) {
		n++
		file, pointer, _ := strings.Cut(ref, "#")
		if file != "" {
			full := filepath.Join(filepath.Dir(asyncFile), file)
			if _, err := os.Stat(full); err != nil || pointer != "" {
				t.Errorf("%s: %v", ref, err)
			}
			files[strings.TrimPrefix(file, "../harness/bus/contract/")] = true
			return
		}
		v := any(map[string]any(doc))
		for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
			m, _ := v.(map[string]any)
			v = m[name]
		}
		if v == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	})
	if n < 100 {
		t.Errorf("only %d references", n)
	}
	for _, pattern := range []string{"schemas/*.json", "schemas/*/*.json"} {
		list, err := filepath.Glob(pattern)
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range list {
			if !files[filepath.ToSlash(name)] {
				t.Errorf("no message of docs/asyncapi.yaml has the schema %s", name)
			}
		}
	}
}

// each calls do with every reference.
func each(v any, do func(ref string)) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			each(inner, do)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			do(ref)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			each(v[name], do)
		}
	}
}

// subjects are those of the program, with the names of parameters in the places of
// what varies.
func subjects() map[string]string {
	out := map[string]string{
		"progress":   bus.ProgressSubject("{prefix}", "{host}", "{call}"),
		"checkpoint": bus.CheckpointSubject("{prefix}", "{log}"),
		"events":     events.Subject("{prefix}", "{log}", "{noun}.{participle}", "{peer}"),
	}
	for _, verb := range contract.Verbs() {
		out[verb] = bus.RequestSubject("{prefix}", verb, "{host}")
	}
	for _, verb := range contract.Orders() {
		out["op."+verb] = bus.CommandSubject("{prefix}", verb, "{operator}")
	}
	return out
}

func TestTheChannelsAreTheSubjects(t *testing.T) {
	doc, want := asyncAPI(t), subjects()
	if got := bus.EventRoot("{prefix}", "{log}") + "{noun}.{participle}.{peer}"; got != want["events"] {
		t.Fatalf("the events are published on %s, and %s says the bus", want["events"], got)
	}
	for _, name := range doc.names("channels") {
		channel := doc.at("channels", name)
		if name == "inbox" {
			continue
		}
		address := fmt.Sprint(channel["address"])
		if address != want[name] {
			t.Errorf("channel %s has the address %q, the program %q", name, address, want[name])
		}
		for _, parameter := range doc.names("channels", name, "parameters") {
			address = strings.ReplaceAll(address, "{"+parameter+"}", "")
		}
		if strings.ContainsAny(address, "{}") || strings.Count(want[name], "{") != len(doc.names("channels", name, "parameters")) {
			t.Errorf("channel %s: parameters %v of %q", name, doc.names("channels", name, "parameters"), want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("no channel for %v", want)
	}
}

func TestEveryVerbHasAnOperation(t *testing.T) {
	doc := asyncAPI(t)
	want := map[string]string{"progress": "send", "checkpoint": "send", "events": "send"}
	for _, verb := range contract.Verbs() {
		want[verb] = "receive"
	}
	for _, verb := range contract.Orders() {
		want["op."+verb] = "receive"
	}
	for _, name := range doc.names("operations") {
		o := doc.at("operations", name)
		if o["action"] != want[name] || o.at("channel")["$ref"] != "#/channels/"+name {
			t.Errorf("operation %s: %v on %v", name, o["action"], o.at("channel"))
		}
		if want[name] == "receive" {
			replies, _ := o.at("reply")["messages"].([]any)
			if len(replies) != 2 || tree(replies[0].(map[string]any))["$ref"] != "#/channels/inbox/messages/"+name+".reply" {
				t.Errorf("operation %s is answered with %v", name, replies)
			}
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("no operation for %v", want)
	}
}

func TestEveryMessageHasTheSchemaOfItsName(t *testing.T) {
	doc := asyncAPI(t)
	for _, name := range doc.names("components", "messages") {
		file := "event/" + name
		verb, isOrder := strings.CutPrefix(name, "op.")
		switch {
		case name == "checkpoint":
			continue
		case isOrder:
			file = "operator/" + verb
		case name == "refusal", name == "progress":
			file = name
		case strings.HasSuffix(name, ".request"), strings.HasSuffix(name, ".reply"):
			file = "host/" + name
		}
		payload := doc.at("components", "messages", name, "payload")
		if got := payload.at("schema")["$ref"]; got != "../harness/bus/contract/schemas/"+file+".json" {
			t.Errorf("message %s has the schema %v", name, got)
		}
	}
	if got := doc.names("channels", "events", "messages"); !slices.Equal(got, events.Kinds()) {
		t.Errorf("the channel of events has %v", got)
	}
}
