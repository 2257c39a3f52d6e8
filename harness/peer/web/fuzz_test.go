package web

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// model reads a whole stream as section 9.2.6 of the HTML standard words it, on text that is all there.
func model(text string) (events []Event) {
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	var data, kind string
	var e Event
	for _, line := range lines[:len(lines)-1] { // the last one has no end
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != "" && data != "\n" && (kind == "" || kind == "message") {
				e.Data = []byte(strings.TrimSuffix(data, "\n"))
			}
			if e.Data != nil || e.HasID || e.HasRetry {
				events = append(events, e)
			}
			data, kind, e = "", "", Event{}
		case field == "data":
			data += value + "\n"
		case field == "event":
			kind = value
		case field == "id" && !strings.Contains(value, "\x00"):
			e.ID, e.HasID = value, true
		case field == "retry" && regexp.MustCompile(`^[0-9]+$`).MatchString(value):
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil || n > uint64(9223372036854) {
				n = 9223372036854
			}
			e.Retry, e.HasRetry = time.Duration(n)*time.Millisecond, true
		}
	}
	return events
}

// FuzzEvents holds the reader to the model, however the bytes arrive.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{
		"data: x\n\n", "\xef\xbb\xbfdata: x\r\rid: 1\r\n\r\ndata\n\n", "event: ping\ndata: x\nretry: 10\n\n:c\ndata:y\ndata: \n\n",
		"id: \x00\n\nretry:99999999999999999999\n\ndata: \xff\xe2\x82\r\n\r", "event:message\rdata:x\r\n\rid\n\n", "data:\ndata:\n\n",
	} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		if len(text) > 4096 {
			return // sizes are a matter of the table
		}
		cut = min(max(0, cut), len(text))
		want := show(model(string(text)))
		for how, r := range map[string]io.Reader{
			"whole":        bytes.NewReader(text),
			"byte by byte": iotest.OneByteReader(bytes.NewReader(text)),
			"in two":       io.MultiReader(bytes.NewReader(text[:cut]), bytes.NewReader(text[cut:])),
			"with the end": iotest.DataErrReader(bytes.NewReader(text)),
		} {
			got, err := readWithin(r, 16, 1<<20, 0) // so small that most lines have to be gathered
			if err != nil || show(got) != want {
				t.Fatalf("%s: %s, %v; the model has %s", how, show(got), err, want)
			}
		}
	})
}
