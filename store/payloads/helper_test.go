package payloads

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

const testLog = "local-0a1b2c3d"

var ctx = context.Background()

func newFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "payloads.db")
}

func openFile(t *testing.T, path string) *DB {
	t.Helper()
	p, err := Open(path, testLog)
	noErr(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// event is the exact bytes of an event of the log of these tests.
func event(seq int64) []byte { return fmt.Appendf(nil, `{"id":"%d"}`, seq) }

// logOf is a log that ends with an event.
func logOf(head int64) func(context.Context, int64) ([]byte, error) {
	return func(_ context.Context, seq int64) ([]byte, error) {
		if seq > head {
			return nil, nil
		}
		return event(seq), nil
	}
}

func keyOf(seq int64) (key Key) {
	copy(key[:], fmt.Sprintf("key of %d, long enough to be one", seq))
	return key
}

// call is a batch of one call, whose event is seq, with these arguments.
func call(seq int64, host, id, arguments string) Batch {
	return Batch{First: seq, Events: event,
		Stories:  []Story{{Seq: seq, Call: host + "/" + id, Host: host, Created: seq * 1_000_000, Key: keyOf(seq)}},
		Payloads: []Payload{{Seq: seq, Role: Arguments, Story: seq, Key: keyOf(seq), Created: seq * 1_000_000, Size: int64(len(arguments)), Bytes: []byte(arguments)}}}
}

// answer is a batch of the answer to a call.
func answer(seq, story int64, role, result string) Batch {
	return Batch{First: seq, Events: event, Payloads: []Payload{{Seq: seq, Role: role, Story: story, Key: keyOf(story), Peer: "notes", Request: 7,
		Created: seq * 1_000_000, Size: int64(len(result)), Bytes: []byte(result)}}}
}

func save(t *testing.T, p *DB, batches ...Batch) {
	t.Helper()
	for _, b := range batches {
		noErr(t, p.Save(ctx, b))
	}
}

// wantKept checks what is kept of an event.
func wantKept(t *testing.T, p *DB, seq int64, role, want string) {
	t.Helper()
	x, ok, err := p.Read(ctx, seq, role)
	if err != nil || !ok || string(x.Bytes) != want {
		t.Errorf("of event %d is kept %.40q, %t, %v; want %.40q", seq, x.Bytes, ok, err, want)
	}
}

// wantGone checks that nothing is kept of an event, and of the call that began
// with it nothing but which event erased it, 0 for not even that.
func wantGone(t *testing.T, p *DB, story, by int64) {
	t.Helper()
	for _, role := range []string{Arguments, Result} {
		if x, ok, err := p.Read(ctx, story, role); ok || err != nil {
			t.Errorf("of event %d is kept %.40q, %v", story, x.Bytes, err)
		}
	}
	if _, ok, err := p.Key(ctx, story); ok || err != nil {
		t.Errorf("the key of call %d is there, %v", story, err)
	}
	if got, err := p.ErasedBy(ctx, story); got != by || err != nil {
		t.Errorf("call %d was erased by %d, %v; want %d", story, got, err, by)
	}
}

// content is all that the files of a folder hold.
func content(t *testing.T, dir string) (all []byte) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	noErr(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		noErr(t, err)
		all = append(append(all, b...), '\n')
	}
	return all
}
