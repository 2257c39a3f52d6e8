package syntax

import (
	"slices"
	"strings"
)

// FieldRule says what is wrong with a text that is no FieldValue.
const FieldRule = "cannot stand in a header: it is empty, has white space around it, or holds a line end or another control character"

// FieldValue is true of a field value of RFC 9110, section 5.5, that is not
// empty.
func FieldValue(s string) bool {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	return s != "" && strings.Trim(s, " \t") == s && !strings.ContainsFunc(s, control)
}

// Token is true of a token of RFC 9110, section 5.6.2.
func Token(s string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+marks) == ""
}

// ours are the headers that every request or connection has of itself.
var ours = []string{"accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "cookie", "expect",
	"host", "keep-alive", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade"}

// BadHeader says why no header of this name can be set; "" where it can.
func BadHeader(name string) string {
	low := strings.ToLower(name)
	switch {
	case !Token(name):
		return "the key is not the name of a header: letters, digits and !#$%&'*+-.^_`|~"
	case slices.Contains(ours, low) || strings.HasPrefix(low, "mcp-") || strings.HasPrefix(low, "proxy-"):
		return "is a header that requests have of themselves: take it out"
	}
	return ""
}

// VariableRule says what a Variable is.
const VariableRule = "the name of a variable: letters, digits and _, not beginning with a digit"

// Variable is true of the name of a variable of the environment.
func Variable(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	return name != "" && strings.Trim(name, letters+"0123456789") == "" && strings.IndexByte(letters, name[0]) >= 0
}
