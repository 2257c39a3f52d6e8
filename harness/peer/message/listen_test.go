package message

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

func listen(types ...string) domain.Send {
	return domain.Send{RequestID: 7, Method: domain.MethodListen, Era: domain.EraModern, Version: "2026-07-28", Types: types}
}

func TestASubscriptionIsAskedForAsTheModernEraAsks(t *testing.T) {
	s := listen(domain.TypeToolsChanged)
	s.Context, s.Progress, s.Call, s.Tool, s.Cursor = "a context", true, "h/c", "tool", pointer("x")
	body := &domain.Body{Arguments: jsontext.Value(`{"a":1}`), InputResponses: jsontext.Value(`{}`), RequestState: jsontext.Value(`"s"`)}
	for _, b := range []*domain.Body{nil, body} {
		got, err := testStamper(t, 1<<20).Request(s, b)
		want := `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + testStamp + "}}\n"
		if err != nil || string(got) != want {
			t.Errorf("%v, wrote\n%swant\n%s", err, got, want)
		}
	}
}

func TestASubscriptionThatCannotBeIsNotWritten(t *testing.T) {
	of := func(era domain.Era) domain.Send {
		s := listen(domain.TypeToolsChanged)
		s.Era = era
		return s
	}
	unversioned := listen(domain.TypeToolsChanged)
	unversioned.Version = ""
	tests := map[string]domain.Send{
		"of the legacy era":              of(domain.EraLegacy),
		"of no known era":                of(domain.EraUnknown),
		"of an era that is none":         of(""),
		"without a version":              unversioned,
		"for nothing":                    listen(),
		"for what nobody reads":          listen("promptsListChanged"),
		"for a list of resources":        listen(domain.TypeToolsChanged, "resourceSubscriptions"),
		"for a type in other letters":    listen("toolslistchanged"),
		"for a type without a name":      listen(""),
		"for one type twice":             listen(domain.TypeToolsChanged, domain.TypeToolsChanged),
		"for a type that brings another": listen(`toolsListChanged":true,"promptsListChanged`),
		"for a type that is not UTF-8":   listen("\xff"),
	}
	for name, s := range tests {
		if got, err := testStamper(t, 1<<20).Request(s, nil); err == nil {
			t.Errorf("%s: wrote %s", name, got)
		}
	}
}

// The line is made of what was asked for; these are lines that something else got into.
func TestASubscriptionForAnythingElseIsRefused(t *testing.T) {
	parts := []part{{"notifications", '{', nil}, {"_meta", '{', nil}}
	for filter, whole := range map[string]bool{
		`{"toolsListChanged":true}`:                           true,
		` { "toolsListChanged" : true } `:                     true,
		`{"toolsListChanged":false}`:                          false,
		`{"toolsListChanged":"true"}`:                         false,
		`{"toolsListChanged":1}`:                              false,
		`{"toolsListChanged":null}`:                           false,
		`{"toolsListChanged":true,"promptsListChanged":true}`: false,
		`{"promptsListChanged":true}`:                         false,
		`{"ToolsListChanged":true}`:                           false,
		`{}`:                                                  false,
		`[]`:                                                  false,
		`["toolsListChanged"]`:                                false,
		`null`:                                                false,
	} {
		line := `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":` + filter + `,` + testStamp + `}}`
		if err := testStamper(t, 1<<20).check([]byte(line), listen(domain.TypeToolsChanged), domain.Trace{}, parts); (err == nil) != whole {
			t.Errorf("%s: %v", filter, err)
		}
	}
}

const subscription7 = `{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}`

func TestANoticeNamesItsSubscriptionOrNone(t *testing.T) {
	meta := func(id string) string { return strings.ReplaceAll(subscription7, "7", id) }
	tests := []struct {
		method, params string
		notice         Notice
		id             int64
	}{
		{"notifications/subscriptions/acknowledged", `{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"notifications":{"toolsListChanged":true}}`,
			Acknowledged, 7},
		{"notifications/tools/list_changed", subscription7, ToolsChanged, 7},
		{"notifications/tools/list_changed", ` { "_meta" : { "x" : 1 , "io.modelcontextprotocol\/subscription\u0049d" : 7 } } `, ToolsChanged, 7},
		{"notifications/tools/list_changed", meta("9007199254740991"), ToolsChanged, 9007199254740991},
		{"notifications/tools/list_changed", meta(`"7"`), ToolsChanged, 0},
		{"notifications/tools/list_changed", meta("7.0"), ToolsChanged, 0},
		{"notifications/tools/list_changed", meta("7e0"), ToolsChanged, 0},
		{"notifications/tools/list_changed", meta("-7"), ToolsChanged, 0},
		{"notifications/tools/list_changed", meta("0"), ToolsChanged, 0},
		{"notifications/tools/list_changed", meta("99999999999999999999"), ToolsChanged, 0},
		{"notifications/tools/list_changed", meta("null"), ToolsChanged, 0},
		{"notifications/tools/list_changed", meta("[7]"), ToolsChanged, 0},
		{"notifications/tools/list_changed", `{"_meta":{"subscriptionId":7,"io.modelcontextprotocol/SubscriptionId":7}}`, ToolsChanged, 0},
		{"notifications/tools/list_changed", `{"io.modelcontextprotocol/subscriptionId":7,"requestId":7}`, ToolsChanged, 0},
		{"notifications/tools/list_changed", `{"_meta":[7]}`, ToolsChanged, 0},
		{"notifications/tools/list_changed", `["_meta",{"io.modelcontextprotocol/subscriptionId":7}]`, ToolsChanged, 0},
		{"notifications/tools/list_changed", `{"_meta":["io.modelcontextprotocol/subscriptionId",7]}`, ToolsChanged, 0},
		{"notifications/cancelled", `["requestId",7]`, Cancelled, 0},
		{"notifications/tools/list_changed", `{}`, ToolsChanged, 0},
		{"notifications/tools/list_changed", `[]`, ToolsChanged, 0},
		{"notifications/tools/list_changed", `7`, ToolsChanged, 0},
		{"notifications/cancelled", `{"requestId":7,"reason":"over"}`, Cancelled, 7},
		{"notifications/cancelled", `{"requestId":"7"}`, Cancelled, 0},
		{"notifications/cancelled", subscription7, Cancelled, 0},
		{"notifications/prompts/list_changed", subscription7, Unrelated, 0},
		{"notifications/resources/list_changed", subscription7, Unrelated, 0},
		{"notifications/subscriptions/Acknowledged", subscription7, Unrelated, 0},
		{"tools/list_changed", subscription7, Unrelated, 0},
		{"", subscription7, Unrelated, 0},
	}
	for _, test := range tests {
		m, err := domain.ParseMessage([]byte(`{"jsonrpc":"2.0","method":"` + test.method + `","params":` + test.params + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if notice, id := ReadNotice(m); notice != test.notice || id != test.id {
			t.Errorf("%s %s: notice %d of %d", test.method, test.params, notice, id)
		}
	}
	for _, m := range []domain.Message{{}, {Method: jsontext.Value(`"notifications/tools/list_changed"`)}, {Method: jsontext.Value(`7`)}} {
		if _, id := ReadNotice(m); id != 0 {
			t.Errorf("%+v: of %d", m, id)
		}
	}
}

func TestASubscriptionEndsAsItsAnswerSays(t *testing.T) {
	graceful := `"result":{"resultType":"complete",` + subscription7[1:]
	tests := []struct {
		answer string
		how    string
		code   int64
	}{
		{graceful, domain.EndedAnswered, 0},
		{`"result":{` + subscription7[1:len(subscription7)-1] + `,"more":[1],"resultType":"compl\u0065te"}`, domain.EndedAnswered, 0},
		{`"result":` + subscription7, domain.EndedBroken, 0},
		{strings.Replace(graceful, "complete", "input_required", 1), domain.EndedBroken, 0},
		{strings.Replace(graceful, `"complete"`, "true", 1), domain.EndedBroken, 0},
		{strings.Replace(graceful, "7", "8", 1), domain.EndedBroken, 0},
		{strings.Replace(graceful, "7", `"7"`, 1), domain.EndedBroken, 0},
		{strings.Replace(graceful, "7", "7.0", 1), domain.EndedBroken, 0},
		{`"result":{"resultType":"complete","_meta":{}}`, domain.EndedBroken, 0},
		{`"result":{"resultType":"complete"}`, domain.EndedBroken, 0},
		{`"result":{}`, domain.EndedBroken, 0},
		{`"result":[]`, domain.EndedBroken, 0},
		{`"result":"complete"`, domain.EndedBroken, 0},
		{`"result":null`, domain.EndedBroken, 0},
		{`"x":1`, domain.EndedBroken, 0},
		{graceful + `,"error":{"code":1}`, domain.EndedBroken, 0},
		{graceful + `,"error":null`, domain.EndedBroken, 0},
		{`"error":{"code":-32601,"message":"no"}`, domain.EndedError, -32601},
		{`"error":{"code":-32022,"data":{"supported":["2026-07-28"]}}`, domain.EndedError, -32022},
		{`"error":{"code":1.5}`, domain.EndedError, 0},
		{`"error":{"code":"-32601"}`, domain.EndedError, 0},
		{`"error":{"message":"no"}`, domain.EndedError, 0},
		{`"error":"no"`, domain.EndedError, 0},
		{`"error":null`, domain.EndedError, 0},
	}
	for _, test := range tests {
		for version, good := range map[string]bool{`"2.0"`: true, `"1.0"`: false, `2.0`: false} {
			m, err := domain.ParseMessage([]byte(`{"jsonrpc":` + version + `,"id":7,` + test.answer + `}`))
			if err != nil {
				t.Fatal(err)
			}
			want, code := test.how, test.code
			if !good {
				want, code = domain.EndedBroken, 0
			}
			if how, got := ReadEnd(m, 7); how != want || got != code {
				t.Errorf("%s of jsonrpc %s: %s, %d", test.answer, version, how, got)
			}
		}
	}
	if how, code := ReadEnd(domain.Message{}, 7); how != domain.EndedBroken || code != 0 {
		t.Errorf("a line that is no message: %s, %d", how, code)
	}
}
