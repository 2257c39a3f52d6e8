package message

import (
	"encoding/json"
	"strconv"
	"testing"

	"waybill/domain"
)

// oracle reads what members the frame has by another decoder, one that takes more.
func oracle(frame []byte, path ...string) string {
	value := json.RawMessage(frame)
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return ""
		}
		value = members[name]
	}
	return string(value)
}

// FuzzReadNotice holds the reader of notices to the frame: it names a subscription exactly where the frame has the digits of one in
// the one place for it.
func FuzzReadNotice(f *testing.F) {
	for _, params := range []string{subscription7, `{"requestId":12}`, `{"requestId":"12"}`, `{"_meta":{"io.modelcontextprotocol\/subscriptionId":1.0}}`,
		`{"_meta":{"io.modelcontextprotocol/subscriptionId":9223372036854775808}}`, `[]`, `["_meta",{"io.modelcontextprotocol/subscriptionId":1}]`, `["requestId",1]`} {
		for _, method := range []string{"subscriptions/acknowledged", "tools/list_changed", "cancelled", "x"} {
			f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/` + method + `","params":` + params + `}`))
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := domain.ParseMessage(frame)
		if err != nil {
			return
		}
		notice, id := ReadNotice(m)
		where := map[Notice][]string{Unrelated: {"no such member"}, Cancelled: {"requestId"},
			Acknowledged: {"_meta", metaSubscription}, ToolsChanged: {"_meta", metaSubscription}}[notice]
		want := oracle(m.Params, where...)
		if n, err := strconv.ParseInt(want, 10, 64); err != nil || n <= 0 || strconv.FormatInt(n, 10) != want {
			want = "0"
		}
		if strconv.FormatInt(id, 10) != want || (notice == Unrelated) != (id == 0 && !known(m)) {
			t.Errorf("%q: notice %d of %d, want %s", frame, notice, id, want)
		}
	})
}

func known(m domain.Message) bool {
	var method string
	_ = json.Unmarshal(m.Method, &method)
	return method == "notifications/subscriptions/acknowledged" || method == "notifications/tools/list_changed" || method == "notifications/cancelled"
}

// FuzzReadEnd holds the reader of ends to the frame: an end is graceful exactly where the frame has the two members that say so, and nothing
// that contradicts them.
func FuzzReadEnd(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete",`+subscription7[1:]+`}`), int64(7))
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete",`+subscription7[1:]+`,"error":null}`), int64(7))
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}`), int64(7))
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"error":{"code":1e3}}`), int64(8))
	f.Add([]byte(`{"result":[]}`), int64(1))
	f.Fuzz(func(t *testing.T, frame []byte, id int64) {
		if id <= 0 {
			return
		}
		m, err := domain.ParseMessage(frame)
		if err != nil {
			m = domain.Message{}
		}
		how, code := ReadEnd(m, id)
		one := m.Is2() && (m.Result == nil) != (m.Error == nil)
		var kind string
		_ = json.Unmarshal([]byte(oracle(m.Result, "resultType")), &kind)
		graceful := one && m.Result != nil && kind == "complete" && oracle(m.Result, "_meta", metaSubscription) == strconv.FormatInt(id, 10)
		failed := one && m.Error != nil
		if (how == domain.EndedAnswered) != graceful || (how == domain.EndedError) != failed || (how == domain.EndedBroken) == (graceful || failed) {
			t.Errorf("%q under %d ended as %s", frame, id, how)
		}
		if number, err := strconv.ParseFloat(oracle(m.Error, "code"), 64); code != 0 && (!failed || err != nil || float64(code) != number) {
			t.Errorf("%q under %d has the code %d", frame, id, code)
		}
	})
}
