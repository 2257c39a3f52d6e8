package message

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
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

	metaTraceparent = "traceparent" // in both eras, where the host sent one (there, "OpenTelemetry trace context")
	metaTracestate  = "tracestate"
)

// ErrTooLarge says that a request would be longer than the frame limit.
var ErrTooLarge = errors.New("the request exceeds the frame limit")

// Stamper writes requests. Each is made from scratch: nothing of an earlier one can be in it. It may be used by several goroutines
// at once.
type Stamper struct {
	client jsontext.Value // clientInfo
	limit  int            // bytes of a line without its terminator
}

// NewStamper returns a Stamper that signs requests with the name and version of the client, and writes no line of more than
// limit bytes, its terminator not counted. It fails without a name or a version, or where they are no UTF-8.
func NewStamper(name, version string, limit int) (Stamper, error) {
	client := AppendMember([]byte("{"), "name", quoted(name))
	client = append(AppendMember(client, "version", quoted(version)), '}')
	if !jsontext.Value(client).IsValid() || name == "" || version == "" {
		return Stamper{}, errors.New("the client needs a name and a version, in UTF-8")
	}
	return Stamper{client: client, limit: limit}, nil
}

// Request returns the line that asks for s, with its terminator. The error is ErrTooLarge or says what is wrong with the
// parts; then nothing may be written. The body may be nil.
func (st Stamper) Request(s domain.Send, body *domain.Body) ([]byte, error) {
	params, err := st.params(s, body)
	if err != nil {
		return nil, err
	}
	b := strconv.AppendInt(append(make([]byte, 0, lineSize(params)), `{"jsonrpc":"2.0","id":`...), s.RequestID, 10)
	b = AppendMember(b, "method", quoted(s.Method))
	b = AppendMember(b, "params", []byte("{"))
	for _, p := range params {
		b = AppendMember(b, p.name, p.value)
	}
	b = append(b, "}}"...)
	if len(b) > st.limit {
		return nil, ErrTooLarge
	}
	if err := st.check(b, s, traceOf(s, body), params); err != nil {
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
func (st Stamper) params(s domain.Send, body *domain.Body) ([]part, error) {
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
	case s.Method == domain.MethodListen && s.Era == domain.EraModern:
		filter, err := filter(s.Types)
		if err != nil {
			return nil, err
		}
		params = append(params, part{"notifications", '{', filter})
	default:
		return nil, fmt.Errorf("no request of the %s era is known for method %q", s.Era, s.Method)
	}
	if !stamped(s) && carriesInput(body) {
		return nil, errors.New("a legacy call carries input, which that era does not know")
	}
	if meta := st.meta(s, traceOf(s, body)); meta != nil {
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

// listenable are the types of notifications that a subscription may be for: those that somebody here reads.
var listenable = []string{domain.TypeToolsChanged}

// filter is what a subscription is for (specification, basic/patterns/subscriptions, "Notification Filter"). One for
// nothing at all is a mistake, and so is one for what is not known.
func filter(types []string) ([]byte, error) {
	if len(types) == 0 {
		return nil, errors.New("a subscription names no type of notifications")
	}
	b := []byte("{")
	for _, t := range types {
		if !slices.Contains(listenable, t) {
			return nil, fmt.Errorf("a subscription names the type %q of notifications, which is not known", t)
		}
		b = AppendMember(b, t, []byte("true"))
	}
	return append(b, '}'), nil
}

func carriesInput(body *domain.Body) bool {
	return body != nil && (body.InputResponses != nil || body.RequestState != nil)
}

// stamped says which requests carry the modern stamp: all but those of the legacy era and the one that asks for it.
func stamped(s domain.Send) bool {
	return s.Era != domain.EraLegacy && s.Method != domain.MethodInitialize
}

// traceOf is where a call belongs in what its host is doing.
func traceOf(s domain.Send, body *domain.Body) domain.Trace {
	if s.Method != domain.MethodCall || body == nil {
		return domain.Trace{}
	}
	return body.Trace
}

// meta is what stands in _meta: the stamp, the token that progress comes under, and the host's trace; nil for nothing.
func (st Stamper) meta(s domain.Send, trace domain.Trace) []byte {
	b := []byte("{")
	if stamped(s) {
		b = AppendMember(b, metaVersion, quoted(s.Version))
		b = AppendMember(b, metaCapabilities, object(s.Capabilities))
		b = AppendMember(b, metaClient, st.client)
	}
	if Tracked(s) {
		b = AppendMember(b, metaProgress, strconv.AppendInt(nil, s.RequestID, 10))
	}
	for _, t := range traceMembers(trace) {
		b = AppendMember(b, t.name, t.value)
	}
	if len(b) == 1 {
		return nil
	}
	return append(b, '}')
}

// traceMembers are those of _meta that carry a trace.
func traceMembers(t domain.Trace) (out []part) {
	if t.Parent != "" {
		out = append(out, part{metaTraceparent, '"', quoted(t.Parent)})
	}
	if t.State != "" {
		out = append(out, part{metaTracestate, '"', quoted(t.State)})
	}
	return out
}

// Tracked says which requests carry a progressToken, which is their id: calls that ask for progress.
func Tracked(s domain.Send) bool { return s.Progress && s.Method == domain.MethodCall }

// check reads the finished line as a peer would, and refuses it if it is not exactly the request that was asked for.
func (st Stamper) check(frame []byte, s domain.Send, trace domain.Trace, params []part) error {
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
	return st.checkParams(m.Params, s, trace, params)
}

func (st Stamper) checkParams(params jsontext.Value, s domain.Send, trace domain.Trace, want []part) error {
	got := Members(params)
	if len(got) != len(want) {
		return errors.New("the request's params are not as they should be")
	}
	for _, p := range want {
		if got[p.name].Kind() != p.kind {
			return fmt.Errorf("the request's %s is not what it should be", p.name)
		}
	}
	if s.Method == domain.MethodListen {
		if err := checkFilter(Members(got["notifications"]), s.Types); err != nil {
			return err
		}
	}
	return st.checkMeta(Members(got["_meta"]), s, trace)
}

func checkFilter(got map[string]jsontext.Value, types []string) error {
	for _, t := range types {
		if string(got[t]) != "true" || len(got) != len(types) {
			return errors.New("the request is not for the notifications that it should be for")
		}
	}
	return nil
}

func (st Stamper) checkMeta(meta map[string]jsontext.Value, s domain.Send, trace domain.Trace) error {
	most := 0
	if stamped(s) {
		most = 3
		if s.Version == "" || !bytes.Equal(meta[metaVersion], quoted(s.Version)) || meta[metaCapabilities].Kind() != '{' ||
			!bytes.Equal(meta[metaClient], st.client) {
			return errors.New("the request is not stamped")
		}
	}
	if Tracked(s) {
		most++
		if string(meta[metaProgress]) != strconv.FormatInt(s.RequestID, 10) {
			return errors.New("the request's progressToken is not its id")
		}
	}
	for _, t := range traceMembers(trace) {
		most++
		if !bytes.Equal(meta[t.name], t.value) {
			return errors.New("the request's trace is not that of its host")
		}
	}
	if len(meta) != most {
		return errors.New("the request's _meta is not what its era asks for")
	}
	return nil
}
