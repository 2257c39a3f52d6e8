package redact

import (
	"errors"
	"fmt"
	"slices"
)

// MaxLearned is how many of the values that Add was given are kept, the last ones.
// A token is of no use to anybody long before so many others have followed it.
const MaxLearned = 1024

// learned is one value that was added, with what is looked for.
type learned struct {
	value    string
	patterns []pattern
}

// Add makes r find one more value, in every form, from its return on. What New was
// given is kept for ever; of what was added the last MaxLearned are. One that is
// Unfit is an error, which does not hold it, and r is as before. It may be called
// by several goroutines at once, also while others call Redact. A nil Redactor can
// learn nothing, which is an error too.
func (r *Redactor) Add(secret string) error {
	switch {
	case r == nil:
		return errors.New("a secret cannot be redacted: there is nothing that would")
	case Unfit(secret):
		return fmt.Errorf("a secret cannot be redacted: it has fewer than %d bytes or is a part of %s", MinSecret, Word)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.given[secret] {
		return nil
	}
	is := func(l learned) bool { return l.value == secret }
	if i := slices.IndexFunc(r.kept, is); i >= 0 {
		again := r.kept[i]
		r.kept = append(slices.Delete(r.kept, i, i+1), again) // the newest again, and found already
		return nil
	}
	if len(r.kept) == MaxLearned {
		r.kept = slices.Delete(r.kept, 0, 1)
	}
	r.kept = append(r.kept, learned{secret, patterns([]string{secret})})
	r.publish()
	return nil
}

// publish makes what is kept known to those who redact.
func (r *Redactor) publish() {
	var list []pattern
	for _, l := range r.kept {
		list = append(list, l.patterns...)
	}
	next := &forms{learned: newMatcher(list)}
	if now := r.forms.Load(); now != nil {
		next.given = now.given
	}
	r.forms.Store(next)
}
