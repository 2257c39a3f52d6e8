package domain

import (
	"github.com/go-json-experiment/json/jsontext"
)

// Facts is what settling a call needs to know of its answer. Exactly one of
// the shapes holds: Kind "result" with ResultType and IsError, Kind "error"
// with ErrorCode, or Kind "broken".
type Facts struct {
	Kind       string `json:"kind"`
	ResultType string `json:"result_type,omitempty"`
	IsError    bool   `json:"is_error,omitzero"`
	ErrorCode  int64  `json:"error_code,omitzero"`
}

// Kinds of answers.
const (
	FactResult = "result"
	FactError  = "error"
	FactBroken = "broken"
)

// ReadAnswer finds the facts of an answer to tools/call, and the bytes that go
// to the host: the result, or the error object, exactly as the peer wrote it.
func ReadAnswer(m Message) (Facts, jsontext.Value) {
	if !m.Is2() || (m.Result != nil) == (m.Error != nil) {
		return Facts{Kind: FactBroken}, nil
	}
	if m.Error != nil {
		code, _, ok := rpcError(m.Error)
		if !ok {
			return Facts{Kind: FactBroken}, nil
		}
		return Facts{Kind: FactError, ErrorCode: code}, m.Error
	}
	f := Facts{Kind: FactResult}
	if !isObject(m.Result) {
		return Facts{Kind: FactBroken}, nil
	}
	_ = members(m.Result, func(key string, value jsontext.Value) {
		switch key {
		case "resultType":
			f.ResultType = resultTypeWord(value)
		case "isError":
			f.IsError = value.Kind() == 't'
			if k := value.Kind(); k != 't' && k != 'f' && k != 'n' {
				f.Kind = FactBroken // neither a success nor a failure
			}
		}
	})
	if f.Kind == FactBroken {
		return Facts{Kind: FactBroken}, nil
	}
	return f, m.Result
}

// resultTypeWord keeps the two words the specification defines; any other
// value becomes "?" so that a peer's text cannot enter an event through it.
func resultTypeWord(v jsontext.Value) string {
	if s, ok := text(v); ok && (s == "complete" || s == "input_required") {
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
