package frame

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"waybill/domain"
)

// FuzzReader holds the reader to what a line is, however the bytes arrive: the parts between line feeds, each whole or, over
// the limit, passed over.
func FuzzReader(f *testing.F) {
	f.Add([]byte("a\n\nb\r\nhalf"), 8)
	f.Add([]byte("\n"), 1)
	f.Add([]byte("{\"id\":1,\"result\":{}}\nab\n"), 3)
	f.Add(bytes.Repeat([]byte("x"), 70_000), 65_536)
	f.Add(append(bytes.Repeat([]byte("x"), readBuffer), '\n'), readBuffer)
	f.Fuzz(func(t *testing.T, stream []byte, limit int) {
		limit = 1 + max(0, limit)%(2*readBuffer)
		if len(stream) > patience*limit {
			return // where lines are given up, and when is no matter of single bytes
		}
		want := bytes.Split(stream, []byte("\n"))
		last := len(want) - 1
		for _, r := range []io.Reader{bytes.NewReader(stream), iotest.HalfReader(bytes.NewReader(stream)), iotest.DataErrReader(bytes.NewReader(stream))} {
			in := NewReader(r, limit)
			for i, w := range want {
				line, n, err := in.Next()
				if errors.Is(err, ErrTooLong) {
					_, n, err = in.PassOver()
					line = w
					if len(w) <= limit {
						t.Fatalf("line %d of %d bytes was passed over", i, len(w))
					}
				} else if err == nil && len(w) > limit {
					t.Fatalf("line %d of %d bytes was taken", i, len(w))
				}
				switch {
				case i == last && (!errors.Is(err, io.EOF) || n != len(w)):
					t.Fatalf("the end is %d bytes and %v, want %d", n, err, len(w))
				case i < last && (err != nil || !bytes.Equal(line, w)):
					t.Fatalf("line %d is %.40q, %v", i, line, err)
				}
			}
		}
	})
}

// FuzzScan compares the id that is found in passing with that of the parsed message, where the line is one.
func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":5,"result":{"id":[1,{"id":"\""}]}}`), 3)
	f.Add([]byte(`{"\u0069d":5,"error":{},"method":1}`), 1)
	f.Add([]byte("\xef\xbb\xbf { \"x\" : \"\\\\\" , \"id\" : 12 } "), 7)
	f.Fuzz(func(t *testing.T, line []byte, cut int) {
		m, err := domain.ParseMessage(line)
		if err != nil || bytes.ContainsRune(line, '\n') {
			return
		}
		cut = max(1, cut)
		var s scan
		for rest := bytes.TrimPrefix(line, bom); len(rest) > 0; rest = rest[min(cut, len(rest)):] {
			s.feed(rest[:min(cut, len(rest))])
		}
		want, ok := m.RequestID()
		got, found := domain.Message{ID: s.answerID()}.RequestID()
		if m.Method != nil {
			want, ok = 0, false
		}
		if got != want || ok != found {
			t.Errorf("found %d, %v; the message has %d, %v", got, found, want, ok)
		}
	})
}
