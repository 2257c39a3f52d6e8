package domain

import (
	"strings"
	"testing"
)

// TestALookAlikeOfAToolIsNamedAsOne (protocol: Namespace): it is left out for its
// name, and the reason says whom it could be taken for.
func TestALookAlikeOfAToolIsNamedAsOne(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "a")))
	k.rises("a", discoverQuiet)
	out := k.answered("a", "", listPage(cached(1_000, ScopePrivate), "search", "se\u0430rch", "\uff53earch", "search\u200b", "other\u0430", "two words"))
	alike := 0
	for _, d := range all[ToolRejected](out) {
		if strings.HasSuffix(d.Reason, "; it looks like the tool search") {
			alike++
		}
	}
	if n := len(all[ToolRejected](out)); n != 5 || alike != 3 {
		t.Errorf("%d tools are left out, %d of them as look-alikes: %+v", n, alike, all[ToolRejected](out))
	}
}
