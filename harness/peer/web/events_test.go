package web

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// read reads a stream with limits that nothing reaches.
func read(r io.Reader) ([]Event, error) {
	return readWithin(r, readBuffer, math.MaxInt32, 0)
}

func readWithin(r io.Reader, buffer int, event, all int64) (events []Event, err error) {
	s := &stream{in: bufio.NewReaderSize(r, buffer), event: event, all: all}
	for {
		e, err := s.next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func show(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Data != nil {
			fmt.Fprintf(&b, "%q", e.Data)
		}
		if e.HasID {
			fmt.Fprintf(&b, " id %q", e.ID)
		}
		if e.HasRetry {
			fmt.Fprintf(&b, " retry %v", e.Retry)
		}
		b.WriteByte(';')
	}
	return b.String()
}

// A stream of comments, or of events that are no messages, is ended; one that brings a message now and then is not.
func TestAStreamThatSaysNothingIsEnded(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, filler := range []string{":" + long + "\n", "\n\n\n\n", "event: ping\ndata: " + long + "\n\n", "id: 1\n\n", long + "\n"} {
		for _, between := range []bool{false, true} {
			body := strings.Repeat(filler, mostSilence*6/5/len(filler))
			if between {
				half := strings.Repeat(filler, mostSilence*3/5/len(filler))
				body = half + "data: a\n\n" + half + "data: b\n\n"
			}
			s := &stream{in: bufio.NewReader(strings.NewReader(body)), event: 1 << 20, silence: mostSilence}
			messages := 0
			var err error
			for err == nil {
				var e Event
				if e, err = s.next(); e.Data != nil {
					messages++
				}
			}
			if want := map[bool]error{false: errQuiet, true: io.EOF}[between]; !errors.Is(err, want) || between && messages != 2 {
				t.Errorf("%.20q: %d messages, then %v, want %v", filler, messages, err, want)
			}
		}
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"nothing", "", ""},
		{"one", "data: x\n\n", `"x";`},
		{"without a space", "data:x\n\n", `"x";`},
		{"one space is taken", "data:  x \n\n", `" x ";`},
		{"CR", "data: x\r\rdata: y\r\r", `"x";"y";`},
		{"CRLF", "data: x\r\n\r\ndata: y\r\n\r\n", `"x";"y";`},
		{"all of them", "data: x\n\rdata: y\r\r\ndata: z\r\n\n", `"x";"y";"z";`},
		{"LF CR is two ends", "data: x\n\rdata: y", `"x";`},
		{"lines", "data: x\ndata: y\rdata\r\ndata:\n\n", `"x\ny\n\n";`},
		{"comments", ": x\n:\n\ndata: a\n: b\ndata: c\n\n", `"a\nc";`},
		{"a byte order mark", "\xef\xbb\xbfdata: x\n\n", `"x";`},
		{"two of them", "\xef\xbb\xbf\xef\xbb\xbfdata: x\n\ndata: y\n\n", `"y";`},
		{"half of one", "\xef\xbbdata: x\n\n\xef", ""},
		{"a later one", "\n\xef\xbb\xbfdata: x\n\n", ""},
		{"bytes as they are", "data: \xff\xc3\x00\xe2\x82\n\n", `"\xff\xc3\x00\xe2\x82";`},
		{"an unfinished event", "data: x\n\nid: 1\nretry: 5\ndata: y\n", `"x";`},
		{"an unfinished line", "data: x\n\ndata: y", `"x";`},
		{"message", "event: message\ndata: x\n\n", `"x";`},
		{"no type after all", "event: ping\nevent:\ndata: x\n\n", `"x";`},
		{"another type", "event: ping\ndata: x\n\ndata: y\n\n", `"y";`},
		{"another type after the data", "data: x\nevent: endpoint\n\n", ""},
		{"its id", "event: ping\ndata: x\nid: 7\n\n", ` id "7";`},
		{"an id", "id: 1\ndata: x\n\ndata: y\n\n", `"x" id "1";"y";`},
		{"the last of two", "id: 1\nid: 2\ndata: x\n\n", `"x" id "2";`},
		{"no id any more", "id\ndata: x\n\n", `"x" id "";`},
		{"an id with NUL", "id: 1\nid: a\x00b\n\n", ` id "1";`},
		{"primed", "id: 1\ndata:\n\n", ` id "1";`},
		{"empty data", "data:\n\ndata\n\n", ""},
		{"retry", "retry: 0\n\nretry: 1500\ndata: x\n\n", " retry 0s;" + `"x" retry 1.5s;`},
		{"retry that is none", "retry: +1\nretry: -1\nretry: 1.5\nretry:\nretry: 0x1\nretry: 1 \n\n", ""},
		{"retry for ever", "retry: 99999999999999999999\n\n", " retry " + (9223372036854 * time.Millisecond).String() + ";"},
		{"fields that nobody knows", "Data: x\n data: x\ndat: x\ndatax: y\n\n", ""},
		{"a colon in the value", "data: {\"a\": 1}\n\n", `"{\"a\": 1}";`},
	} {
		for how, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(c.stream)),
		} {
			got, err := read(r)
			if err != nil || show(got) != c.want {
				t.Errorf("%s, %s: %s, %v; want %s", c.name, how, show(got), err, c.want)
			}
		}
	}
}

// TestAnEventIsThereAsSoonAsItsEndIs writes to a pipe, so that a reader that wants one byte more never returns.
func TestAnEventIsThereAsSoonAsItsEndIs(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n", "\r\n\r", "\n\r", "\r\n\n"} {
		in, out := io.Pipe()
		go io.WriteString(out, "data: x"+end)
		s := &stream{in: bufio.NewReader(in), event: 10}
		if e, err := s.next(); err != nil || string(e.Data) != "x" {
			t.Errorf("%q: %+v, %v", end, e, err)
		}
		in.Close()
	}
}

func TestAStreamGoesOnWhereItsReaderLeftOff(t *testing.T) {
	a := answered(t, text("data: x\r\n\r\ndata: y\r\n\r\ndata: z\r\n\r\n"), unchanged)
	var got []Event
	for range 4 {
		for e, err := range a.Events() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
			break
		}
	}
	if show(got) != `"x";"y";"z";` {
		t.Errorf("%s", show(got))
	}
}

func TestLimitsOfEventsAndStreams(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name, stream string
		event, all   int64
		n            int   // events before the end
		err          error // nil for the end
	}{
		{"an event as large as may be", "data: " + x(100) + "\n\n", 100, 0, 1, nil},
		{"one byte more", "data: y\n\ndata: " + x(101) + "\n\n", 100, 0, 1, errEvent},
		{"in two lines", "data: " + x(50) + "\ndata: " + x(49) + "\n\n", 100, 0, 1, nil},
		{"one byte more in two lines", "data: " + x(50) + "\ndata: " + x(50) + "\n\n", 100, 0, 0, errEvent},
		{"in empty lines", strings.Repeat("data\n", 101) + "\n", 100, 0, 1, nil},
		{"one more empty line", strings.Repeat("data\n", 102) + "\n", 100, 0, 0, errEvent},
		{"large, gathered", "data: " + x(3*readBuffer) + "\n\ndata: y\n\n", 3 * readBuffer, 0, 2, nil},
		{"larger, gathered", "data: " + x(3*readBuffer+1) + "\n\n", 3 * readBuffer, 0, 0, errEvent},
		{"large, and a line more", "data: " + x(3*readBuffer-2) + "\ndata: y\n\n", 3 * readBuffer, 0, 1, nil},
		{"a line without end", x(200_000), 100, 0, 0, errEvent},
		{"a comment without end", ":" + x(200_000), 100, 0, 0, errEvent},
		{"an id without end", "id: " + x(200_000), 100, 0, 0, errEvent},
		{"comments and no event", strings.Repeat(": ping\n", 100_000) + "data: x\n\n", 100, 0, 1, nil},
		{"a stream as large as may be", "data: x\n\ndata: y\n\n", 100, 18, 2, nil},
		{"one byte more", "data: x\n\ndata: y\n\n\n", 100, 18, 2, errStream},
		{"with CRLF", "data: x\r\n\r\ndata: y\r\n\r\n", 100, 22, 2, nil},
		{"one byte more with CRLF", "data: x\r\n\r\ndata: y\r\n\r\n", 100, 21, 2, errStream},
		{"comments are of the stream", strings.Repeat(": ping\n", 100), 100, 699, 0, errStream},
	} {
		for how, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(c.stream)),
		} {
			got, err := readWithin(r, readBuffer, c.event, c.all)
			if !errors.Is(err, c.err) || len(got) != c.n {
				t.Errorf("%s, %s: %d events, %v; want %d, %v", c.name, how, len(got), err, c.n, c.err)
			}
		}
	}
}
