package domain

import (
	"strings"
	"testing"
)

// TestParseCallTakesArgumentsAsTheyAre: not a byte of them changes.
func TestParseCallTakesArgumentsAsTheyAre(t *testing.T) {
	for _, arguments := range []string{
		`{}`,
		`{ }`,
		`{"id":9007199254740993,"neg":-725653563933458433,"f":1.10,"e":1e3}`,
		`{"n":123456789012345678901234567890}`,
		`{"b":1,"a":2,"c":{"z":1,"y":2}}`,
		`{"u":"\u00e9\ud83d\ude00é😀","s":"a\/b"}`,
		"{\n\t\"a\" : [ 1 , 2 ]\r\n}",
		`{"a":null,"b":[],"c":-0,"d":0.0}`,
	} {
		for _, form := range []string{`{"tool":"t","arguments":%}`, `{"arguments": % ,"tool":"t"}`} {
			r, problem := ParseCall([]byte(strings.Replace(form, "%", arguments, 1)))
			if problem != "" || string(r.Arguments) != arguments || r.Tool != "t" {
				t.Errorf("%s became %s (%s)", arguments, r.Arguments, problem)
			}
		}
	}
}

func TestParseCallReadsEveryMember(t *testing.T) {
	r, problem := ParseCall([]byte(`{"tool":"a/b c","call_id":"A-z_0","generation":9007199254740992,"timeout_ms":3600000,"idempotency_key":"` + strings.Repeat("k", 256) + `"}`))
	if problem != "" || r.Key != strings.Repeat("k", 256) || r.Tool != "a/b c" || r.CallID != "A-z_0" || r.Generation != 1<<53 || r.Timeout != MaxTimeout || string(r.Arguments) != `{}` {
		t.Errorf("read %+v (%s)", r, problem)
	}
}

// TestParseCallReadsWhatGoesWithACall: times, what the host can do, and the input
// that a call asked for, as it was written.
func TestParseCallReadsWhatGoesWithACall(t *testing.T) {
	r, problem := ParseCall([]byte(`{"tool":"t","call_id":"c","timeout_ms":5,"limit_ms":5,"wait_ms":3600000,"progress":true,
		"capabilities":{ "elicitation":{} },"inputResponses":{ "a":{"n":1.0} },"requestState":"\u0041"}`))
	if problem != "" || r.Timeout != 5 || r.Limit != 5 || r.Wait != MaxTimeout || !r.Progress || string(r.Capabilities) != `{ "elicitation":{} }` ||
		string(r.InputResponses) != `{ "a":{"n":1.0} }` || string(r.RequestState) != `"\u0041"` || !r.Continues() {
		t.Errorf("read %+v (%s)", r, problem)
	}
	for request, want := range map[string]bool{
		`{"tool":"t"}`: false,
		`{"tool":"t","capabilities":{},"progress":false}`:     false,
		`{"tool":"t","call_id":"c","inputResponses":{}}`:      true,
		`{"tool":"t","call_id":"c","requestState":""}`:        true,
		`{"tool":"t","limit_ms":5}`:                           false,
		`{"tool":"t","limit_ms":5,"wait_ms":1,"call_id":"c"}`: false,
	} {
		if r, problem := ParseCall([]byte(request)); problem != "" || r.Continues() != want || r.Progress {
			t.Errorf("%s: %+v (%s)", request, r, problem)
		}
	}
}

func TestParseCallRefuses(t *testing.T) {
	for _, c := range []struct{ name, request, want string }{
		{"nothing", ``, "single JSON object"},
		{"a list", `[]`, "single JSON object"},
		{"two objects", `{"tool":"t"}{"tool":"t"}`, "single JSON object"},
		{"half an object", `{"tool":"t"`, "single JSON object"},
		{"a repeated key", `{"tool":"t","tool":"u"}`, "single JSON object"},
		{"a repeated key in arguments", `{"tool":"t","arguments":{"a":{"b":1,"b":2}}}`, "single JSON object"},
		{"broken UTF-8", "{\"tool\":\"t\",\"arguments\":{\"a\":\"\xff\"}}", "single JSON object"},
		{"a lone surrogate", `{"tool":"t","arguments":{"a":"\ud83d"}}`, "single JSON object"},
		{"no tool", `{"arguments":{}}`, "names no tool"},
		{"an empty tool", `{"tool":""}`, "tool and model_name must be"},
		{"a tool that is no string", `{"tool":1}`, "tool and model_name must be"},
		{"a long tool", `{"tool":"` + strings.Repeat("t", 257) + `"}`, "tool and model_name must be"},
		{"arguments null", `{"tool":"t","arguments":null}`, "arguments must be"},
		{"arguments that are a list", `{"tool":"t","arguments":[]}`, "arguments must be"},
		{"a member nobody knows", `{"tool":"t","idempotencyKey":"k"}`, `unknown member "idempotencyKey"`},
		{"an empty idempotency_key", `{"tool":"t","idempotency_key":""}`, "idempotency_key must be"},
		{"an idempotency_key that is no string", `{"tool":"t","idempotency_key":7}`, "idempotency_key must be"},
		{"a long idempotency_key", `{"tool":"t","idempotency_key":"` + strings.Repeat("k", 257) + `"}`, "idempotency_key must be"},
		{"an idempotency_key with input", `{"tool":"t","call_id":"c","idempotency_key":"k","inputResponses":{}}`, "goes with the first submission"},
		{"Tool in capitals", `{"Tool":"t"}`, `unknown member "Tool"`},
		{"an empty call_id", `{"tool":"t","call_id":""}`, "call_id must be"},
		{"a long call_id", `{"tool":"t","call_id":"` + strings.Repeat("c", 65) + `"}`, "call_id must be"},
		{"a call_id with a slash", `{"tool":"t","call_id":"a/b"}`, "call_id must be"},
		{"a call_id of ours", `{"tool":"t","call_id":"wb-1"}`, "call_id must be"},
		{"a call_id that is a number", `{"tool":"t","call_id":1}`, "call_id must be"},
		{"generation 0", `{"tool":"t","generation":0}`, "generation must be"},
		{"a generation with a fraction", `{"tool":"t","generation":1.0}`, "generation must be"},
		{"a generation as a string", `{"tool":"t","generation":"1"}`, "generation must be"},
		{"a generation above 2^53", `{"tool":"t","generation":9007199254740993}`, "generation must be"},
		{"timeout 0", `{"tool":"t","timeout_ms":0}`, "timeout_ms must be"},
		{"a negative timeout", `{"tool":"t","timeout_ms":-1}`, "timeout_ms must be"},
		{"a timeout beyond an hour", `{"tool":"t","timeout_ms":3600001}`, "timeout_ms must be"},
		{"a timeout null", `{"tool":"t","timeout_ms":null}`, "timeout_ms must be"},
		{"limit 0", `{"tool":"t","limit_ms":0}`, "limit_ms must be"},
		{"a limit beyond an hour", `{"tool":"t","limit_ms":3600001}`, "limit_ms must be"},
		{"a limit below the timeout", `{"tool":"t","limit_ms":4,"timeout_ms":5}`, "not be less than timeout_ms"},
		{"wait 0", `{"tool":"t","wait_ms":0}`, "wait_ms must be"},
		{"a wait with a fraction", `{"tool":"t","wait_ms":1.5}`, "wait_ms must be"},
		{"a wait beyond an hour", `{"tool":"t","wait_ms":3600001}`, "wait_ms must be"},
		{"progress null", `{"tool":"t","progress":null}`, "progress must be"},
		{"progress as a word", `{"tool":"t","progress":"true"}`, "progress must be"},
		{"capabilities null", `{"tool":"t","capabilities":null}`, "capabilities must be"},
		{"capabilities that are a list", `{"tool":"t","capabilities":["roots"]}`, "capabilities must be"},
		{"capabilities too deep", `{"tool":"t","capabilities":{"a":{"b":{"c":{"d":{}}}}}}`, "capabilities must be"},
		{"capabilities too long", `{"tool":"t","capabilities":{"a":"` + strings.Repeat("x", maxCapabilities) + `"}}`, "capabilities must be"},
		{"inputResponses null", `{"tool":"t","call_id":"c","inputResponses":null}`, "inputResponses must be"},
		{"inputResponses that are a list", `{"tool":"t","call_id":"c","inputResponses":[]}`, "inputResponses must be"},
		{"inputResponses too deep", `{"tool":"t","call_id":"c","inputResponses":{"a":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}}`, "inputResponses must be"},
		{"requestState null", `{"tool":"t","call_id":"c","requestState":null}`, "requestState must be"},
		{"requestState that is an object", `{"tool":"t","call_id":"c","requestState":{}}`, "requestState must be"},
		{"input for no call", `{"tool":"t","inputResponses":{}}`, "name its call_id"},
		{"a state for no call", `{"tool":"t","requestState":"s"}`, "name its call_id"},
		{"input_responses", `{"tool":"t","call_id":"c","input_responses":{}}`, "unknown member"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, problem := ParseCall([]byte(c.request))
			if !strings.Contains(problem, c.want) || len(problem) > 200 {
				t.Errorf("problem is %q, want %q", problem, c.want)
			}
			if string(r.Arguments) != `{}` && c.want == "single JSON object" {
				t.Errorf("arguments of what is no request: %s", r.Arguments)
			}
		})
	}
}

// TestReadAnswerKeepsTheBytes: what goes to the host is what the peer wrote.
func TestReadAnswerKeepsTheBytes(t *testing.T) {
	for _, c := range []struct{ frame, want string }{
		{`{"jsonrpc":"2.0","id":1,"result":{ "resultType":"complete","n":123456789012345678901234567890,"e":"\u00e9" }}`,
			`{ "resultType":"complete","n":123456789012345678901234567890,"e":"\u00e9" }`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m","data":{"b":1,"a":2}}}`, `{"code":-1,"message":"m","data":{"b":1,"a":2}}`},
	} {
		m, err := ParseMessage([]byte(c.frame))
		if err != nil {
			t.Fatal(err)
		}
		if got := ReadAnswer(m).Value; string(got) != c.want {
			t.Errorf("%s became %s", c.want, got)
		}
	}
}

func TestParseMessageRefusesWhatIsNotOneObject(t *testing.T) {
	for _, bad := range []string{``, ` `, `x`, `1`, `"a"`, `null`, `[]`, `[{"jsonrpc":"2.0"}]`, `{}{}`, `{} x`, `{`, `{"a":1,}`, `{"a":1,"a":2}`,
		`{"a":{"b":1,"b":2}}`, `{"\u0061":1,"a":2}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":01}`, `{"a":NaN}`, "\xef\xbb\xbf\xef\xbb\xbf{}"} {
		if m, err := ParseMessage([]byte(bad)); err == nil {
			t.Errorf("%q was taken for %+v", bad, m)
		}
	}
	for _, good := range []string{`{}`, " {} \r", "\xef\xbb\xbf{}", `{"a":{"b":1},"c":{"b":1}}`, `{"Result":1,"result":2}`} {
		if _, err := ParseMessage([]byte(good)); err != nil {
			t.Errorf("%q was refused: %v", good, err)
		}
	}
}

func TestWhatAMessageIs(t *testing.T) {
	for frame, want := range map[string]struct {
		response, is2 bool
		method        string
	}{
		`{"jsonrpc":"2.0","id":1,"result":null}`:             {true, true, ""},
		`{"jsonrpc":"2.0","id":1,"error":{}}`:                {true, true, ""},
		`{"jsonrpc":"2.0","id":1}`:                           {false, true, ""},
		`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`:  {false, true, "m"},
		`{"jsonrpc":"\u0032.0","method":"notifications\/x"}`: {false, true, "notifications/x"},
		`{"jsonrpc":2,"method":7}`:                           {false, false, ""},
		`{"JSONRPC":"2.0","METHOD":"m","RESULT":{}}`:         {false, false, ""},
	} {
		m, err := ParseMessage([]byte(frame))
		if err != nil || m.IsResponse() != want.response || m.Is2() != want.is2 || m.MethodName() != want.method {
			t.Errorf("%s: response %t, jsonrpc 2.0 %t, method %q (%v)", frame, m.IsResponse(), m.Is2(), m.MethodName(), err)
		}
	}
}

func TestRequestIDIsAPlainInteger(t *testing.T) {
	for id, want := range map[string]int64{`1`: 1, `42`: 42, `9007199254740992`: 1 << 53, `"1"`: 0, `1.0`: 0, `1e0`: 0, `-1`: 0, `-0`: 0, `0`: 0,
		`null`: 0, `true`: 0, `[1]`: 0, `9223372036854775808`: 0, `7.5`: 0, ` 7 `: 7} {
		m, err := ParseMessage([]byte(`{"id":` + id + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := m.RequestID(); got != want || ok != (want != 0) {
			t.Errorf("id %s is read as %d, %t", id, got, ok)
		}
	}
}

// TestDoubtfulID: an answer that cannot be read is an answer of somebody, if it
// says of whom.
func TestDoubtfulID(t *testing.T) {
	for frame, want := range map[string]int64{
		`{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}`:              7,
		`{"jsonrpc":"2.0","id":7,"result":{"a":"\ud800"}}`:             7,
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}":           7,
		`{"result":{},"result":{},"id":7}`:                             7,
		`{"jsonrpc":"2.0","id":7,"id":7,"result":{}}`:                  0,
		`{"jsonrpc":"2.0","id":7,"\u0069d":8,"result":{}}`:             0,
		`{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":1,"a":2}}`: 0,
		`{"jsonrpc":"2.0","id":"7","result":{"a":1,"a":2}}`:            0,
		`{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}`:               0,
		`{"jsonrpc":"2.0","id":7,"result":{}} {}`:                      0,
		`[{"id":7}]`:                      0,
		`{"params":{"id":7,"a":1,"a":1}}`: 0,
		``:                                0,
	} {
		if id, ok := DoubtfulID([]byte(frame)); id != want || ok != (want != 0) {
			t.Errorf("%s: %d, %v", frame, id, ok)
		}
	}
}
