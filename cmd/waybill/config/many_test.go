package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestManyPeersWithoutAReasonAreWarnedOf(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		b.WriteString("peers:\n")
		for i := range n {
			fmt.Fprintf(&b, "  p%d: {command: x}\n", i)
		}
		return b.String()
	}
	if f := mustLoad(t, many(10)); len(f.Warnings) != 0 {
		t.Errorf("ten peers: %v", f.Warnings)
	}
	if f := mustLoad(t, many(11)); len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "gateway") {
		t.Errorf("eleven peers: %v", f.Warnings)
	}
	if f := mustLoad(t, "many_peers_reason: one room\n"+many(11)); len(f.Warnings) != 0 {
		t.Errorf("eleven peers with a reason: %v", f.Warnings)
	}
}
