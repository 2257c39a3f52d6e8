package domain

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Facts is what settling a call needs to know of its answer. Exactly one of
// the shapes holds: Kind "result" with ResultType and IsError, Kind "error"
// with ErrorCode, or Kind "broken".
//
// Of an input_required, Asks names the capabilities that its inputRequests need,
// sorted, "?" for one that nobody defined. Of -32021, Required names those that
// the peer wants declared; of -32022, Supported is the highest version that both
// sides know. Schema is the verdict on the structured result, "" where none was
// made.
type Facts struct {
	Kind       string   `json:"kind"`
	ResultType string   `json:"result_type,omitempty"`
	IsError    bool     `json:"is_error,omitzero"`
	ErrorCode  int64    `json:"error_code,omitzero"`
	Asks       []string `json:"asks,omitzero"`
	Required   []string `json:"required,omitzero"`
	Supported  string   `json:"supported,omitempty"`
	Schema     string   `json:"schema,omitempty"` // valid, invalid, unchecked
}

// SchemaInvalid is the verdict on a structured result that does not match its
// tool's outputSchema.
const SchemaInvalid = "invalid"

// Answered is what ReadAnswer finds: the facts, and bytes that alias the frame.
type Answered struct {
	Facts        Facts
	Value        jsontext.Value // for the host: the result, or the error object; nil where broken
	RequestState jsontext.Value // a string, quoted; nil for none
}

const resultInput = "input_required"

// Kinds of answers.
const (
	FactResult = "result"
	FactError  = "error"
	FactBroken = "broken"
)

// ReadAnswer finds the facts of an answer to tools/call, and the bytes that go
// to the host: the result, or the error object, exactly as the peer wrote it.
func ReadAnswer(m Message) Answered {
	if !m.Is2() || (m.Result != nil) == (m.Error != nil) {
		return Answered{Facts: Facts{Kind: FactBroken}}
	}
	if m.Error != nil {
		return readError(m.Error)
	}
	if !isObject(m.Result) {
		return Answered{Facts: Facts{Kind: FactBroken}}
	}
	a := Answered{Facts: Facts{Kind: FactResult}, Value: m.Result}
	var asks, state jsontext.Value
	_ = members(m.Result, func(key string, value jsontext.Value) {
		switch key {
		case "resultType":
			a.Facts.ResultType = resultTypeWord(value)
		case "isError":
			a.Facts.IsError = value.Kind() == 't'
			if k := value.Kind(); k != 't' && k != 'f' && k != 'n' {
				a.Facts.Kind = FactBroken // neither a success nor a failure
			}
		case "inputRequests":
			asks = value
		case "requestState":
			state = value
		}
	})
	if a.Facts.ResultType == resultInput && a.Facts.Kind != FactBroken {
		a.readInput(asks, state)
	}
	if a.Facts.Kind == FactBroken {
		return Answered{Facts: Facts{Kind: FactBroken}}
	}
	return a
}

func readError(v jsontext.Value) Answered {
	code, data, ok := rpcError(v)
	if !ok {
		return Answered{Facts: Facts{Kind: FactBroken}}
	}
	f := Facts{Kind: FactError, ErrorCode: code}
	d := object(data)
	switch code {
	case rpcCapabilityMissing:
		f.Required = capabilityNames(d["requiredCapabilities"])
	case rpcVersionRefused:
		f.Supported = commonVersion(stringList(d["supported"]))
	}
	return Answered{Facts: f, Value: v}
}

// readInput reads what an input_required asks for: requests, a state, or both
// (specification, basic/patterns/mrtr, "Server Requirements").
func (a *Answered) readInput(asks, state jsontext.Value) {
	if state != nil && state.Kind() != '"' || asks != nil && !isObject(asks) {
		a.Facts.Asks = []string{"?"} // nobody can answer that
		return
	}
	a.RequestState = state
	_ = members(asks, func(_ string, request jsontext.Value) {
		a.Facts.Asks = addNew(a.Facts.Asks, asked(request))
	})
	slices.Sort(a.Facts.Asks)
}

// asked names the capability that one of the inputRequests needs. A form is the
// mode of an elicitation that names none (specification, client/elicitation).
func asked(request jsontext.Value) string {
	r := object(request)
	switch method, _ := text(r["method"]); method {
	case "roots/list":
		return "roots"
	case "sampling/createMessage":
		return "sampling"
	case "elicitation/create":
		mode, ok := text(object(r["params"])["mode"])
		switch {
		case !ok && object(r["params"])["mode"] == nil, mode == "form":
			return "elicitation.form"
		case mode == "url":
			return "elicitation.url"
		}
	}
	return "?"
}

// capabilityNames lists the names in an object of capabilities, sorted, "?" for
// one that nobody defined: no text of a peer's enters an event through it.
func capabilityNames(v jsontext.Value) []string {
	var out []string
	if !isObject(v) {
		return []string{"?"}
	}
	_ = members(v, func(key string, value jsontext.Value) {
		switch {
		case key == "elicitation" && object(value)["url"] != nil && object(value)["form"] != nil:
			out = addNew(out, "elicitation.form", "elicitation.url")
		case key == "elicitation" && object(value)["url"] != nil:
			out = addNew(out, "elicitation.url")
		case key == "elicitation":
			out = addNew(out, "elicitation.form")
		case key == "roots", key == "sampling":
			out = addNew(out, key)
		default:
			out = addNew(out, "?")
		}
	})
	slices.Sort(out)
	return out
}

// Covers reports whether declared capabilities hold every one that is named as
// Facts name them. An elicitation that names no mode stands for forms.
func Covers(declared jsontext.Value, names []string) bool {
	d := object(declared)
	for _, name := range names {
		e := object(d["elicitation"])
		switch name {
		case "roots", "sampling":
			if !isObject(d[name]) {
				return false
			}
		case "elicitation.form":
			if e == nil || len(e) > 0 && !isObject(e["form"]) {
				return false
			}
		case "elicitation.url":
			if !isObject(e["url"]) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// StateText returns what a requestState stands for. Two that stand for the same
// are the same, however they are escaped.
func StateText(v jsontext.Value) []byte {
	s, _ := text(v)
	return []byte(s)
}

// resultTypeWord keeps the two words the specification defines; any other
// value becomes "?" so that a peer's text cannot enter an event through it.
func resultTypeWord(v jsontext.Value) string {
	if s, ok := text(v); ok && (s == "complete" || s == resultInput) {
		return s
	}
	return "?"
}

// settle decides how an answered call ends (specification, basic, "Result
// Responses"; seed 2.1.0: a modern success without resultType is never
// accepted).
func (f Facts) settle(era Era) (Status, Code, Ran) {
	switch f.Kind {
	case FactError:
		if era == EraModern && isModernCode(f.ErrorCode) {
			return StatusProtocolError, CodePeerError, RanNo
		}
		return StatusProtocolError, CodePeerError, RanMaybe
	case FactResult:
		return f.settleResult(era)
	}
	return StatusProtocolError, CodeBadResult, RanMaybe
}

func (f Facts) settleResult(era Era) (Status, Code, Ran) {
	switch {
	case f.ResultType == "?":
		return StatusProtocolError, CodeBadResultType, RanMaybe
	case f.ResultType == "" && era == EraModern:
		return StatusProtocolError, CodeNoResultType, RanMaybe
	case f.ResultType == "input_required" && era == EraModern:
		return StatusInputRequired, CodeInputRequired, RanMaybe
	case f.ResultType == "input_required":
		return StatusProtocolError, CodeBadResultType, RanMaybe
	case f.IsError:
		return StatusToolError, CodeToolError, RanYes
	}
	return StatusComplete, "", RanYes
}
