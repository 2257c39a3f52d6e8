package domain

import "strings"

// Trace is where a call belongs in what its host is doing (W3C Trace Context): it
// goes on to the peer in _meta (specification 2026-07-28, basic, "OpenTelemetry
// trace context"), and bears on no decision.
type Trace struct {
	Parent string `json:"traceparent,omitzero"`
	State  string `json:"tracestate,omitzero"` // only with Parent
}

const maxTracestate = 512 // bytes

// ParseTrace takes what a host sent beside its call. What is not well formed is
// dropped: a parent that is none of version 00, and a state that is longer than 512
// bytes, is no list of at most 32 members, or has no parent.
func ParseTrace(parent, state string) Trace {
	if !validParent(parent) {
		return Trace{}
	}
	if !validState(state) {
		state = ""
	}
	return Trace{Parent: parent, State: state}
}

// validParent holds a traceparent to version 00: 00-trace-parent-flags, in lower-case
// hex, neither id zero.
func validParent(s string) bool {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return false
	}
	trace, parent, flags := s[3:35], s[36:52], s[53:]
	return hexDigits(trace+parent+flags) && strings.Trim(trace, "0") != "" && strings.Trim(parent, "0") != ""
}

func hexDigits(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// validState holds a tracestate to its grammar, but for repeated keys.
func validState(s string) bool {
	members := strings.Split(s, ",")
	if s == "" || len(s) > maxTracestate || len(members) > 32 {
		return false
	}
	for _, m := range members {
		key, value, ok := strings.Cut(strings.Trim(m, " \t"), "=")
		if !ok || !validStateKey(key) || !validStateValue(value) {
			return false
		}
	}
	return true
}

func validStateKey(s string) bool {
	if s == "" || len(s) > 256 || !nameByte(s[0]) || s[0] == '_' || s[0] == '-' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i]) && !strings.ContainsRune("*/@", rune(s[i])) {
			return false
		}
	}
	return true
}

func validStateValue(s string) bool {
	if s == "" || len(s) > 256 || s[len(s)-1] == ' ' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' || s[i] == '=' {
			return false
		}
	}
	return true
}
