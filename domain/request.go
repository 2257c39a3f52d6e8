package domain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// GeneratedPrefix begins every call id that Waybill makes; a host may not
// choose one that begins so.
const GeneratedPrefix = "wb-"

// MaxTimeout bounds the timeout a host may ask for: one hour, in milliseconds.
const MaxTimeout = 60 * 60 * 1000

// MaxDepth bounds how deep arguments may nest: a peer's own parser must survive
// what a host sends.
const MaxDepth = 128

// CallRequest is a call as a host writes it.
type CallRequest struct {
	Tool       string
	Form       string         // of Tool: ModelForm where the host named it by its model_name
	Arguments  jsontext.Value // a JSON object, byte for byte as submitted; {} where there was none
	CallID     string         // "" where the host chose none
	Generation int64          // 0 where the host named none
	Timeout    int64          // milliseconds without an answer or progress; 0 where the host named none
	Limit      int64          // milliseconds in all, however much progress; 0 where the host named none
	Wait       int64          // milliseconds for a peer that is not there; 0 to be refused at once
	Progress   bool           // the host listens for progress
	Key        string         // idempotency_key; "" where the host named none

	Capabilities   jsontext.Value // what the host can do when a peer asks; nil where it did not say
	InputResponses jsontext.Value // an object; nil where the submission brings none
	RequestState   jsontext.Value // a string, quoted; nil where the submission brings none
}

// Continues reports whether the submission goes on with a call that asked for
// input.
func (r CallRequest) Continues() bool { return r.InputResponses != nil || r.RequestState != nil }

// maxCapabilities bounds what a host says of itself, in bytes: it is recorded.
const maxCapabilities = 2 << 10

// ParseCall reads a submitted call. problem says in one sentence why it can be
// none; the request then holds what could be read. Members that are not known
// are refused, so that a promise this version does not keep is never taken for
// kept.
func ParseCall(b []byte) (r CallRequest, problem string) {
	r.Arguments = jsontext.Value("{}")
	err := members(b, func(key string, v jsontext.Value) {
		if p := r.set(key, v); p != "" && problem == "" {
			problem = p
		}
	})
	switch {
	case err != nil:
		return CallRequest{Arguments: r.Arguments}, "the request is no single JSON object without repeated keys, in UTF-8"
	case problem == "" && r.Tool == "":
		problem = "the request names no tool"
	case problem == "" && r.Continues() && r.CallID == "":
		problem = "inputResponses and requestState go on with a call: name its call_id"
	case problem == "" && r.Continues() && r.Key != "":
		problem = "idempotency_key goes with the first submission of a call, not with its input"
	case problem == "" && !r.Continues() && strings.HasPrefix(r.CallID, GeneratedPrefix):
		problem = callIDProblem
	case problem == "" && r.Limit != 0 && r.Limit < r.Timeout:
		problem = "limit_ms must not be less than timeout_ms"
	}
	return r, problem
}

func (r *CallRequest) set(key string, v jsontext.Value) (problem string) {
	switch key {
	case "tool":
		return r.setTool(v, "")
	case "model_name":
		return r.setTool(v, ModelForm)
	case "arguments":
		if !isObject(v) {
			return "arguments must be a JSON object"
		}
		if depth(v) > MaxDepth {
			return fmt.Sprintf("arguments nest deeper than %d levels", MaxDepth)
		}
		r.Arguments = v
	case "call_id":
		return r.setCallID(v)
	case "idempotency_key":
		return r.setKey(v)
	case "generation":
		return positive(key, v, &r.Generation, 1<<53)
	case "timeout_ms":
		return positive(key, v, &r.Timeout, MaxTimeout)
	case "limit_ms":
		return positive(key, v, &r.Limit, MaxTimeout)
	case "wait_ms":
		return positive(key, v, &r.Wait, MaxTimeout)
	default:
		return r.setInput(key, v)
	}
	return ""
}

// MaxKey bounds an idempotency_key, in bytes.
const MaxKey = 256

func (r *CallRequest) setKey(v jsontext.Value) string {
	s, ok := text(v)
	if !ok || s == "" || len(s) > MaxKey {
		return fmt.Sprintf("idempotency_key must be a string of 1 to %d bytes", MaxKey)
	}
	r.Key = s
	return ""
}

// setInput sets what the two sides of an input_required need.
func (r *CallRequest) setInput(key string, v jsontext.Value) string {
	switch key {
	case "progress":
		if k := v.Kind(); k != 't' && k != 'f' {
			return "progress must be true or false"
		}
		r.Progress = v.Kind() == 't'
	case "capabilities":
		if !isObject(v) || len(v) > maxCapabilities || depth(v) > 4 {
			return fmt.Sprintf("capabilities must be a JSON object of at most %d bytes and 4 levels", maxCapabilities)
		}
		r.Capabilities = v
	case "inputResponses":
		if !isObject(v) || depth(v) > MaxDepth {
			return fmt.Sprintf("inputResponses must be a JSON object of at most %d levels", MaxDepth)
		}
		r.InputResponses = v
	case "requestState":
		if v.Kind() != '"' {
			return "requestState must be the string that came with the input_required"
		}
		r.RequestState = v
	default:
		return "unknown member " + shorten(key)
	}
	return ""
}

// setTool bounds the name, because it is written to the log before anybody
// knows it.
func (r *CallRequest) setTool(v jsontext.Value, form string) string {
	s, ok := text(v)
	switch {
	case !ok || s == "" || len(s) > 256:
		return "tool and model_name must be strings of 1 to 256 bytes"
	case r.Tool != "":
		return "name the tool once: by tool or by model_name"
	}
	r.Tool, r.Form = s, form
	return ""
}

func (r *CallRequest) setCallID(v jsontext.Value) string {
	s, ok := text(v)
	if !ok || !validCallID(s) {
		return callIDProblem
	}
	r.CallID = s
	return ""
}

const callIDProblem = "call_id must be 1 to 64 of A-Z a-z 0-9 _ -, and not begin with " + GeneratedPrefix + ", unless it goes on with a call of that id"

func validCallID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i]) && (s[i] < 'A' || s[i] > 'Z') {
			return false
		}
	}
	return true
}

func positive(key string, v jsontext.Value, to *int64, most int64) string {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 1 || n > most {
		return fmt.Sprintf("%s must be an integer from 1 to %d", key, most)
	}
	*to = n
	return ""
}
