package payloads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsSavedIsReadBackAlsoAfterOpeningAgain(t *testing.T) {
	path := newFile(t)
	p := openFile(t, path)
	save(t, p, call(3, "local", "a", `{"n":1}`), answer(5, 3, Result, `{"done":true}`), call(7, "local", "empty", ""))
	for range 2 {
		wantKept(t, p, 3, Arguments, `{"n":1}`)
		wantKept(t, p, 5, Result, `{"done":true}`)
		wantKept(t, p, 7, Arguments, "")
		key, ok, err := p.Key(ctx, 3)
		if key != keyOf(3) || !ok || err != nil {
			t.Errorf("the key is %x, %t, %v", key, ok, err)
		}
		x, _, err := p.Read(ctx, 5, Result)
		if x.Story != 3 || x.Peer != "notes" || x.Request != 7 || x.Created != 5_000_000 || x.Size != 13 || x.Redacted || err != nil {
			t.Errorf("%+v, %v", x, err)
		}
		if _, ok, err := p.Read(ctx, 5, Error); ok || err != nil {
			t.Errorf("in another role: %t, %v", ok, err)
		}
		noErr(t, p.Close())
		p = openFile(t, path)
	}
}

func TestAFileOfAnotherLogOrProgramIsRefusedAndLeftAsItIs(t *testing.T) {
	path := newFile(t)
	save(t, openFile(t, path), call(1, "local", "a", "x"))
	if _, err := Open(path, "other-00000000"); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), testLog) {
		t.Errorf("of another log: %v", err)
	}
	if _, err := OpenReader(path, "other-00000000"); !errors.Is(err, ErrForeign) {
		t.Errorf("to read, of another log: %v", err)
	}
	text := filepath.Join(t.TempDir(), "x.db")
	noErr(t, os.WriteFile(text, []byte(strings.Repeat("no database\n", 900)), 0o600))
	if _, err := Open(text, testLog); err == nil {
		t.Error("a text file was opened")
	}
	if b, err := os.ReadFile(text); err != nil || len(b) != 12*900 {
		t.Errorf("the text file has %d bytes, %v", len(b), err)
	}
}

// Opening again goes on from every step at which the making of the file can end.
func TestAFileThatWasNotFinishedIsGoneOnWith(t *testing.T) {
	empty := newFile(t)
	noErr(t, os.WriteFile(empty, nil, 0o600))
	save(t, openFile(t, empty), call(1, "local", "a", "x"))
	formatted := newFile(t)
	noErr(t, ensure(ctx, formatted))
	save(t, openFile(t, formatted), call(1, "local", "a", "x"))
	var size int
	noErr(t, openFile(t, formatted).conn.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size))
	if size != pageSize {
		t.Errorf("the page size is %d", size)
	}
	if info, err := os.Stat(formatted); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAReaderReadsBesideTheWriterAndMakesNoFile(t *testing.T) {
	path := newFile(t)
	if _, err := OpenReader(path, testLog); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a missing file: %v", err)
	}
	if there, err := Exists(path); there || err != nil {
		t.Errorf("the file is there: %t, %v", there, err)
	}
	save(t, openFile(t, path), call(1, "local", "a", "x"))
	r, err := OpenReader(path, testLog)
	noErr(t, err)
	wantKept(t, r, 1, Arguments, "x")
	if err := r.Save(ctx, call(2, "local", "b", "y")); err == nil {
		t.Error("a reader has saved")
	}
	noErr(t, r.Close())
	if _, _, err := r.Key(ctx, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// The two ways in which saving can fail: nothing was written, and everything was.
// The same batch is tried again after both, and other bytes take the place of
// those that a failure left behind.
func TestABatchThatFailedIsSavedByTryingAgain(t *testing.T) {
	for _, point := range []string{faultSave, faultSaved} {
		p := openFile(t, newFile(t))
		fault := errors.New("fault")
		p.fault = func(at string) error {
			if at == point {
				return fault
			}
			return nil
		}
		b := call(3, "local", "a", "x")
		if err := p.Save(ctx, b); !errors.Is(err, fault) {
			t.Fatalf("%s: %v", point, err)
		}
		if _, ok, err := p.Read(ctx, 3, Arguments); ok != (point == faultSaved) || err != nil {
			t.Errorf("%s: kept %t, %v", point, ok, err)
		}
		p.fault = nil
		save(t, p, b)
		wantKept(t, p, 3, Arguments, "x")
		save(t, p, call(3, "local", "a", "y"))
		wantKept(t, p, 3, Arguments, "y")
	}
}

func TestABatchIsSavedWholeOrNotAtAll(t *testing.T) {
	p := openFile(t, newFile(t))
	b := call(3, "local", "a", "x")
	b.Payloads = append(b.Payloads, Payload{Seq: 4, Role: "nonsense", Story: 3})
	if err := p.Save(ctx, b); err == nil {
		t.Fatal("it was saved")
	}
	wantGone(t, p, 3, 0)
	save(t, p, call(3, "local", "a", "x"))
}

// A full disk is a real failure: SQLite refuses to let the file grow.
func TestAFullDiskLosesTheBatchAndNothingElse(t *testing.T) {
	p := openFile(t, newFile(t))
	save(t, p, call(1, "local", "a", "x"))
	var pages int
	noErr(t, p.conn.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages))
	limit := func(n int) {
		_, err := p.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", n))
		noErr(t, err)
	}
	limit(pages)
	b := call(2, "local", "b", strings.Repeat("y", 100_000))
	if err := p.Save(ctx, b); err == nil || !strings.Contains(err.Error(), "full") {
		t.Fatalf("got %v", err)
	}
	limit(1 << 20)
	wantKept(t, p, 1, Arguments, "x")
	save(t, p, b)
	wantKept(t, p, 2, Arguments, string(b.Payloads[0].Bytes))
}

func TestSweepErasesWhatNoEventCites(t *testing.T) {
	p := openFile(t, newFile(t))
	save(t, p, call(1, "local", "a", "x"), answer(4, 1, Result, "r"))
	last := call(7, "local", "b", "y")
	last.Payloads = append(last.Payloads, answer(9, 1, Result, "s").Payloads...)
	save(t, p, last)
	for _, c := range []struct {
		head int64
		want int
	}{{9, 0}, {100, 0}, {8, 1}, {6, 1}, {6, 0}} {
		n, err := p.Sweep(ctx, c.head, logOf(c.head))
		if n != c.want || err != nil {
			t.Errorf("with %d events: swept %d, %v; want %d", c.head, n, err, c.want)
		}
	}
	wantGone(t, p, 7, 0)
	wantKept(t, p, 4, Result, "r")
	wantKept(t, p, 1, Arguments, "x")
}

// The log may have grown by other events than those that were to cite the bytes.
func TestSweepErasesWhatAnotherEventStandsInThePlaceOf(t *testing.T) {
	p := openFile(t, newFile(t))
	save(t, p, call(1, "local", "a", "x"))
	b := call(7, "local", "b", "y")
	b.Events = func(int64) []byte { return []byte("an event that was never appended") }
	save(t, p, b)
	if n, err := p.Sweep(ctx, 50, logOf(50)); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	wantGone(t, p, 7, 0)
	wantKept(t, p, 1, Arguments, "x")
}

func TestSweepThatCannotReadTheLogErasesNothing(t *testing.T) {
	p := openFile(t, newFile(t))
	save(t, p, call(1, "local", "a", "x"))
	fault := errors.New("fault")
	_, err := p.Sweep(ctx, 0, func(context.Context, int64) ([]byte, error) { return nil, fault })
	if !errors.Is(err, fault) {
		t.Errorf("got %v", err)
	}
	wantKept(t, p, 1, Arguments, "x")
}

func TestEachSelectionErasesItsCallsAndNoOthers(t *testing.T) {
	for name, c := range map[string]struct {
		s    Selection
		want []int64
	}{
		"call":                            {Selection{Seq: 90, Call: "local/a"}, []int64{1, 5}},
		"host":                            {Selection{Seq: 90, Host: "other"}, []int64{3}},
		"age":                             {Selection{Seq: 90, Before: 4}, []int64{1, 2, 3}},
		"call, of those before the event": {Selection{Seq: 5, Call: "local/a"}, []int64{1}},
		"host, of those before the event": {Selection{Seq: 2, Host: "local"}, []int64{1}},
		"nobody":                          {Selection{Seq: 90, Host: "nobody"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := openFile(t, newFile(t))
			ids := map[int64][2]string{1: {"local", "a"}, 2: {"local", "b"}, 3: {"other", "a"}, 4: {"local", "c"}, 5: {"local", "a"}}
			for seq := int64(1); seq <= 5; seq++ {
				save(t, p, call(seq, ids[seq][0], ids[seq][1], fmt.Sprint("of ", seq)), answer(seq+10, seq, Result, "r"))
			}
			count := c.s
			if n, err := p.Count(ctx, count); err != nil || c.s.Seq == 90 && n != int64(len(c.want)) {
				t.Errorf("it counts %d, %v", n, err)
			}
			for range 2 { // the second time nothing is left to do
				noErr(t, p.Erase(ctx, c.s))
				gone := map[int64]bool{}
				for _, seq := range c.want {
					gone[seq] = true
					wantGone(t, p, seq, c.s.Seq)
				}
				for seq := int64(1); seq <= 5; seq++ {
					if !gone[seq] {
						wantKept(t, p, seq, Arguments, fmt.Sprint("of ", seq))
						wantKept(t, p, seq+10, Result, "r")
					}
				}
			}
			if seq, err := p.Erased(ctx); seq != c.s.Seq || err != nil {
				t.Errorf("followed up to %d, %v", seq, err)
			}
		})
	}
}

// An erasure that failed half way is known to be owed: also one after it that
// succeeds does not hide it.
func TestAnErasureThatFailedStaysOwed(t *testing.T) {
	path := newFile(t)
	p := openFile(t, path)
	for seq := int64(1); seq <= 3*atOnce; seq++ {
		save(t, p, call(seq, "local", fmt.Sprint("c", seq), "x"))
	}
	fault, times := errors.New("fault"), 0
	p.fault = func(at string) error {
		if times++; at == faultErase && times == 2 {
			return fault
		}
		return nil
	}
	if err := p.Erase(ctx, Selection{Seq: 900, Host: "local"}); !errors.Is(err, fault) {
		t.Fatalf("got %v", err)
	}
	noErr(t, p.Erase(ctx, Selection{Seq: 901, Host: "other"}))
	noErr(t, p.CaughtUp(ctx, 950))
	noErr(t, p.Close())
	p = openFile(t, path)
	if seq, err := p.Erased(ctx); seq != 0 || err != nil {
		t.Errorf("followed up to %d, %v", seq, err)
	}
	if n, err := p.Count(ctx, Selection{Host: "local"}); n != 2*atOnce || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
	noErr(t, p.Erase(ctx, Selection{Seq: 900, Host: "local"}))
	noErr(t, p.CaughtUp(ctx, 950))
	if seq, err := p.Erased(ctx); seq != 950 || err != nil {
		t.Errorf("followed up to %d, %v", seq, err)
	}
}

// What is erased is in no file any more, while the file is open, whatever was
// stored around it: sizes from a few bytes to many pages, kept and erased in any
// order. The bytes are nowhere in plain, and the key under which they are sealed is
// where it was or nowhere.
func TestErasedBytesAreInNoFile(t *testing.T) {
	path := newFile(t)
	p := openFile(t, path)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	live := map[int64]bool{}
	text := func(what string) string {
		return strings.Repeat("canary-"+what+" ", 1+r.IntN(1+[]int{2, 60, 400, 3000}[r.IntN(4)]))
	}
	seq := int64(0)
	for range 5 {
		for range 60 {
			seq += 2
			save(t, p, call(seq, "local", fmt.Sprint("c", seq), text("arguments")), answer(seq+1, seq, Result, text("result")))
			live[seq] = true
		}
		for s := int64(2); s <= seq; s += 2 {
			if live[s] && r.IntN(3) == 0 {
				noErr(t, p.Erase(ctx, Selection{Seq: seq + 2, Call: fmt.Sprint("local/c", s)}))
				delete(live, s)
			}
		}
	}
	all := content(t, filepath.Dir(path))
	for s := int64(2); s <= seq; s += 2 {
		if key := keyOf(s); bytes.Contains(all, key[:]) != live[s] {
			t.Errorf("call %d, kept %t: its key is in a file, or is not", s, live[s])
		}
	}
	noErr(t, p.Erase(ctx, Selection{Seq: seq + 9, Before: 1 << 40}))
	if all := content(t, filepath.Dir(path)); bytes.Contains(all, []byte("canary-")) || bytes.Contains(all, []byte("key of ")) {
		t.Error("there are bytes or keys left")
	}
	if n, err := p.Count(ctx, Selection{Host: "local"}); n != 0 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
}

// A process that is killed between erasing and emptying the write-ahead log leaves
// the bytes there; opening again takes them away.
func TestOpeningEmptiesTheWriteAheadLog(t *testing.T) {
	path := newFile(t)
	p := openFile(t, path)
	save(t, p, call(1, "local", "a", strings.Repeat("x", 5000)))
	if n, err := p.erase(ctx, Selection{Seq: 2, Host: "local"}); n != 1 || err != nil {
		t.Fatalf("erased %d, %v", n, err)
	}
	crashed := filepath.Join(t.TempDir(), "payloads.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		noErr(t, err)
		noErr(t, os.WriteFile(crashed+suffix, b, 0o600))
	}
	if !bytes.Contains(content(t, filepath.Dir(crashed)), []byte("key of ")) {
		t.Fatal("the crash left nothing to take away")
	}
	wantGone(t, openFile(t, crashed), 1, 2)
	if bytes.Contains(content(t, filepath.Dir(crashed)), []byte("key of ")) {
		t.Error("the key is left")
	}
}

func TestBytesThatWereAlteredOrMovedAreNotRead(t *testing.T) {
	p := openFile(t, newFile(t))
	save(t, p, call(1, "local", "a", "x"), call(2, "local", "b", "y"))
	for _, query := range []string{
		`UPDATE payloads SET bytes = CAST(bytes || x'00' AS BLOB) WHERE seq = 1`,
		`UPDATE payloads SET bytes = (SELECT bytes FROM payloads WHERE seq = 2), story = 2 WHERE seq = 1`,
	} {
		_, err := p.conn.ExecContext(ctx, query)
		noErr(t, err)
		if x, _, err := p.Read(ctx, 1, Arguments); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: read %q, %v", query, x.Bytes, err)
		}
	}
	wantKept(t, p, 2, Arguments, "y")
}

// A name differs from call to call, and says nothing of the key that bytes are
// sealed under.
func TestNamesAreKeyed(t *testing.T) {
	a, b := keyOf(1), keyOf(2)
	if a.Name([]byte("x")) == b.Name([]byte("x")) || a.Name([]byte("x")) == a.Name([]byte("y")) || len(a.Name(nil)) != 64 {
		t.Error("names are not keyed")
	}
	if bytes.Equal(a.sub("name"), a.sub("seal")) || bytes.Equal(a.sub("seal"), a[:]) {
		t.Error("one key serves two purposes")
	}
}
