package peer

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// FuzzLines holds the frame reader to what a line is, however the bytes arrive:
// the parts between line feeds, none over the limit, and nothing after the first
// that is over it.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nb\r\nhalf"), 8)
	f.Add([]byte("\n"), 1)
	f.Add(bytes.Repeat([]byte("x"), 70_000), 65_536)
	f.Add(append(bytes.Repeat([]byte("x"), readBuffer), '\n'), readBuffer)
	f.Fuzz(func(t *testing.T, stream []byte, limit int) {
		limit = 1 + max(0, limit)%(2*readBuffer)
		want, wantErr := cut(stream, limit)
		for _, r := range []io.Reader{bytes.NewReader(stream), iotest.HalfReader(bytes.NewReader(stream)), iotest.DataErrReader(bytes.NewReader(stream))} {
			in := newLines(r, limit)
			for i := 0; ; i++ {
				line, _, err := in.next()
				if err != nil {
					if i != len(want) || !errors.Is(err, wantErr) {
						t.Fatalf("%d lines and %v, want %d and %v", i, err, len(want), wantErr)
					}
					break
				}
				if i >= len(want) || !bytes.Equal(line, want[i]) {
					t.Fatalf("line %d is %.40q", i, line)
				}
			}
		}
	})
}

// cut is the slow and plain way to say the same.
func cut(stream []byte, limit int) (lines [][]byte, err error) {
	parts := bytes.Split(stream, []byte("\n"))
	for i, p := range parts {
		switch last := i == len(parts)-1; {
		case len(p) > limit && (!last || len(p) > limit+readBuffer):
			return lines, errLineTooLong
		case last && len(p) > limit:
			// An unfinished line is over the limit once so much of it has come; either end is one.
			return lines, endOfUnfinished(len(p), limit)
		case last:
			return lines, io.EOF
		}
		lines = append(lines, p)
	}
	return lines, io.EOF
}

// endOfUnfinished says how a last line without its terminator ends: the reader
// looks at the limit whenever its buffer has been full.
func endOfUnfinished(size, limit int) error {
	if full := size / readBuffer * readBuffer; full > limit {
		return errLineTooLong
	}
	return io.EOF
}
