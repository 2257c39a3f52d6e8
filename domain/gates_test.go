package domain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestARuleThatIsNotConfiguredIsNotFollowed: each key of a configuration, left
// out, leaves the decisions as they are without it; given, it changes them.
func TestARuleThatIsNotConfiguredIsNotFollowed(t *testing.T) {
	call := func(w *world) { w.submit("c", "x") }
	loses := func(written string) func(w *world) string {
		return func(w *world) string { call(w); return strings.Join(kinds(w.loses("c", written)), " ") }
	}
	answer := func(f Facts, state ...string) func(w *world) string {
		return func(w *world) string {
			call(w)
			out := w.answers("c", f, state...)
			return kinds(out)[0] + " " + end(out)
		}
	}
	for _, c := range []struct {
		name    string
		set     func(*PeerConfig)
		do      func(*world) string
		off, on string
	}{
		{"resends, never written", resends(1), loses("no"), "call.settled", "call.held"},
		{"resends, maybe written", resends(1), loses("maybe"), "call.settled", "call.settled"},
		{"resends, -32022", resends(1), answer(Facts{Kind: FactError, ErrorCode: -32022, Supported: "2026-07-28"}),
			"call.settled protocol_error peer_error no", "call.resent "},
		{"input_rounds, state alone", asking, answer(asks(), "s"), "call.settled input_required input_required maybe", "call.resent "},
		{"input_rounds, nothing at all", asking, answer(asks()), "call.settled input_required input_required maybe", "call.settled protocol_error bad_result maybe"},
		{"input_rounds, to go on", asking, func(w *world) string {
			w.submit("c", "x", can(`{"roots":{}}`))
			w.answers("c", asks("roots"), "s")
			return end(w.goesOn("c", "x", "s"))
		}, "refused not_waiting", ""},
		{"refuse_output", func(p *PeerConfig) { p.RefuseOutput = true }, answer(Facts{Kind: FactResult, ResultType: "complete", Schema: SchemaInvalid}),
			"call.settled complete  yes", "call.settled protocol_error output_invalid yes"},
		{"refuse_output, unchecked", func(p *PeerConfig) { p.RefuseOutput = true }, answer(Facts{Kind: FactResult, ResultType: "complete", Schema: "unchecked"}),
			"call.settled complete  yes", "call.settled complete  yes"},
		{"refuse_output, a tool error", func(p *PeerConfig) { p.RefuseOutput = true },
			answer(Facts{Kind: FactResult, ResultType: "complete", IsError: true, Schema: SchemaInvalid}),
			"call.settled tool_error tool_error yes", "call.settled tool_error tool_error yes"},
		{"hung_after", hungAfter(1), func(w *world) string { call(w); return strings.Join(kinds(w.passes("c", true)), " ") },
			"call.abandoned call.settled", "call.abandoned call.settled peer.abandoned"},
		{"health_every", func(p *PeerConfig) { p.HealthEvery = 30_000 }, func(w *world) string {
			return fmt.Sprint(kinds(w.see(HealthDue{At: w.at("a")})), len(Effects(Event{Data: all[EraDetermined](w.log)[0]})))
		}, "[] 1", "[health.requested] 2"},
		{"inflight", func(p *PeerConfig) { p.Inflight = 1 }, func(w *world) string { call(w); return end(w.submit("d", "y")) }, "", "refused overloaded"},
		{"call_limit", func(p *PeerConfig) { p.CallLimit = 90_000 }, func(w *world) string {
			d := must[CallRouted](w.t, w.submit("c", "x"))
			return fmt.Sprint(d.Deadline, d.Idle, d.Limit, d.Progress)
		}, "60000 0 0 false", "60000 60000 90000 true"},
		{"idle_timeout alone", func(p *PeerConfig) { p.IdleTimeout = 5_000 }, func(w *world) string {
			d := must[CallRouted](w.t, w.submit("c", "x"))
			return fmt.Sprint(d.Deadline, d.Idle, d.Limit, d.Progress)
		}, "60000 0 0 false", "60000 0 0 false"},
		{"list_timeout", func(p *PeerConfig) { p.ListTimeout = 7_000 }, func(w *world) string {
			w.exited("a")
			w.spawned("a")
			w.probed("a", discoverResult)
			return fmt.Sprint(w.last("a").Deadline, " ", must[CatalogRefused](w.t, w.silent("a")).Reason)
		}, "10000 tools/list was not answered within 10000 ms (probe_timeout)", "7000 tools/list was not answered within 7000 ms (list_timeout)"},
		{"restarts", func(p *PeerConfig) { p.Attempts = 1 }, func(w *world) string { w.exited("a"); w.spawned("a"); return kinds(w.exited("a"))[1] },
			"peer.restarted", "peer.quarantined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.do(fire(t)); got != c.off {
				t.Errorf("not configured: %q, want %q", got, c.off)
			}
			if got := c.do(fire(t, c.set)); got != c.on {
				t.Errorf("configured: %q, want %q", got, c.on)
			}
		})
	}
}

// TestWhatIsNotConfiguredIsNotWritten: an event says no more than it did.
func TestWhatIsNotConfiguredIsNotWritten(t *testing.T) {
	w := fire(t)
	w.submit("c", "x")
	w.answers("c", complete)
	for _, e := range w.log {
		said := facts(t, e.Data)
		for _, key := range []string{"idle_ms", "limit_ms", "wait_ms", `"progress"`, "health_every_ms", "input_responses", "request_state", "carries_key", "asks",
			"required", "supported", "schema", "silent", `"by"`} {
			if strings.Contains(said, key) {
				t.Errorf("%s says %s", said, key)
			}
		}
	}
	b, err := EncodeConfig(fireConfig())
	for _, key := range []string{"list_timeout", "call_limit", "idle", "resends", "idempotency", "input", "refuse", "hung", "health", "attempts", "quarantine"} {
		if err != nil || strings.Contains(string(b), key) {
			t.Errorf("the configuration says %s (%v)", key, err)
		}
	}
}

// TestReadAnswerFindsWhatIsAskedFor: by which capability, and with which state.
func TestReadAnswerFindsWhatIsAskedFor(t *testing.T) {
	in := func(members string) string { return `"result":{"resultType":"input_required"` + members + `}` }
	for _, c := range []struct{ answer, asks, state string }{
		{in(``), "[]", ""},
		{in(`,"requestState":"s"`), "[]", `"s"`},
		{in(`,"inputRequests":{},"requestState":""`), "[]", `""`},
		{in(`,"inputRequests":{"b":{"method":"sampling/createMessage"},"a":{"method":"roots/list"},"c":{"method":"roots/list"}}`), "[roots sampling]", ""},
		{in(`,"requestState":"\u0041","inputRequests":{"a":{"method":"elicitation/create","params":{}}}`), "[elicitation.form]", `"\u0041"`},
		{in(`,"inputRequests":{"a":{"method":"elicitation/create"}}`), "[elicitation.form]", ""},
		{in(`,"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form"}}}`), "[elicitation.form]", ""},
		{in(`,"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url"}}}`), "[elicitation.url]", ""},
		{in(`,"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"fax"}}}`), "[?]", ""},
		{in(`,"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":1}}}`), "[?]", ""},
		{in(`,"inputRequests":{"a":{"method":"tools/call"}}`), "[?]", ""},
		{in(`,"inputRequests":{"a":7}`), "[?]", ""},
		{in(`,"inputRequests":[]`), "[?]", ""},
		{in(`,"inputRequests":null`), "[?]", ""},
		{in(`,"requestState":7`), "[?]", ""},
		{in(`,"requestState":null`), "[?]", ""},
		{`"result":{"resultType":"complete","requestState":"s","inputRequests":{"a":{"method":"roots/list"}}}`, "[]", ""},
	} {
		m, err := ParseMessage([]byte(`{"jsonrpc":"2.0","id":1,` + c.answer + `}`))
		if err != nil {
			t.Fatal(err)
		}
		a := ReadAnswer(m)
		if got := fmt.Sprint(a.Facts.Asks); got != c.asks || string(a.RequestState) != c.state || !strings.HasSuffix(c.answer, string(a.Value)) {
			t.Errorf("%s asks %s with %s", c.answer, got, a.RequestState)
		}
	}
	if a, b := StateText(jsontext.Value(`"\u0041\/"`)), StateText(jsontext.Value(`"A/"`)); string(a) != string(b) || string(a) != "A/" {
		t.Errorf("%q is not %q", a, b)
	}
}

// TestReadAnswerFindsWhyItWasRejected: what the peer wants declared, and which
// version both know; never a word of the peer's own.
func TestReadAnswerFindsWhyItWasRejected(t *testing.T) {
	for _, c := range []struct{ answer, required, supported string }{
		{`{"code":-32021,"data":{"requiredCapabilities":{"sampling":{},"roots":{}}}}`, "[roots sampling]", ""},
		{`{"code":-32021,"data":{"requiredCapabilities":{"elicitation":{}}}}`, "[elicitation.form]", ""},
		{`{"code":-32021,"data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}`, "[elicitation.url]", ""},
		{`{"code":-32021,"data":{"requiredCapabilities":{"elicitation":{"url":{},"form":{}}}}}`, "[elicitation.form elicitation.url]", ""},
		{`{"code":-32021,"data":{"requiredCapabilities":{"my secret":{},"other":{}}}}`, "[?]", ""},
		{`{"code":-32021,"data":{"requiredCapabilities":[]}}`, "[?]", ""},
		{`{"code":-32021}`, "[?]", ""},
		{`{"code":-32021,"data":{"requiredCapabilities":{}}}`, "[]", ""},
		{`{"code":-32022,"data":{"supported":["2027-01-01","2026-07-28"]}}`, "[]", "2026-07-28"},
		{`{"code":-32022,"data":{"supported":["2027-01-01"]}}`, "[]", ""},
		{`{"code":-32022,"data":{"supported":["2026-07-28",1]}}`, "[]", ""},
		{`{"code":-32022,"data":{"supported":"2026-07-28"}}`, "[]", ""},
		{`{"code":-32022}`, "[]", ""},
		{`{"code":-32020,"data":{"supported":["2026-07-28"]}}`, "[]", ""},
		{`{"code":-1,"data":{"requiredCapabilities":{"roots":{}}}}`, "[]", ""},
	} {
		m, err := ParseMessage([]byte(`{"jsonrpc":"2.0","id":1,"error":` + c.answer + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if f := ReadAnswer(m).Facts; f.Kind != FactError || fmt.Sprint(f.Required) != c.required || f.Supported != c.supported {
			t.Errorf("%s: %+v", c.answer, f)
		}
	}
}

// TestCarriesKey: a non-empty string under the configured name, in the arguments
// of the tool that the canonical name leads to.
func TestCarriesKey(t *testing.T) {
	w := newWorld(t)
	c := fireConfig()
	c.Peers[0].Idempotency = map[string]string{"x": "request_key"}
	w.start(c)
	w.ready("a", "x", "y")
	w.ready("b", "x")
	for _, c := range []struct {
		tool, arguments string
		want            bool
	}{
		{"x", `{"request_key":"k"}`, true},
		{"x", `{"a":1,"request_key":"\u0020"}`, true},
		{"x", `{"request_key":""}`, false},
		{"x", `{"request_key":7}`, false},
		{"x", `{"request_key":null}`, false},
		{"x", `{"Request_Key":"k"}`, false},
		{"x", `{"in":{"request_key":"k"}}`, false},
		{"x", `{}`, false},
		{"y", `{"request_key":"k"}`, false},
		{"b/x", `{"request_key":"k"}`, false},
		{"none", `{"request_key":"k"}`, false},
	} {
		if got := w.s.CarriesKey(CallReceived{Tool: c.tool}, jsontext.Value(c.arguments)); got != c.want {
			t.Errorf("%s %s carries a key: %t", c.tool, c.arguments, got)
		}
	}
}

// TestOutputSchema is that of the tool a call went to, as it was listed last.
func TestOutputSchema(t *testing.T) {
	w := newWorld(t)
	w.start(fireConfig())
	w.spawned("a")
	w.probed("a", discoverResult)
	w.listed("a", strings.Replace(toolList("x", "y"), `"name":"x"`, `"outputSchema":{"type":"array"},"name":"x"`, 1))
	w.ready("b", "z")
	w.submit("c", "x")
	w.submit("d", "y")
	for id, want := range map[string]string{"c": `{"type":"array"}`, "d": "", "none": ""} {
		if got := string(w.s.OutputSchema("local/" + id)); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
	w.start(testConfig(PrefixOnCollision, "b"))
	if got := w.s.OutputSchema("local/c"); got != nil {
		t.Errorf("of a call that has ended: %s", got)
	}
}
