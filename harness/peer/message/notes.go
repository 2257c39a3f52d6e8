package message

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// Initialized tells a legacy peer that its initialize result was accepted.
func Initialized() []byte {
	return []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
}

// Cancel tells a peer that nobody waits for a request. It is the same in both eras: the stamp is for requests.
func Cancel(id int64, reason string) []byte {
	b := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`), id, 10)
	if reason != "" {
		b = AppendMember(b, "reason", quoted(reason))
	}
	return append(b, "}}\n"...)
}

// Reply answers a legacy peer's request: a ping, or any other with "method not found". The id goes back as it came.
func Reply(id jsontext.Value, method string) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), oneLine(id)...)
	if method == domain.MethodPing {
		return append(b, `,"result":{}}`+"\n"...)
	}
	return append(b, `,"error":{"code":-32601,"message":"Method not found"}}`+"\n"...)
}
