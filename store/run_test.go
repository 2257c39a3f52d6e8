package store_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"waybill/store"
)

// Evidence comes in the order in which it was kept, whatever its size, in runs that are
// bounded by number and by bytes.
func TestEvidenceComesInRunsInTheOrderItWasKept(t *testing.T) {
	path := newLog(t)
	l := openLog(t, path)
	defer closed(t, l)
	var want [][32]byte
	for i, size := range []int{10, 3 << 20, 2 << 20, 5, 7, 6 << 20, 1, 2} {
		e := evidenceOf(strings.Repeat(string(rune('a'+i)), size))
		entry := entries(l.Head().Size, 1)
		entry[0].Evidence = []store.Evidence{e}
		if _, err := l.Append(t.Context(), l.Head().Size, entry); err != nil {
			t.Fatal(err)
		}
		want = append(want, e.Digest)
	}
	r := openReader(t, path)
	defer closed(t, r)
	var got, sizes = [][32]byte(nil), []int(nil)
	for after := int64(0); ; {
		run, err := r.EvidenceRun(t.Context(), after, 4)
		if err != nil {
			t.Fatal(err)
		}
		if len(run) == 0 {
			break
		}
		for _, p := range run {
			if sha256.Sum256(p.Bytes) != p.Digest {
				t.Errorf("row %d: other bytes than its digest's", p.Row)
			}
			got, after = append(got, p.Digest), p.Row
		}
		sizes = append(sizes, len(run))
	}
	if len(got) != len(want) {
		t.Fatalf("%d pieces of %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("piece %d is another", i)
		}
	}
	if len(sizes) != 3 || sizes[0] != 3 || sizes[1] != 3 || sizes[2] != 2 { // 5 MiB end the first, 6 the second
		t.Errorf("runs of %v", sizes)
	}
}
