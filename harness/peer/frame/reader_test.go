package frame

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLinesAreTheSameHoweverTheyArrive(t *testing.T) {
	long := strings.Repeat("x", 3*readBuffer)
	text := "a\n\nb\r\n" + long + "\nhalf"
	want := []string{"a", "", "b\r", long}
	readers := map[string]io.Reader{
		"at once":      strings.NewReader(text),
		"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"in halves":    iotest.HalfReader(strings.NewReader(text)),
		"with the end": iotest.DataErrReader(strings.NewReader(text)),
	}
	for name, r := range readers {
		in := NewReader(r, len(long))
		var got []string
		line, unfinished, err := in.Next()
		for ; err == nil; line, unfinished, err = in.Next() {
			got = append(got, string(line))
		}
		if !slices.Equal(got, want) || unfinished != len("half") || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d lines, then %d bytes and %v", name, len(got), unfinished, err)
		}
	}
}

func TestALineOverTheLimitIsPassedOverAndTheNextIsRead(t *testing.T) {
	for _, limit := range []int{10, readBuffer - 1, readBuffer, 3 * readBuffer} {
		exact := strings.Repeat("x", limit)
		over := "\xef\xbb\xbf" + `{"id":7,"x":"` + exact + `"}`
		in := NewReader(strings.NewReader(exact+"\n"+exact+"x\n"+over+"\nnext\n"), limit)
		if line, _, err := in.Next(); err != nil || string(line) != exact {
			t.Errorf("a line of exactly %d bytes: %v", limit, err)
		}
		for _, want := range []struct {
			id   string
			size int
		}{{"", limit + 1}, {"7", len(over)}} {
			if _, _, err := in.Next(); !errors.Is(err, ErrTooLong) {
				t.Errorf("a line of %d bytes over a limit of %d: %v", want.size, limit, err)
			}
			if id, size, err := in.PassOver(); string(id) != want.id || size != want.size || err != nil {
				t.Errorf("passed over %d bytes under id %q, %v; want %d under %q", size, id, err, want.size, want.id)
			}
		}
		if line, _, err := in.Next(); err != nil || string(line) != "next" {
			t.Errorf("the next line is %q, %v", line, err)
		}
	}
}

// stream is a line that nobody holds: a head, a byte many times, a tail.
func stream(head string, n int64, tail string) io.Reader {
	return io.MultiReader(strings.NewReader(head), io.LimitReader(xs{}, n), strings.NewReader(tail))
}

type xs struct{}

func (xs) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestALineOverTheLimitIsNeverHeldWhole(t *testing.T) {
	const limit, size = 1 << 20, 30 << 20
	in := NewReader(stream(`{"jsonrpc":"2.0","result":{"x":"`, size, `"},"id":41}`+"\nnext\n"), limit)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := in.Next()
	id, n, skipErr := in.PassOver()
	line, _, nextErr := in.Next()
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooLong) || skipErr != nil || nextErr != nil || string(id) != "41" || string(line) != "next" || n < size {
		t.Errorf("%v, then %d bytes under id %q, %v, then %q, %v", err, n, id, skipErr, line, nextErr)
	}
	grown := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d KiB were allocated for a line of %d MiB", grown>>10, n>>20)
	if grown > 3*limit {
		t.Errorf("%d KiB were allocated", grown>>10)
	}
}

func TestALineWithoutAnEndIsGivenUp(t *testing.T) {
	const limit = 100 << 10
	in := NewReader(xs{}, limit)
	if _, n, err := in.Next(); !errors.Is(err, ErrTooLong) || n > limit+readBuffer {
		t.Errorf("%v after %d bytes", err, n)
	}
	if cap(in.long) > 2*(limit+readBuffer) {
		t.Errorf("it took %d bytes", cap(in.long))
	}
	id, size, err := in.PassOver()
	if !errors.Is(err, ErrEndless) || id != nil || size <= patience*limit || size > (patience+1)*limit+readBuffer {
		t.Errorf("%v after %d bytes, id %q", err, size, id)
	}
	in = NewReader(stream("", 2*limit, ""), limit)
	if _, _, err := in.Next(); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	if id, size, err := in.PassOver(); !errors.Is(err, io.EOF) || id != nil || size != 2*limit {
		t.Errorf("%v after %d bytes, id %q", err, size, id)
	}
}

func TestALongLinesBufferIsGivenBack(t *testing.T) {
	in := NewReader(strings.NewReader(strings.Repeat("x", 2*keepBuffer)+"\nshort\n"), 4*keepBuffer)
	for _, want := range []int{2 * keepBuffer, len("short")} {
		if line, _, err := in.Next(); err != nil || len(line) != want {
			t.Fatalf("%d bytes, %v", len(line), err)
		}
	}
	if in.long != nil {
		t.Errorf("%d bytes are kept", cap(in.long))
	}
}

// What is kept stays as it was whatever is read afterwards, and most of a long line is not copied for it.
func TestWhatIsKeptIsNotOverwrittenAndALongLineIsNotCopied(t *testing.T) {
	const size = 30 << 20
	in := NewReader(io.MultiReader(stream("long", size, "\n"), strings.NewReader("first\n"), stream("", size, "\nlast\n")), 64<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	line, _, err := in.Next()
	if err != nil {
		t.Fatal(err)
	}
	long := in.Keep(line[4:])
	runtime.ReadMemStats(&after)
	grown := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d MiB were allocated for a line of %d MiB that is kept", grown>>20, size>>20)
	if grown > 5*size/2 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
	line, _, err = in.Next()
	short := in.Keep(line)
	if err != nil || cap(long) != len(long) {
		t.Errorf("%v; what was given away has room for %d more", err, cap(long)-len(long))
	}
	line, _, err = in.Next()
	part := in.Keep(line[:3])
	if _, _, end := in.Next(); err != nil || end != nil {
		t.Error(err, end)
	}
	if len(long) != size || bytes.IndexFunc(long, func(r rune) bool { return r != 'x' }) >= 0 || string(short) != "first" || string(part) != "xxx" {
		t.Errorf("kept %d bytes, %q and %q", len(long), short, part)
	}
}

func TestTheIDOfALineThatPassesByIsThatOfTheAnswer(t *testing.T) {
	fill := strings.Repeat("y", 200)
	tests := []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":5,"result":"` + fill + `"}`, "5"},
		{`{"jsonrpc":"2.0","result":{"id":9,"a":[{"id":8}],"s":"\",\"id\":7,` + fill + `"},"id":5}`, "5"},
		{" \t{ \"result\" : [\"" + fill + "\"] , \"\\u0069\\u0064\" : 9007199254740993 } \r", "9007199254740993"},
		{`{"id":"5","result":"` + fill + `"}`, `"5"`},
		{`{"id":5 5,"result":"` + fill + `"}`, "5 5"},
		{`{"result":"` + fill + `\\","id":5}`, "5"},
		{`{"` + fill + `":1,"id":5}`, "5"},
		{`{"id":` + strings.Repeat("5", maxToken+1) + `,"result":"` + fill + `"}`, ""},
		{`{"id":5,"result":"` + fill + `","id":6}`, ""},
		{`{"id":` + strings.Repeat("5", maxToken+1) + `,"result":"` + fill + `","id":6}`, ""},
		{`{"id":5,"method":"` + fill + `"}`, ""},
		{`{"params":"` + fill + `","id":5,"m\u0065thod":"x"}`, ""},
		{`{"result":"` + fill + `"}`, ""},
		{`[{"id":5,"result":"` + fill + `"}]`, ""},
		{`{"id":5,"result":"` + fill + `"}{}`, ""},
		{`{"id":5,"result":"` + fill + `"]`, ""},
		{`{"id":5,"result":"` + fill, ""},
		{`{"result":"` + fill + `","x":{"id":5}`, ""},
		{`x{"id":5,"result":"` + fill + `"}`, ""},
		{fill, ""},
	}
	for _, test := range tests {
		for _, cut := range []int{101, 1} {
			var s scan
			for part := range slices.Chunk([]byte(test.line), cut) {
				s.feed(part)
			}
			if got := string(s.answerID()); got != test.want {
				t.Errorf("%.60s in parts of %d: id %q, want %q", test.line, cut, got, test.want)
			}
			if cap(s.token) > 2*maxToken || len(s.id) > maxToken {
				t.Errorf("%.60s: %d and %d bytes are held", test.line, cap(s.token), len(s.id))
			}
		}
	}
}
