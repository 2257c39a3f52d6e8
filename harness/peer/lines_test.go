package peer

import (
	"errors"
	"io"
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
		in := newLines(r, len(long))
		var got []string
		line, unfinished, err := in.next()
		for ; err == nil; line, unfinished, err = in.next() {
			got = append(got, string(line))
		}
		if !slices.Equal(got, want) || unfinished != len("half") || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d lines, then %d bytes and %v", name, len(got), unfinished, err)
		}
	}
}

func TestALineOverTheLimitIsAnErrorAndNeverHeldWhole(t *testing.T) {
	for _, limit := range []int{10, readBuffer - 1, readBuffer, 3 * readBuffer} {
		exact := strings.Repeat("x", limit)
		if line, _, err := newLines(strings.NewReader(exact+"\n"), limit).next(); err != nil || string(line) != exact {
			t.Errorf("a line of exactly %d bytes: %v", limit, err)
		}
		if _, _, err := newLines(strings.NewReader(exact+"x\n"), limit).next(); !errors.Is(err, errLineTooLong) {
			t.Errorf("a line of %d bytes over a limit of %d: %v", limit+1, limit, err)
		}
	}
	const limit = 100 << 10
	endless := newLines(zeros{}, limit)
	if _, n, err := endless.next(); !errors.Is(err, errLineTooLong) || n > limit+readBuffer {
		t.Errorf("an endless line: %v after %d bytes", err, n)
	}
	if cap(endless.long) > 4*(limit+readBuffer) {
		t.Errorf("an endless line took %d bytes", cap(endless.long))
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestALongLinesBufferIsGivenBack(t *testing.T) {
	in := newLines(strings.NewReader(strings.Repeat("x", 2*keepBuffer)+"\nshort\n"), 4*keepBuffer)
	for _, want := range []int{2 * keepBuffer, len("short")} {
		if line, _, err := in.next(); err != nil || len(line) != want {
			t.Fatalf("%d bytes, %v", len(line), err)
		}
	}
	if in.long != nil {
		t.Errorf("%d bytes are kept", cap(in.long))
	}
}
