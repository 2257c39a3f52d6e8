package config

import (
	"strings"
	"testing"
	"time"
)

// The default of the window is not written into the evidence of a configuration.
func TestTheIdempotencyWindowReachesTheDecisions(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "idempotency_window: 24h\n": 0, "idempotency_window: 1d\n": 0,
		"idempotency_window: 1s\n": time.Second, "idempotency_window: 30d\n": 30 * 24 * time.Hour} {
		c := mustLoad(t, text+peers).Domain(nil, environment(nil))
		if c.Idempotency != want.Milliseconds() {
			t.Errorf("%q: %d ms, want %s", text, c.Idempotency, want)
		}
	}
	for _, text := range []string{"0", "999ms", "31d", "soon"} {
		_, err := loadText(t, "idempotency_window: "+text+"\n"+peers, nil)
		if err == nil || !strings.Contains(err.Error(), "idempotency_window") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
