package peer

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

const wantsX = `{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}`

func TestAStructuredResultIsJudged(t *testing.T) {
	tests := []struct {
		era            domain.Era
		schema, answer string
		want           string
	}{
		{domain.EraModern, wantsX, `"result":{"resultType":"complete","structuredContent":{"x":1}}`, "valid"},
		{domain.EraModern, wantsX, `"result":{"resultType":"complete","structuredContent":{"x":"1"}}`, "invalid"},
		{domain.EraModern, wantsX, `"result":{"resultType":"complete","content":[]}`, "invalid"},
		{domain.EraModern, `{"type":7}`, `"result":{"resultType":"complete","structuredContent":{"x":1}}`, "unchecked"},
		{domain.EraModern, "", `"result":{"resultType":"complete","structuredContent":{"x":1}}`, ""},
		{domain.EraModern, wantsX, `"result":{"resultType":"complete","isError":true,"content":[]}`, ""},
		{domain.EraModern, wantsX, `"result":{"resultType":"input_required","requestState":"s"}`, ""},
		{domain.EraModern, wantsX, `"result":{"structuredContent":{"x":"1"}}`, ""},
		{domain.EraModern, wantsX, `"result":{"resultType":"other","structuredContent":{"x":"1"}}`, ""},
		{domain.EraModern, wantsX, `"error":{"code":1,"message":"m"}`, ""},
		{domain.EraModern, wantsX, `"result":[]`, ""},
		{domain.EraLegacy, wantsX, `"result":{"structuredContent":{"x":"1"}}`, "invalid"},
	}
	var steps []string
	for _, test := range tests {
		steps = append(steps, "read", `say {"jsonrpc":"2.0","id":$ID,`+test.answer+`}`)
	}
	b := started(t, nil, append(steps, "untilEOF")...)
	b.modern()
	for _, test := range tests {
		body := &domain.Body{Arguments: jsontext.Value("{}")}
		if test.schema != "" {
			body.OutputSchema = jsontext.Value(test.schema)
		}
		b.askWith(domain.Send{Method: domain.MethodCall, Era: test.era, Call: "h/c", Tool: "t"}, body)
	}
	answers, _ := await[domain.CallAnswered](t, b.ledger, len(tests))
	for i, test := range tests {
		if got := answers[i].Facts.Schema; got != test.want {
			t.Errorf("%s of the %s era: %q, want %q", test.answer, test.era, got, test.want)
		}
	}
}

func TestASchemaIsCompiledOnceAndTheOldestAreForgotten(t *testing.T) {
	var s schemas
	raw := func(i int) jsontext.Value { return jsontext.Value(fmt.Sprintf(`{"title":"%d %020000d"}`, i, 0)) }
	first := s.of(raw(0))
	if s.of(raw(0)) != first || len(s.order) != 1 {
		t.Error("the same schema was compiled again")
	}
	for i := range 200 {
		s.of(raw(i))
	}
	if len(s.order) != len(s.compiled) || s.bytes > schemaBytes || len(s.order) < schemaBytes/2/20_000 {
		t.Errorf("%d and %d schemas are kept, %d bytes of them", len(s.order), len(s.compiled), s.bytes)
	}
	if last := s.of(raw(199)); s.of(raw(199)) != last || s.of(raw(0)) == first {
		t.Error("it is not the oldest that are forgotten")
	}
}
