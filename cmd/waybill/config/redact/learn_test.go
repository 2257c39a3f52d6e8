package redact

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestWhatIsAddedIsRedactedInEveryForm(t *testing.T) {
	for name, r := range map[string]*Redactor{"zero": {}, "no secrets": New(nil), "others": New([]string{"hunter2hunter2", "hunter2hunter2-and-more"})} {
		if err := r.Add("learned-later"); err != nil {
			t.Fatal(err)
		}
		in := `{"a":"learned-later","b":"` + hex.EncodeToString([]byte("learned-later")) + `","c":"hunter2hunter2"}`
		want := `{"a":"[redacted]","b":"[redacted]","c":"hunter2hunter2"}`
		if name == "others" {
			want = strings.Replace(want, "hunter2hunter2", Word, 1)
		}
		if got := string(r.Redact([]byte(in))); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestAnUnfitValueIsNotLearned(t *testing.T) {
	r := New([]string{"hunter2hunter2"})
	for _, value := range []string{"", "geheim!", "redacted", `[redacted]"`} {
		err := r.Add(value)
		if err == nil || value != "" && !strings.Contains(Word, value) && strings.Contains(strings.TrimSuffix(err.Error(), Word), value) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if in := []byte("geheim! redacted"); !bytes.Equal(r.Redact(in), in) || len(r.kept) != 0 {
		t.Errorf("learned %v", r.kept)
	}
	if err := (*Redactor)(nil).Add("long enough"); err == nil {
		t.Error("nil has learned something")
	}
}

// The last ones are kept, and one that comes again counts as new. What New was
// given is never let go.
func TestTheLastOnesAreKept(t *testing.T) {
	token := func(i int) string { return fmt.Sprintf("token-%06d-end", i) }
	r := New([]string{"given-for-ever"})
	add := func(value string) {
		t.Helper()
		if err := r.Add(value); err != nil {
			t.Fatal(err)
		}
	}
	for i := range MaxLearned {
		add(token(i))
	}
	add(token(0))         // newest again
	add("given-for-ever") // known
	add(token(MaxLearned))
	for i, gone := range map[int]bool{0: false, 1: true, 2: false, MaxLearned: false} {
		if got := string(r.Redact([]byte("x " + token(i)))); (got == "x "+token(i)) != gone {
			t.Errorf("token %d: %s", i, got)
		}
	}
	if got := string(r.Redact([]byte("given-for-ever"))); got != Word || len(r.kept) != MaxLearned {
		t.Errorf("%s, %d kept", got, len(r.kept))
	}
}

// What one goroutine has added is redacted in all of them, whatever the others add
// meanwhile.
func TestAddAndRedactAtOnce(t *testing.T) {
	r := New([]string{"given-for-ever"})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				token := fmt.Sprintf("token-%d-%06d", g, i)
				if err := r.Add(token); err != nil {
					t.Error(err)
					return
				}
				if got := string(r.Redact([]byte(token + " given-for-ever"))); got != "[redacted] [redacted]" {
					t.Errorf("%s: %s", token, got)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkAdd is what a token costs when as many as are kept came before it.
func BenchmarkAdd(b *testing.B) {
	r := New(nil)
	token := func(i int) string { return fmt.Sprintf("eyJhbGciOiJSUzI1NiJ9.%0800d", i) }
	for i := range MaxLearned {
		if err := r.Add(token(i)); err != nil {
			b.Fatal(err)
		}
	}
	for i := MaxLearned; b.Loop(); i++ {
		if err := r.Add(token(i)); err != nil {
			b.Fatal(err)
		}
	}
}
