package domain

import (
	"fmt"
	"testing"
)

// TestAPeerThatChangesEverythingIsReadLessAndLess (protocol: Lists, storms are
// folded): each change is on record, so a peer that changes a whole list at every
// reading must not fill the log with them.
func TestAPeerThatChangesEverythingIsReadLessAndLess(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "a")))
	k.rises("a", discoverNotices)
	list := func(n, tools int) string {
		more := ""
		for i := range tools {
			more += fmt.Sprintf(`,{"name":"t%d","description":"%d","inputSchema":{"type":"object"}}`, i, n)
		}
		return `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[` + more[1:] + `]}}`
	}
	k.answered("a", "", list(0, 300))
	var waits []int64
	for n := 1; n <= 6; n++ {
		tools := 300
		if n == 5 {
			tools = 3 // few change: it is calm again
		}
		k.pass(400_000)
		k.reads("")
		k.answered("a", "", list(n, tools))
		l := k.s.Peer("a").line("")
		waits = append(waits, (l.notBefore(WhyRead)-l.begun)/1_000_000)
	}
	base := k.s.Peer("a").Config.Lists.Interval
	if want := fmt.Sprint([]int64{2 * base, 4 * base, 8 * base, 16 * base, base, 2 * base}); fmt.Sprint(waits) != want {
		t.Errorf("read again after %v ms, want %s", waits, want)
	}
}
