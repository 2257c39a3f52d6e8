package message

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

func testStamper(t testing.TB, limit int) Stamper {
	t.Helper()
	st, err := NewStamper("waybill", "1.2.3", limit)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func pointer(s string) *string { return &s }

const testStamp = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
	`"io.modelcontextprotocol/clientInfo":{"name":"waybill","version":"1.2.3"}}`

func TestEveryRequestIsWrittenAsItsEraAsks(t *testing.T) {
	tests := []struct {
		name      string
		send      domain.Send
		arguments string
		want      string
	}{
		{"discover", domain.Send{Method: "server/discover", Era: domain.EraUnknown}, "", `"params":{` + testStamp + `}`},
		{"modern list", domain.Send{Method: "tools/list", Era: domain.EraModern}, "", `"params":{` + testStamp + `}`},
		{"modern list at an empty cursor", domain.Send{Method: "tools/list", Era: domain.EraModern, Cursor: pointer("")}, "",
			`"params":{"cursor":"",` + testStamp + `}`},
		{"modern call", domain.Send{Method: "tools/call", Era: domain.EraModern, Tool: `a"b`}, `{"n":9007199254740993}`,
			`"params":{"name":"a\"b","arguments":{"n":9007199254740993},` + testStamp + `}`},
		{"call without arguments", domain.Send{Method: "tools/call", Era: domain.EraModern, Tool: "a"}, "",
			`"params":{"name":"a","arguments":{},` + testStamp + `}`},
		{"initialize", domain.Send{Method: "initialize", Era: domain.EraUnknown, Version: "2025-11-25"}, "",
			`"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"waybill","version":"1.2.3"}}`},
		{"legacy list", domain.Send{Method: "tools/list", Era: domain.EraLegacy, Version: "2025-11-25", Cursor: pointer("x\n")}, "",
			`"params":{"cursor":"x\n"}`},
		{"legacy call", domain.Send{Method: "tools/call", Era: domain.EraLegacy, Version: "2025-11-25", Tool: "a"}, `{"_meta":1}`,
			`"params":{"name":"a","arguments":{"_meta":1}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.send.RequestID = 9007199254740991
			if test.send.Version == "" {
				test.send.Version = "2026-07-28"
			}
			got, err := testStamper(t, 1<<20).Request(test.send, &domain.Body{Arguments: []byte(test.arguments)})
			if err != nil {
				t.Fatal(err)
			}
			want := `{"jsonrpc":"2.0","id":9007199254740991,"method":"` + test.send.Method + `",` + test.want + "}\n"
			if string(got) != want {
				t.Errorf("wrote\n%swant\n%s", got, want)
			}
		})
	}
}

func TestACallCarriesInputAndATokenWhereItHasThem(t *testing.T) {
	stamp, withToken := testStamp, strings.TrimSuffix(testStamp, "}")+`,"progressToken":77}`
	input := domain.Body{Arguments: jsontext.Value(`{"a":1}`), InputResponses: jsontext.Value("{\"k\":\n{\"n\":1.10}}"),
		RequestState: jsontext.Value(`"s\u00e9\/\n"`)}
	const given = `"arguments":{"a":1},"inputResponses":{"k": {"n":1.10}},"requestState":"s\u00e9\/\n",`
	tests := []struct {
		name     string
		era      domain.Era
		progress bool
		body     *domain.Body
		want     string
	}{
		{"input", domain.EraModern, false, &input, given + stamp},
		{"a state alone", domain.EraModern, false, &domain.Body{RequestState: jsontext.Value(`""`)}, `"arguments":{},"requestState":"",` + stamp},
		{"responses alone", domain.EraModern, false, &domain.Body{InputResponses: jsontext.Value(`{}`)}, `"arguments":{},"inputResponses":{},` + stamp},
		{"input and a token", domain.EraModern, true, &input, given + withToken},
		{"a token", domain.EraModern, true, nil, `"arguments":{},` + withToken},
		{"a token for a legacy peer", domain.EraLegacy, true, nil, `"arguments":{},"_meta":{"progressToken":77}`},
	}
	for _, test := range tests {
		s := domain.Send{RequestID: 77, Method: domain.MethodCall, Era: test.era, Version: "2026-07-28", Tool: "t", Progress: test.progress}
		got, err := testStamper(t, 1<<20).Request(s, test.body)
		want := `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"t",` + test.want + "}}\n"
		if err != nil || string(got) != want {
			t.Errorf("%s: %v, wrote\n%swant\n%s", test.name, err, got, want)
		}
	}
}

func TestASignOfLifeIsAskedForAsTheEraAsks(t *testing.T) {
	tests := []struct {
		method string
		era    domain.Era
		want   string
	}{
		{"ping", domain.EraLegacy, `"params":{}`},
		{"server/discover", domain.EraModern, `"params":{` + testStamp + `}`},
		{"ping", domain.EraModern, ""},
		{"ping", domain.EraUnknown, ""},
		{"server/discover", domain.EraLegacy, ""},
	}
	for _, test := range tests {
		s := domain.Send{RequestID: 3, Method: test.method, Era: test.era, Version: "2026-07-28", Progress: true}
		got, err := testStamper(t, 1<<20).Request(s, nil)
		want := `{"jsonrpc":"2.0","id":3,"method":"` + test.method + `",` + test.want + "}\n"
		if (err != nil) != (test.want == "") || err == nil && string(got) != want {
			t.Errorf("%s of the %s era: %v, wrote %s", test.method, test.era, err, got)
		}
	}
}

// The line is made of what was asked for; these are lines that something else got into.
func TestALineWithAnotherMetaIsRefused(t *testing.T) {
	stamped := domain.Send{RequestID: 7, Method: domain.MethodCall, Era: domain.EraModern, Version: "2026-07-28", Tool: "t"}
	legacy := domain.Send{RequestID: 7, Method: domain.MethodCall, Era: domain.EraLegacy, Version: "2025-11-25", Tool: "t"}
	tracked := legacy
	tracked.Progress = true
	tests := []struct {
		send  domain.Send
		meta  string
		whole bool
	}{
		{stamped, strings.TrimPrefix(testStamp, `"_meta":`), true},
		{stamped, strings.TrimSuffix(strings.TrimPrefix(testStamp, `"_meta":`), "}") + `,"progressToken":7}`, false},
		{tracked, `{"progressToken":7}`, true},
		{tracked, `{"progressToken":"7"}`, false},
		{tracked, `{"progressToken":8}`, false},
		{tracked, `{"progressToken":7,"x":1}`, false},
		{tracked, `{}`, false},
		{legacy, `{"progressToken":7}`, false},
	}
	for _, test := range tests {
		st := testStamper(t, 1<<20)
		parts := []part{{"name", '"', nil}, {"arguments", '{', nil}, {"_meta", '{', nil}}
		line := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":` + test.meta + `}}`
		if err := st.check([]byte(line), test.send, domain.Trace{}, parts); (err == nil) != test.whole {
			t.Errorf("%s for the %s era: %v", test.meta, test.send.Era, err)
		}
	}
	parts := []part{{"name", '"', nil}, {"arguments", '{', nil}}
	for _, meta := range []string{`null`, `{}`, `{"progressToken":7}`} {
		line := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":` + meta + `}}`
		if testStamper(t, 1<<20).check([]byte(line), legacy, domain.Trace{}, parts) == nil {
			t.Errorf("a legacy call may carry _meta %s", meta)
		}
	}
}

func TestInputThatIsNotWholeIsNotWritten(t *testing.T) {
	tests := []struct {
		name      string
		era       domain.Era
		in, state string
	}{
		{"a list of responses", domain.EraModern, `[]`, ``},
		{"null for responses", domain.EraModern, `null`, ``},
		{"a number for a state", domain.EraModern, ``, `7`},
		{"null for a state", domain.EraModern, ``, `null`},
		{"a state that brings a member", domain.EraModern, ``, `"a","x":1`},
		{"responses that bring a member", domain.EraModern, `{},"task":{}`, ``},
		{"responses that bring a state", domain.EraModern, `{},"requestState":"x"`, ``},
		{"responses that close the object", domain.EraModern, `{}},"y":{"z":{}`, ``},
		{"a line break in a state", domain.EraModern, ``, "\"a\nb\""},
		{"a state that is not UTF-8", domain.EraModern, ``, "\"\xff\""},
		{"a name twice in the responses", domain.EraModern, `{"a":1,"a":2}`, ``},
		{"responses to a legacy peer", domain.EraLegacy, `{}`, ``},
		{"a state for a legacy peer", domain.EraLegacy, ``, `"a"`},
	}
	for _, test := range tests {
		body := &domain.Body{Arguments: jsontext.Value(`{}`)}
		if test.in != "" {
			body.InputResponses = jsontext.Value(test.in)
		}
		if test.state != "" {
			body.RequestState = jsontext.Value(test.state)
		}
		s := domain.Send{RequestID: 1, Method: domain.MethodCall, Era: test.era, Version: "2026-07-28", Tool: "t"}
		if got, err := testStamper(t, 1<<20).Request(s, body); err == nil {
			t.Errorf("%s: wrote %s", test.name, got)
		}
	}
}

func TestDeclaredCapabilitiesAreInTheStamp(t *testing.T) {
	s := domain.Send{RequestID: 1, Method: domain.MethodList, Era: domain.EraModern, Version: "2026-07-28",
		Capabilities: jsontext.Value("{\"roots\":{},\n\"x\":1}")}
	got, err := testStamper(t, 1<<20).Request(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
	}
	if err := json.Unmarshal(got, &m); err != nil {
		t.Fatal(err)
	}
	if c := string(m.Params.Meta["io.modelcontextprotocol/clientCapabilities"]); c != `{"roots":{}, "x":1}` {
		t.Errorf("capabilities are %s", c)
	}
}

func TestArgumentsTravelAsTheyCameButForLineBreaksBetweenTokens(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"b":1,"a":2,"b2":1e400}`, `{"b":1,"a":2,"b2":1e400}`},
		{`{"n":9007199254740993,"f":1.10,"e":1E+2}`, `{"n":9007199254740993,"f":1.10,"e":1E+2}`},
		{"{\r\n\t\"a\" : \"x\\n\\\"\\\\\" ,\n\"b\":[1,\n2]\n}", "{  \t\"a\" : \"x\\n\\\"\\\\\" , \"b\":[1, 2] }"},
		{`{"u":"\u00e9é\/😀","z":"\ud83d\ude00"}`, `{"u":"\u00e9é\/😀","z":"\ud83d\ude00"}`},
		{`{"u":"` + "\u2028" + `"}`, `{"u":"` + "\u2028" + `"}`},
	}
	for _, test := range tests {
		s := domain.Send{RequestID: 1, Method: domain.MethodCall, Era: domain.EraModern, Version: "2026-07-28", Tool: "t"}
		in := []byte(test.in)
		got, err := testStamper(t, 1<<20).Request(s, &domain.Body{Arguments: in})
		if err != nil {
			t.Errorf("%q: %v", test.in, err)
			continue
		}
		if !strings.Contains(string(got), `"arguments":`+test.want+`,"_meta"`) {
			t.Errorf("%q came out in %s", test.in, got)
		}
		if string(in) != test.in {
			t.Errorf("%q was changed in place", test.in)
		}
	}
}

func TestARequestThatIsNotWholeIsNotWritten(t *testing.T) {
	call := domain.Send{RequestID: 1, Method: domain.MethodCall, Era: domain.EraModern, Version: "2026-07-28", Tool: "t"}
	with := func(change func(*domain.Send)) domain.Send {
		s := call
		change(&s)
		return s
	}
	tests := []struct {
		name      string
		send      domain.Send
		arguments string
	}{
		{"arguments that close the object", call, `{}},"id":2,"x":{"y":{}`},
		{"arguments that bring a stamp", call, `{},"_meta":{}`},
		{"arguments that bring a member", call, `{},"task":{}`},
		{"capabilities that bring a member", with(func(s *domain.Send) { s.Capabilities = jsontext.Value(`{},"x":{}`) }), `{}`},
		{"a list of arguments", call, `[1]`},
		{"a line break in a string", call, "{\"a\":\"\n\"}"},
		{"arguments with a key twice", call, `{"a":1,"a":2}`},
		{"arguments that are not UTF-8", call, "{\"a\":\"\xff\"}"},
		{"a name that is not UTF-8", with(func(s *domain.Send) { s.Tool = "\xff" }), `{}`},
		{"capabilities that are a list", with(func(s *domain.Send) { s.Capabilities = jsontext.Value(`[]`) }), `{}`},
		{"no version", with(func(s *domain.Send) { s.Version = "" }), `{}`},
		{"an id that is none", with(func(s *domain.Send) { s.RequestID = 0 }), `{}`},
		{"an unknown method", with(func(s *domain.Send) { s.Method = "tools/run" }), `{}`},
	}
	for _, test := range tests {
		if got, err := testStamper(t, 1<<20).Request(test.send, &domain.Body{Arguments: []byte(test.arguments)}); err == nil {
			t.Errorf("%s: wrote %s", test.name, got)
		}
	}
}

func TestTheFrameLimitHoldsToTheByte(t *testing.T) {
	s := domain.Send{RequestID: 1, Method: domain.MethodCall, Era: domain.EraModern, Version: "2026-07-28", Tool: "t"}
	line, err := testStamper(t, 1<<20).Request(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := testStamper(t, len(line)-1).Request(s, nil); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := testStamper(t, len(line)-2).Request(s, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}

func TestNotificationsCarryNoStamp(t *testing.T) {
	if got := string(Cancel(7, "a\nb")); got != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"a\nb"}}`+"\n" {
		t.Error(got)
	}
	if got := string(Cancel(7, "")); got != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`+"\n" {
		t.Error(got)
	}
}

func TestAClientWithoutANameIsRefused(t *testing.T) {
	for _, c := range [][2]string{{"", "1"}, {"waybill", ""}, {"\xff", "1"}} {
		if _, err := NewStamper(c[0], c[1], 10); err == nil {
			t.Errorf("accepted %q", c)
		}
	}
}

// TestATraceIsInTheMetaOfACallOfEitherEra, and of no other request; a line that has
// another one is not written.
func TestATraceIsInTheMetaOfACallOfEitherEra(t *testing.T) {
	trace := domain.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "rojo=00f067aa0ba902b7"}
	const both = `"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"rojo=00f067aa0ba902b7"}`
	st := testStamper(t, 1<<20)
	for _, c := range []struct {
		name string
		send domain.Send
		body *domain.Body
		want string // the end of the line; "" for no trace
	}{
		{"modern", domain.Send{RequestID: 1, Method: domain.MethodCall, Era: domain.EraModern, Version: "2026-07-28", Tool: "t"}, &domain.Body{Trace: trace}, "," + both + "}}\n"},
		{"modern, with progress", domain.Send{RequestID: 1, Method: domain.MethodCall, Era: domain.EraModern, Version: "2026-07-28", Tool: "t", Progress: true},
			&domain.Body{Trace: trace}, `"progressToken":1,` + both + "}}\n"},
		{"legacy", domain.Send{RequestID: 1, Method: domain.MethodCall, Era: domain.EraLegacy, Version: "2025-11-25", Tool: "t"}, &domain.Body{Trace: trace}, `"_meta":{` + both + "}}\n"},
		{"a parent alone", domain.Send{RequestID: 1, Method: domain.MethodCall, Era: domain.EraLegacy, Version: "2025-11-25", Tool: "t"},
			&domain.Body{Trace: domain.Trace{Parent: trace.Parent}}, `"_meta":{"traceparent":"` + trace.Parent + "\"}}}\n"},
		{"none", domain.Send{RequestID: 1, Method: domain.MethodCall, Era: domain.EraLegacy, Version: "2025-11-25", Tool: "t"}, &domain.Body{}, ""},
		{"a list", domain.Send{RequestID: 1, Method: domain.MethodList, Era: domain.EraModern, Version: "2026-07-28"}, &domain.Body{Trace: trace}, ""},
	} {
		got, err := st.Request(c.send, c.body)
		if err != nil || c.want != "" && !strings.HasSuffix(string(got), c.want) || (c.want != "") != strings.Contains(string(got), "trace") {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
	legacy := domain.Send{RequestID: 1, Method: domain.MethodCall, Era: domain.EraLegacy, Version: "2025-11-25", Tool: "t"}
	line, err := st.Request(legacy, &domain.Body{Trace: trace})
	if err != nil {
		t.Fatal(err)
	}
	params, err := st.params(legacy, &domain.Body{Trace: trace})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []domain.Trace{{}, {Parent: trace.Parent}, {Parent: trace.Parent, State: "a=b"}, {Parent: strings.Replace(trace.Parent, "4", "5", 1), State: trace.State}} {
		if st.check(line[:len(line)-1], legacy, other, params) == nil {
			t.Errorf("a line with another trace than %+v passes", other)
		}
	}
}
