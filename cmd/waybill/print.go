package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-json-experiment/json"
)

func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", b)
	return err
}

// count is a number of things in words.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// redacting keeps known secrets out of log lines.
type redacting struct {
	slog.Handler
	redact func([]byte) []byte
}

// Handle implements slog.Handler.
func (h redacting) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, string(h.redact([]byte(r.Message))), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(slog.String(a.Key, string(h.redact([]byte(a.Value.String())))))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return redacting{h.Handler.WithAttrs(attrs), h.redact}
}

// WithGroup implements slog.Handler.
func (h redacting) WithGroup(name string) slog.Handler {
	return redacting{h.Handler.WithGroup(name), h.redact}
}
