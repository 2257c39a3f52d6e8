package web

import (
	"mime"
	"strings"
	"testing"
)

// TestFallback has every status with the class that the design gives it
// ("Streamable HTTP"): exactly these, and nothing else, are no sign of an era.
func TestFallback(t *testing.T) {
	want := map[int]Class{401: Unauthorized, 403: Unauthorized, 407: Unavailable, 408: Unavailable, 421: Unavailable, 425: Unavailable, 429: Unavailable}
	for status := -600; status < 1300; status++ {
		class, ok := want[status]
		switch {
		case ok:
		case status >= 300 && status < 400:
			class = Redirect
		case status >= 400 && status < 500:
			class = Ambiguous
		case status >= 500 && status < 600:
			class = Unavailable
		default:
			class = Foreign
		}
		if got := Fallback(status); got != class {
			t.Errorf("%d is %s, want %s", status, got, class)
		}
	}
}

// TestJudge has a row for each rule (specification 2026-07-28, "Sending Messages"
// and "Backward Compatibility"; design, "Streamable HTTP").
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		rule   string
		status int
		kind   string
		want   Class
	}{
		{"Sending Messages, 6", 200, "application/json", Message},
		{"Sending Messages, 6", 200, "text/event-stream", Stream},
		{"any success", 206, "text/event-stream", Stream},
		{"types without case", 200, "Application/JSON", Message},
		{"types without parameters", 200, "application/json; charset=utf-8", Message},
		{"types without parameters", 200, "TEXT/Event-Stream;charset=UTF-8", Stream},
		{"types with white space", 200, " application/json ;q=1", Message},
		{"a broken parameter is one", 200, "application/json; charset", Message},
		{"exactly application/json", 200, "application/problem+json", Foreign},
		{"exactly application/json", 200, "text/json", Foreign},
		{"exactly application/json", 200, "application/json, application/json", Foreign},
		{"exactly application/json", 200, "application/jsonx", Foreign},
		{"no type", 200, "", Foreign},
		{"a page of a captive portal", 200, "text/html; charset=utf-8", Foreign},
		{"Sending Messages, 5: 202 is no answer to a request", 202, "application/json", Foreign},
		{"Sending Messages, 5: 202 is no answer to a request", 202, "text/event-stream", Foreign},
		{"Request Metadata: errors come with 400", 400, "application/json", Message},
		{"Request Metadata: an unknown method is 404 with a message", 404, "application/json", Message},
		{"a modern error in a stream is evidence too", 400, "text/event-stream", Stream},
		{"Backward Compatibility: an empty body", 400, "", Ambiguous},
		{"Backward Compatibility: another body", 404, "text/html", Ambiguous},
		{"Backward Compatibility: another body", 405, "text/plain", Ambiguous},
		{"whatever the status", 401, "application/json", Message},
		{"whatever the status", 503, "application/json", Message},
		{"a stream is not waited for where nobody was let in", 401, "text/event-stream", Unauthorized},
		{"a stream is not waited for where nobody was reached", 502, "text/event-stream", Unavailable},
		{"an outage", 502, "text/html", Unavailable},
		{"a redirect, whatever comes with it", 307, "application/json", Redirect},
		{"a redirect, whatever comes with it", 302, "text/event-stream", Redirect},
	} {
		if got := Judge(c.status, c.kind); got != c.want {
			t.Errorf("%s: %d with %q is %s, want %s", c.rule, c.status, c.kind, got, c.want)
		}
	}
}

// TestTypesAreReadAsByTheStandard: what package mime reads of a type, is read the
// same here.
func TestTypesAreReadAsByTheStandard(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream", "APPLICATION/json", "application/json ", "application/ json", "application",
		"text/html", "application/json+x", "application/\u212ason", "text/event-\u017ftream", ";", "/"} {
		for _, more := range []string{"", ";", "; charset=utf-8", ";a=\"b;c\"", " ; a", ";;", "\t;x=y"} {
			read, _, err := mime.ParseMediaType(kind + more)
			want := Foreign
			switch read {
			case typeJSON:
				want = Message
			case typeStream:
				want = Stream
			}
			if err != nil && read == "" && strings.TrimSpace(kind) == typeJSON {
				want = Message // the type is plain, whatever is wrong behind it
			}
			if got := Judge(200, kind+more); got != want {
				t.Errorf("%q is %s, by the standard it is %q (%v)", kind+more, got, read, err)
			}
		}
	}
}
