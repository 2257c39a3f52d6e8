package contract_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill/domain"
	"waybill/events"
	"waybill/harness/bus/contract"
	"waybill/harness/bus/contract/contracttest"
)

var record = flag.Bool("record", false, "write the schemas anew; read the difference before you keep it")

const (
	root    = "../../.."
	goldens = root + "/events/testdata/v1"
)

type object = contracttest.Object

// golden reads the envelope of one kind.
func golden(t testing.TB, kind string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(goldens, kind+".json"))
	if err != nil {
		t.Fatalf("%s has no envelope in events/testdata: %v", kind, err)
	}
	return bytes.TrimSuffix(b, []byte("\n"))
}

func generator(t testing.TB) *contracttest.Generator {
	t.Helper()
	docs, err := contracttest.ReadDocs(root, "domain")
	if err != nil {
		t.Fatal(err)
	}
	return &contracttest.Generator{Docs: docs, Words: words, Raw: map[string]object{"capabilities": contracttest.Of("type", "object")}}
}

// words are the types with a fixed set of values.
var words = contracttest.Words{
	reflect.TypeFor[domain.Era](): contracttest.WordsOf(domain.EraUnknown, domain.EraModern, domain.EraLegacy),
	reflect.TypeFor[domain.Ran](): contracttest.WordsOf(domain.RanYes, domain.RanNo, domain.RanMaybe),
	reflect.TypeFor[domain.Status](): contracttest.WordsOf(domain.StatusComplete, domain.StatusToolError, domain.StatusInputRequired,
		domain.StatusProtocolError, domain.StatusRefused, domain.StatusTimedOut, domain.StatusCancelled, domain.StatusLost),
}

// eventSchema is the schema of the envelope of one kind, from the type that it opens to.
func eventSchema(g *contracttest.Generator, kind string, e domain.Event) object {
	of, t := contracttest.Of, reflect.TypeOf(e.Data)
	number := of("type", "string", "pattern", "^[0-9]+$")
	required := []string{"specversion", "id", "source", "type", "time", "dataversion", "mono", "data"}
	properties := of("specversion", of("const", "1.0"),
		"id", number.Says("The seq: the position in the log, from 1, without gaps."),
		"source", contracttest.Some.Says("The id of the log."),
		"type", of("const", kind))
	if _, ok := e.Data.(domain.OfPeer); ok {
		properties = properties.With("subject", contracttest.Some.Says("The peer, if it is of one."))
	}
	properties = append(properties, of(
		"time", of("type", "string", "format", "date-time").Says("When it was observed, UTC. A decision has the time of what it follows from."),
		"dataversion", of("const", "1").Says("The version of data."),
		"mono", number.Says("Nanoseconds since service.started."))...)
	what := "An observation: what the world said. "
	if e.IsDecision() {
		what = "A decision: what Waybill chose. "
		properties = append(properties, of("cause", number.Says("The seq of the observation that it follows from."),
			"rules", number.Says("The version of the rules that decided."))...)
		required = append(required, "cause", "rules")
	}
	if _, ok := e.Data.(domain.OfCall); ok {
		properties = properties.With("call", of("type", "string", "pattern", "/").Says("The key of the call, host/call_id, if it is of one."))
	}
	properties = properties.With("data", g.Struct(t))
	return g.Whole(contracttest.Head("event:"+kind, kind, what+g.Docs.Type(t)), contracttest.Open(properties, required))
}

func TestEveryKindOfEventHasTheSchemaOfItsType(t *testing.T) {
	g := generator(t)
	for _, kind := range events.Kinds() {
		_, e, err := events.Open(golden(t, kind))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		contracttest.Compare(t, *record, "schemas/event/"+kind+".json", eventSchema(g, kind, e).Text())
	}
	if *record {
		return // the next run embeds them
	}
	if got := contract.EventTypes(); !slices.Equal(got, events.Kinds()) {
		t.Errorf("schemas of %v, kinds %v", got, events.Kinds())
	}
}

func TestEveryEventThatIsKeptMatchesItsSchema(t *testing.T) {
	logs, err := filepath.Glob(root + "/replay/testdata/good-*.jsonl")
	if err != nil || len(logs) < 5 {
		t.Fatalf("logs %v: %v", logs, err)
	}
	all := map[string][][]byte{"golden": {}}
	for _, kind := range events.Kinds() {
		all["golden"] = append(all["golden"], golden(t, kind))
	}
	for _, name := range logs {
		all[name] = envelopes(t, name)
	}
	n := 0
	for name, list := range all {
		for _, envelope := range list {
			_, e, err := events.Open(envelope)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			matches(t, e.Data.Kind(), envelope)
			n++
		}
	}
	t.Logf("%d events of %d logs and the goldens", n, len(logs))
}

// matches holds an envelope to the schema as it is published, and to the closed one.
func matches(t testing.TB, kind string, envelope []byte) {
	t.Helper()
	contracttest.Check(t, schemas.published(t, kind), kind, envelope)
	contracttest.Check(t, schemas.closed(t, kind), kind+", closed", envelope)
}

// What is never zero and what is nothing but zero are the two ends of what an encoder
// leaves out.
func TestFullAndEmptyEventsMatchTheirSchemas(t *testing.T) {
	for _, kind := range events.Kinds() {
		_, e, err := events.Open(golden(t, kind))
		if err != nil {
			t.Fatal(err)
		}
		full := contracttest.Fill(reflect.New(reflect.TypeOf(e.Data)).Elem(), words).Interface().(domain.Data)
		whole := seal(t, e, full)
		matches(t, kind, whole)
		if left := contracttest.Unseen(t, contract.Event(kind), whole); len(left) > 0 {
			t.Errorf("%s: no event has %s", kind, strings.Join(left, ", "))
		}
		empty := contracttest.Empty(reflect.New(reflect.TypeOf(e.Data)).Elem(), words).Interface().(domain.Data)
		bare := seal(t, e, empty)
		matches(t, kind, bare)
		refusesWithout(t, kind, bare)
	}
}

func seal(t testing.TB, e domain.Event, d domain.Data) []byte {
	t.Helper()
	e.Data = d
	b, err := events.Seal("local-0a1b2c3d", e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// refusesWithout takes each member of data away: an encoder that leaves nothing out but
// what it may must be held to the rest.
func refusesWithout(t testing.TB, kind string, bare []byte) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(bare, &doc); err != nil {
		t.Fatal(err)
	}
	data := doc["data"].(map[string]any)
	for name, value := range data {
		delete(data, name)
		if schemas.published(t, kind).Validate(doc) == nil {
			t.Errorf("%s takes an event without %s", kind, name)
		}
		data[name] = value
		data[name+"_renamed"] = value
		if schemas.closed(t, kind).Validate(doc) == nil {
			t.Errorf("%s, closed, takes %s_renamed", kind, name)
		}
		if schemas.published(t, kind).Validate(doc) != nil {
			t.Errorf("%s does not take a member of a later version", kind)
		}
		delete(data, name+"_renamed")
	}
}

// compiled keeps what was compiled.
type compiled map[string]*jsonschema.Schema

var schemas = compiled{}

func (c compiled) published(t testing.TB, kind string) *jsonschema.Schema {
	if c[kind] == nil {
		c[kind] = contracttest.Published(t, contract.Event(kind))
	}
	return c[kind]
}

func (c compiled) closed(t testing.TB, kind string) *jsonschema.Schema {
	if c["closed "+kind] == nil {
		c["closed "+kind] = contracttest.Closed(t, contract.Event(kind))
	}
	return c["closed "+kind]
}

// envelopes reads the exact bytes of every event of a log file.
func envelopes(t testing.TB, name string) (out [][]byte) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		var row struct {
			Record *struct {
				Envelope string `json:"envelope"`
			} `json:"record"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if row.Record != nil {
			out = append(out, []byte(row.Record.Envelope))
		}
	}
	return out
}
