package names

import (
	"slices"
	"strings"
	"testing"
)

func FuzzMerge(f *testing.F) {
	f.Add("a:x b/x;b:x", "/", uint8(0))
	f.Add("a:b__c;a__b:c", "__", uint8(2))
	f.Add("a:x;b:x;c:x", "", uint8(1))
	f.Add("a:d c/d; b:c/d; c:d; a:", "/", uint8(0))
	f.Fuzz(func(t *testing.T, text, separator string, policy uint8) {
		in := lists(text)
		p := policies[int(policy)%len(policies)]
		checkMerge(t, p, separator, in)
		before := Merge(p, separator, in)
		slices.Reverse(in)
		if after := Merge(p, separator, in); after.words() != before.words() || after.Digest != before.Digest {
			t.Errorf("%s in reverse is %s", before.words(), after.words())
		}
	})
}

// FuzzTable reads the lists as a history: a later list of a peer replaces the
// earlier one.
func FuzzTable(f *testing.F) {
	f.Add("a:x b/x;b:x;a:x", "/", uint8(0))
	f.Add("a:b__c;a__b:c;a:", "__", uint8(2))
	f.Add("b:x;a:x;c:x;a:y", "", uint8(1))
	f.Fuzz(func(t *testing.T, text, separator string, policy uint8) {
		h := newHistory(t, policies[int(policy)%len(policies)], separator)
		h.table.digits = 1
		for i, l := range lists(text) {
			if h.set(l.Peer, l.Tools); i%3 == 2 {
				h.settle()
			}
		}
		h.check()
		h.checkModels()
		h.checkAlike()
		h.checkEmpty()
	})
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"", "a/b", "x_0123456789abcdef", "ѕеаrсh", "\xff\u202e\U000E0061", strings.Repeat("w", 70), "ー_"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		checkSkeleton(t, name)
		form := ModelName(name)
		if !fit(form) || form != plainModel(name, modelDigits) {
			t.Errorf("%q has the form %q, want %q", name, form, plainModel(name, modelDigits))
		}
		table := tableOf(PrefixOnCollision, "/", []PeerTools{{Peer: "p", Tools: []string{name}}})
		if got, ok := table.FromModel(form); !ok || got != name {
			t.Errorf("%q leads to %q (%t), want %q", form, got, ok, name)
		}
	})
}
