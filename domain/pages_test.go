package domain

import (
	"strings"
	"testing"

	"waybill/domain/catalog"
	"waybill/domain/wire"
)

// TestAnAnswerIsKnownAtSightOnlyWhereItIsWhole holds the short way to the parser: what
// is known by its result is a message whose result that is.
func TestAnAnswerIsKnownAtSightOnlyWhereItIsWhole(t *testing.T) {
	const result = `{"resultType":"complete","tools":[]}`
	var p Pages
	p.keep(result, &catalog.Page{})
	for _, row := range []struct {
		answer string
		known  bool
	}{
		{`{"jsonrpc":"2.0","id":7,"result":` + result + `}`, true},
		{`{"jsonrpc":"2.0","id":0,"result":` + result + `}`, true},
		{`{"jsonrpc":"2.0","id":07,"result":` + result + `}`, false},
		{`{"jsonrpc":"2.0","id":,"result":` + result + `}`, false},
		{`{"jsonrpc":"2.0","id":-1,"result":` + result + `}`, false},
		{`{"jsonrpc":"2.0","id":+1,"result":` + result + `}`, false},
		{`{"jsonrpc":"2.0","id":1e3,"result":` + result + `}`, false},
		{`{"jsonrpc":"2.0","id":"7","result":` + result + `}`, false},
		{`{"jsonrpc":"2.0","id":7,"result":` + result + `,"id":8}`, false},
		{`{"jsonrpc":"2.0","id":7,"result":` + result + `}}`, false},
		{`{"jsonrpc":"2.0","id":7,"result":` + result, false},
		{`{"jsonrpc":"2.0","id":7,"result": ` + result + `}`, false},
		{`{"jsonrpc":"2.0","id":7,"result":` + strings.Replace(result, "[]", "[1]", 1) + `}`, false},
		{`{"id":7,"jsonrpc":"2.0","result":` + result + `}`, false},
		{``, false},
	} {
		got, page := p.known([]byte(row.answer))
		if (page != nil) != row.known {
			t.Errorf("%s: known %t", row.answer, page != nil)
		}
		if page == nil {
			continue
		}
		if m, err := wire.ParseMessage([]byte(row.answer)); err != nil || !m.Is2() || m.Error != nil || string(m.Result) != string(got) {
			t.Errorf("%s: known, and the parser says %+v, %v", row.answer, m, err)
		}
	}
}
