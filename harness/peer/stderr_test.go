package peer

import (
	"bytes"
	"strings"
	"testing"
)

// What is kept of standard error may begin in the middle of a secret, and
// redaction may bring that beginning into what is shown.
func TestTheEndOfStderrShowsNoPartOfASecret(t *testing.T) {
	const secret = "first-half+second-half"
	redact := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(secret), []byte("[]")) }
	for _, more := range []string{"", "x", strings.Repeat("y", 7), strings.Repeat("z", tailSize)} {
		kept := &tail{}
		l := &lane{spec: Spec{Redact: redact}, stderr: kept}
		for range tailKept/len(secret) + 2 {
			_, _ = kept.Write([]byte(secret))
		}
		_, _ = kept.Write([]byte(more + " the end"))
		got := string(l.stderrTail())
		if strings.Contains(got, "half") || !strings.HasSuffix(got, " the end") || len(got) > tailSize {
			t.Errorf("shown: %.100s ... %d bytes", got, len(got))
		}
	}
}
