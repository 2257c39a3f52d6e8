package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/bus/contract"
	"waybill/harness/bus/contract/contracttest"
)

// asked is a request that the service and its schema must be of one mind about.
var asked = []struct {
	body string
	good bool
}{
	{`{"tool":"x"}`, true},
	{`{"model_name":"x"}`, true},
	{`{"tool":"x","model_name":"y"}`, false},
	{`{}`, false},
	{`[]`, false},
	{`{"tool":""}`, false},
	{`{"tool":7}`, false},
	{`{"tool":"` + strings.Repeat("x", 256) + `"}`, true},
	{`{"tool":"` + strings.Repeat("x", 257) + `"}`, false},
	{`{"tool":"x","arguments":{"a":[1,2]}}`, true},
	{`{"tool":"x","arguments":[]}`, false},
	{`{"tool":"x","call_id":"A-z_0"}`, true},
	{`{"tool":"x","call_id":"a b"}`, false},
	{`{"tool":"x","call_id":""}`, false},
	{`{"tool":"x","call_id":"` + strings.Repeat("x", 65) + `"}`, false},
	{`{"tool":"x","generation":9007199254740992}`, true},
	{`{"tool":"x","generation":9007199254740993}`, false},
	{`{"tool":"x","generation":0}`, false},
	{`{"tool":"x","timeout_ms":1}`, true},
	{`{"tool":"x","timeout_ms":3600000,"limit_ms":3600000,"wait_ms":3600000}`, true},
	{`{"tool":"x","timeout_ms":3600001}`, false},
	{`{"tool":"x","limit_ms":0}`, false},
	{`{"tool":"x","wait_ms":"1"}`, false},
	{`{"tool":"x","wait_ms":1.5}`, false},
	{`{"tool":"x","progress":true}`, true},
	{`{"tool":"x","progress":null}`, false},
	{`{"tool":"x","capabilities":{"roots":{}}}`, true},
	{`{"tool":"x","capabilities":"all"}`, false},
	{`{"tool":"x","call_id":"a","inputResponses":{},"requestState":"s"}`, true},
	{`{"tool":"x","inputResponses":{}}`, false},
	{`{"tool":"x","requestState":"s"}`, false},
	{`{"tool":"x","call_id":"a","requestState":{}}`, false},
	{`{"tool":"x","call_id":"a","inputResponses":"s"}`, false},
	{`{"tool":"x","idempotency_key":"order 17"}`, true},
	{`{"tool":"x","idempotency_key":""}`, false},
	{`{"tool":"x","idempotency_key":17}`, false},
	{`{"tool":"x","idempotency_key":"` + strings.Repeat("x", 256) + `"}`, true},
	{`{"tool":"x","idempotency_key":"` + strings.Repeat("x", 257) + `"}`, false},
	{`{"tool":"x","call_id":"a","idempotency_key":"k","requestState":"s"}`, false},
	{`{"tool":"x","unknown":1}`, false},
}

func TestTheSchemaOfACallTakesWhatTheParserTakes(t *testing.T) {
	s := contracttest.Published(t, contract.Request(bus.CallVerb))
	for _, c := range asked {
		var doc any
		d := json.NewDecoder(strings.NewReader(c.body))
		d.UseNumber()
		if err := d.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		_, problem := domain.ParseCall([]byte(c.body))
		err := s.Validate(doc)
		if (problem == "") != c.good || (err == nil) != c.good {
			t.Errorf("%.80s: the parser says %q, the schema %v", c.body, problem, err)
		}
	}
}

// teller asks a running service as a host or the operator, and holds each message to
// the contract.
type teller struct {
	t      *testing.T
	client *bus.Client
	seen   map[string]bool
}

func (w *world) teller(dial func(dir string, ctx context.Context) (*bus.Client, error)) *teller {
	w.t.Helper()
	client, err := dial(filepath.Join(w.dir, ".waybill", "nats"), w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(client.Close)
	return &teller{w.t, client, map[string]bool{}}
}

// asks sends one request, whose answer must have a code, "" for none.
func (x *teller) asks(verb, body, code string) []byte {
	x.t.Helper()
	reply, got, err := x.client.Request(x.t.Context(), verb, []byte(body))
	return x.look(verb, body, code, reply, got, err)
}

func (x *teller) orders(verb, body, code string) []byte {
	x.t.Helper()
	reply, got, err := x.client.Order(x.t.Context(), verb, "ann", []byte(body))
	return x.look(verb, body, code, reply, got, err)
}

func (x *teller) look(verb, body, code string, reply []byte, got string, err error) []byte {
	x.t.Helper()
	if err != nil || got != code {
		x.t.Fatalf("%s %s: code %q, want %q: %v\n%s", verb, body, got, code, err, reply)
	}
	if body != "" && code != string(domain.CodeBadRequest) {
		contracttest.Check(x.t, contracttest.Published(x.t, contract.Request(verb)), verb+", request", []byte(body))
	}
	form := contract.Reply(verb)
	if code != "" && slices.Contains(contract.Verbs(), verb) && verb != bus.CallVerb {
		form = contract.Refusal()
	}
	contracttest.Check(x.t, contracttest.Published(x.t, form), verb+", reply", reply)
	contracttest.Check(x.t, contracttest.Closed(x.t, form), verb+", reply, closed", reply)
	x.seen[verb] = true
	return reply
}

func TestRealMessagesMatchTheContract(t *testing.T) {
	w := newWorld(t, "payloads: full", peerYAML{name: "one", mode: "modern"}, peerYAML{name: "two", mode: "modern"}, peerYAML{name: "off", mode: "refusing"})
	w.ready()
	w.serve()
	url := decode[struct{ URL string }](t, w.runFile()).URL
	host := w.teller(func(dir string, ctx context.Context) (*bus.Client, error) {
		return bus.Dial(ctx, url, dir, localHost, prefix)
	})
	tools := decode[toolsReply](t, string(host.asks("tools", "", "")))
	host.asks("tools", fmt.Sprintf(`{"after":%q}`, tools.Tools[0].Canonical), "")
	for _, verb := range []string{"peers", "check", "status"} {
		host.asks(verb, "", "")
	}
	host.asks("call", `{"tool":"echo","arguments":{"text":"tea"},"call_id":"one","progress":true}`, "")
	host.asks("call", `{"tool":"ask","call_id":"two","capabilities":{"elicitation":{}}}`, "undeclared_input")
	host.asks("call", `{"tool":"nowhere"}`, "unknown_tool")
	host.asks("call", `{}`, "bad_request")
	host.asks("outcome", `{"call_id":"one"}`, "")
	host.asks("outcome", `{"call_id":"three"}`, "unknown_call")
	host.asks("part", `{"call_id":"one"}`, "")
	host.asks("part", `{"call_id":"one","offset":100000}`, "bad_request")
	host.asks("part", `{"call_id":"three","offset":0}`, "outcome_lost")
	host.asks("explain", `{"call_id":"one"}`, "")
	host.asks("explain", `{"call_id":"three"}`, "unknown_call")
	host.asks("cancel", `{"call_id":"one"}`, "")
	if want := contract.Verbs(); len(host.seen) != len(want) {
		t.Errorf("asked %v of %v", host.seen, want)
	}
	operator := w.teller(func(dir string, ctx context.Context) (*bus.Client, error) {
		return bus.DialOperator(ctx, url, dir, prefix)
	})
	operator.orders("revive", `{"peer":"one"}`, "not_down")
	operator.orders("revive", `{}`, "bad_request")
	operator.orders("resend", `{"call":"local/one"}`, "not_resendable")
	operator.orders("approve", `{"tool":"`+tools.Tools[0].Canonical+`"}`, "not_quarantined")
	operator.orders("erase", `{"call":"local/one"}`, "")
	operator.orders("erase", `{}`, "bad_request")
	if want := contract.Orders(); len(operator.seen) != len(want) {
		t.Errorf("ordered %v of %v", operator.seen, want)
	}
	w.everyEvent()
}

// everyEvent holds what the log has to the schemas of its kinds.
func (w *world) everyEvent() {
	w.t.Helper()
	var kinds []string
	for line := range strings.Lines(w.must(exitDone, "events", "--json")) {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		contracttest.Check(w.t, contracttest.Closed(w.t, contract.Event(e.Type)), e.Type, []byte(line))
		kinds = append(kinds, e.Type)
	}
	slices.Sort(kinds)
	if kinds = slices.Compact(kinds); len(kinds) < 15 {
		w.t.Errorf("only %v", kinds)
	}
}

// runFile is what the running service says of itself.
func (w *world) runFile() string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, ".waybill", "run.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// docs/nats.md says which number comes with which end of a call.
func TestThePageSaysTheNumbersOfErrors(t *testing.T) {
	page, err := os.ReadFile("../../docs/nats.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d{3}) \| (.+) \|$`).FindAllStringSubmatch(string(page), -1) {
		head, _, _ := strings.Cut(row[2], ":")
		for _, word := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(head, -1) {
			said[word[1]] = row[1]
		}
	}
	if said["overloaded"] != "503" || said["shutting_down"] != "503" || said["result_too_large"] != "413" || said["unknown_call"] != "404" || len(said) != 10 {
		t.Fatalf("the page says %v", said)
	}
	for _, status := range messageWords[reflect.TypeFor[domain.Status]()] {
		want := said[status]
		if want == "" {
			want = "502"
		}
		if got := httpLike(harness.Reply{Status: domain.Status(status)}); strconv.Itoa(got) != want && status != string(domain.StatusComplete) {
			t.Errorf("%s goes with %d, the page says %s", status, got, want)
		}
	}
	if got := httpLike(harness.Reply{Status: domain.StatusComplete, Code: domain.CodeResultTooLarge}); got != 413 {
		t.Errorf("result_too_large goes with %d", got)
	}
}
