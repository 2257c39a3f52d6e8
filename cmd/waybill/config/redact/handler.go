package redact

import (
	"context"
	"log/slog"
)

// Handler keeps the secrets that r knows out of the log lines that h writes.
func Handler(h slog.Handler, r *Redactor) slog.Handler { return redacting{h, r.Redact} }

type redacting struct {
	slog.Handler
	redact func([]byte) []byte
}

// Handle implements slog.Handler.
func (h redacting) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, string(h.redact([]byte(r.Message))), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.clean(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	cleaned := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		cleaned[i] = h.clean(a)
	}
	return redacting{h.Handler.WithAttrs(cleaned), h.redact}
}

func (h redacting) clean(a slog.Attr) slog.Attr {
	value := a.Value.Resolve()
	text := []byte(value.String())
	if b, ok := value.Any().([]byte); ok {
		text = b // not as a list of numbers, in which nothing is found
	}
	return slog.String(string(h.redact([]byte(a.Key))), string(h.redact(text)))
}

// WithGroup implements slog.Handler.
func (h redacting) WithGroup(name string) slog.Handler {
	return redacting{h.Handler.WithGroup(name), h.redact}
}
