package redact

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestLogLinesHoldNoSecret(t *testing.T) {
	const secret = "very-secret"
	var b bytes.Buffer
	log := slog.New(Handler(slog.NewTextHandler(&b, nil), New([]string{secret})))
	log.Warn("about "+secret, "text", secret, "err", errors.New("with "+secret), "count", 3, "bytes", []byte(secret))
	log.With("kept", secret).WithGroup("g").Warn("again", "text", "x"+secret)
	if got := b.String(); strings.Contains(got, secret) || strings.Count(got, Word) != 6 || !strings.Contains(got, "count=3") || !strings.Contains(got, "g.text") {
		t.Errorf("logged\n%s", got)
	}
}
