package peer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// The three members that the modern protocol requires in params._meta of every request (specification 2026-07-28, basic, "_meta";
// clientInfo is a SHOULD there and always sent here). Notifications carry none of them.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClient       = "io.modelcontextprotocol/clientInfo"
)

var errTooLarge = errors.New("the request exceeds the frame limit")

// stamper writes requests. Each is made from scratch: nothing of an earlier one can be in it.
type stamper struct {
	client jsontext.Value // clientInfo
	limit  int            // bytes of a line without its terminator
}

func newStamper(name, version string, limit int) (stamper, error) {
	client := appendMember([]byte("{"), "name", quoted(name))
	client = append(appendMember(client, "version", quoted(version)), '}')
	if !jsontext.Value(client).IsValid() || name == "" || version == "" {
		return stamper{}, errors.New("the client needs a name and a version, in UTF-8")
	}
	return stamper{client: client, limit: limit}, nil
}

// request returns the line that asks for s, with its terminator. The error is errTooLarge or says what is wrong with the
// parts; then nothing may be written.
func (st stamper) request(s domain.Send, arguments []byte) ([]byte, error) {
	params, err := st.params(s, arguments)
	if err != nil {
		return nil, err
	}
	b := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","id":`), s.RequestID, 10)
	b = appendMember(b, "method", quoted(s.Method))
	b = append(appendMember(b, "params", params), '}')
	if len(b) > st.limit {
		return nil, errTooLarge
	}
	if err := st.check(b, s); err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

func (st stamper) params(s domain.Send, arguments []byte) ([]byte, error) {
	b := []byte("{")
	switch s.Method {
	case domain.MethodDiscover:
	case domain.MethodInitialize:
		b = appendMember(b, "protocolVersion", quoted(s.Version))
		b = appendMember(b, "capabilities", object(s.Capabilities))
		b = appendMember(b, "clientInfo", st.client)
	case methodList:
		if s.Cursor != nil {
			b = appendMember(b, "cursor", quoted(*s.Cursor))
		}
	case methodCall:
		b = appendMember(b, "name", quoted(s.Tool))
		b = appendMember(b, "arguments", object(arguments))
	default:
		return nil, fmt.Errorf("no request is known for method %q", s.Method)
	}
	if stamped(s) {
		b = appendMember(b, "_meta", st.meta(s))
	}
	return append(b, '}'), nil
}

// stamped says which requests carry the modern stamp: all but those of the legacy era and the one that asks for it.
func stamped(s domain.Send) bool {
	return s.Era != domain.EraLegacy && s.Method != domain.MethodInitialize
}

func (st stamper) meta(s domain.Send) []byte {
	b := appendMember([]byte("{"), metaVersion, quoted(s.Version))
	b = appendMember(b, metaCapabilities, object(s.Capabilities))
	return append(appendMember(b, metaClient, st.client), '}')
}

// check reads the finished line as a peer would, and refuses it if it is not exactly the request that was asked for.
func (st stamper) check(frame []byte, s domain.Send) error {
	m, err := domain.ParseMessage(frame)
	if err != nil {
		return errors.New("the request is no message") // the parser's words may quote what the host wrote
	}
	if id, ok := m.RequestID(); !ok || id != s.RequestID || !m.Is2() || m.MethodName() != s.Method {
		return errors.New("the request is not under its own id and method")
	}
	if bytes.ContainsAny(frame, "\r\n") {
		return errors.New("the request is not one line")
	}
	return st.checkParams(m.Params, s)
}

func (st stamper) checkParams(params jsontext.Value, s domain.Send) error {
	var p struct {
		Arguments jsontext.Value            `json:"arguments"`
		Meta      map[string]jsontext.Value `json:"_meta"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return errors.New("the request's params are not as they should be")
	}
	if s.Method == methodCall && p.Arguments.Kind() != '{' {
		return errors.New("the arguments are no object")
	}
	if !stamped(s) {
		if p.Meta != nil {
			return errors.New("a legacy request carries a stamp")
		}
		return nil
	}
	if len(p.Meta) != 3 || s.Version == "" || !bytes.Equal(p.Meta[metaVersion], quoted(s.Version)) ||
		p.Meta[metaCapabilities].Kind() != '{' || !bytes.Equal(p.Meta[metaClient], st.client) {
		return errors.New("the request is not stamped")
	}
	return nil
}

// initialized tells a legacy peer that its initialize result was accepted.
func initialized() []byte {
	return []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
}

// cancelled tells a peer that nobody waits for a request. It is the same in both eras: the stamp is for requests.
func cancelled(id int64, reason string) []byte {
	b := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`), id, 10)
	if reason != "" {
		b = appendMember(b, "reason", quoted(reason))
	}
	return append(b, "}}\n"...)
}

// reply answers a legacy peer's request: a ping, or any other with "method not found". The id goes back as it came.
func reply(id jsontext.Value, method string) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), oneLine(id)...)
	if method == methodPing {
		return append(b, `,"result":{}}`+"\n"...)
	}
	return append(b, `,"error":{"code":-32601,"message":"Method not found"}}`+"\n"...)
}

// appendMember appends a member to the open object in b.
func appendMember(b []byte, name string, value []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(append(b, '"'), name...)
	return append(append(b, `":`...), value...)
}

// quoted returns s as a JSON string. What is not UTF-8 comes out invalid, and fails the check of the line.
func quoted(s string) []byte {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return nil
	}
	return b
}

func object(b []byte) []byte {
	if len(bytes.TrimSpace(b)) == 0 {
		return []byte("{}")
	}
	return oneLine(b)
}

// oneLine returns JSON as it came, but with blanks for the line breaks between its tokens: every byte that means
// something stays. A line break inside a string is no JSON and is left to the check.
func oneLine(b []byte) []byte {
	out := bytes.Clone(b)
	inString, escaped := false, false
	for i, c := range out {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && (c == '\n' || c == '\r'):
			out[i] = ' '
		}
	}
	return out
}
