package peer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// The members of params._meta. The modern protocol requires the first three of every request (specification 2026-07-28, basic, "_meta";
// clientInfo is a SHOULD there and always sent here). Notifications carry none of them.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaProgress     = "progressToken" // in both eras, where progress is wanted
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
// parts; then nothing may be written. The body may be nil.
func (st stamper) request(s domain.Send, body *domain.Body) ([]byte, error) {
	params, err := st.params(s, body)
	if err != nil {
		return nil, err
	}
	b := strconv.AppendInt(append(make([]byte, 0, lineSize(params)), `{"jsonrpc":"2.0","id":`...), s.RequestID, 10)
	b = appendMember(b, "method", quoted(s.Method))
	b = appendMember(b, "params", []byte("{"))
	for _, p := range params {
		b = appendMember(b, p.name, p.value)
	}
	b = append(b, "}}"...)
	if len(b) > st.limit {
		return nil, errTooLarge
	}
	if err := st.check(b, s, params); err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// part is a member of a request's params.
type part struct {
	name  string
	kind  jsontext.Kind
	value []byte
}

// lineSize is a little more than the line takes: arguments may be large, and are copied once.
func lineSize(params []part) int {
	size := 256
	for _, p := range params {
		size += len(p.name) + len(p.value) + 4
	}
	return size
}

// params lists the members that the params of s have, and no others.
func (st stamper) params(s domain.Send, body *domain.Body) ([]part, error) {
	var params []part
	switch {
	case s.Method == domain.MethodDiscover && s.Era != domain.EraLegacy, s.Method == domain.MethodPing && s.Era == domain.EraLegacy:
	case s.Method == domain.MethodInitialize:
		params = append(params, part{"protocolVersion", '"', quoted(s.Version)}, part{"capabilities", '{', object(s.Capabilities)},
			part{"clientInfo", '{', st.client})
	case s.Method == domain.MethodList:
		if s.Cursor != nil {
			params = append(params, part{"cursor", '"', quoted(*s.Cursor)})
		}
	case s.Method == domain.MethodCall:
		params = callParams(s, body)
	default:
		return nil, fmt.Errorf("no request of the %s era is known for method %q", s.Era, s.Method)
	}
	if !stamped(s) && carriesInput(body) {
		return nil, errors.New("a legacy call carries input, which that era does not know")
	}
	if meta := st.meta(s); meta != nil {
		params = append(params, part{"_meta", '{', meta})
	}
	return params, nil
}

// callParams are what the host wrote and what the peer calls the tool (specification, basic/patterns/mrtr: a submission that goes
// on with a call repeats its arguments beside the input).
func callParams(s domain.Send, body *domain.Body) []part {
	if body == nil {
		body = &domain.Body{}
	}
	params := []part{{"name", '"', quoted(s.Tool)}, {"arguments", '{', object(body.Arguments)}}
	if body.InputResponses != nil {
		params = append(params, part{"inputResponses", '{', oneLine(body.InputResponses)})
	}
	if body.RequestState != nil {
		params = append(params, part{"requestState", '"', oneLine(body.RequestState)})
	}
	return params
}

func carriesInput(body *domain.Body) bool {
	return body != nil && (body.InputResponses != nil || body.RequestState != nil)
}

// stamped says which requests carry the modern stamp: all but those of the legacy era and the one that asks for it.
func stamped(s domain.Send) bool {
	return s.Era != domain.EraLegacy && s.Method != domain.MethodInitialize
}

// meta is what stands in _meta: the stamp, and the token that progress comes under; nil for nothing.
func (st stamper) meta(s domain.Send) []byte {
	b := []byte("{")
	if stamped(s) {
		b = appendMember(b, metaVersion, quoted(s.Version))
		b = appendMember(b, metaCapabilities, object(s.Capabilities))
		b = appendMember(b, metaClient, st.client)
	}
	if tracked(s) {
		b = appendMember(b, metaProgress, strconv.AppendInt(nil, s.RequestID, 10))
	}
	if len(b) == 1 {
		return nil
	}
	return append(b, '}')
}

// tracked says which requests carry a progressToken, which is their id.
func tracked(s domain.Send) bool { return s.Progress && s.Method == domain.MethodCall }

// check reads the finished line as a peer would, and refuses it if it is not exactly the request that was asked for.
func (st stamper) check(frame []byte, s domain.Send, params []part) error {
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
	return st.checkParams(m.Params, s, params)
}

func (st stamper) checkParams(params jsontext.Value, s domain.Send, want []part) error {
	got := membersOf(params)
	if len(got) != len(want) {
		return errors.New("the request's params are not as they should be")
	}
	for _, p := range want {
		if got[p.name].Kind() != p.kind {
			return fmt.Errorf("the request's %s is not what it should be", p.name)
		}
	}
	return st.checkMeta(membersOf(got["_meta"]), s)
}

func (st stamper) checkMeta(meta map[string]jsontext.Value, s domain.Send) error {
	most := 0
	if stamped(s) {
		most = 3
		if s.Version == "" || !bytes.Equal(meta[metaVersion], quoted(s.Version)) || meta[metaCapabilities].Kind() != '{' ||
			!bytes.Equal(meta[metaClient], st.client) {
			return errors.New("the request is not stamped")
		}
	}
	if tracked(s) {
		most++
		if string(meta[metaProgress]) != strconv.FormatInt(s.RequestID, 10) {
			return errors.New("the request's progressToken is not its id")
		}
	}
	if len(meta) != most {
		return errors.New("the request's _meta is not what its era asks for")
	}
	return nil
}

// membersOf returns the members of a JSON object, or nil if v is none. The values alias v.
func membersOf(v jsontext.Value) map[string]jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	if dec.PeekKind() != '{' {
		return nil
	}
	members := map[string]jsontext.Value{}
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err != nil {
			break
		}
		key := name.String()
		var value jsontext.Value
		value, err = dec.ReadValue()
		end := dec.InputOffset()
		members[key] = v[end-int64(len(value)) : end]
	}
	if _, end := dec.ReadToken(); err != nil || end != nil {
		return nil
	}
	return members
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
	if method == domain.MethodPing {
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
// something stays. A line break inside a string is no JSON and is left to the check. It may return its argument.
func oneLine(b []byte) []byte {
	if !bytes.ContainsAny(b, "\r\n") {
		return b
	}
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
