package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/replay"
	"waybill/store"
)

// copied says how far a copy goes that is the same as the log.
type copied struct {
	First  int64 `json:"first"`  // the event it begins with
	Last   int64 `json:"last"`   // the event it ends with
	Behind int64 `json:"behind"` // later events of the log that it lacks
}

func (c copied) lacks() string {
	out := ""
	if c.First > 1 {
		out += fmt.Sprintf("; those before %d are not in it, as when the head of a stream aged out", c.First)
	}
	if c.Behind > 0 {
		out += fmt.Sprintf("; it ends %d events before the log", c.Behind)
	}
	return out
}

// compare holds a copy of the events, one a line, to the log. The first event
// that differs, or is missing in one of the two, is an *AlteredError.
func compare(ctx context.Context, l logfile.Log, path string) (*copied, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usageError{err}
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, store.MaxEvent+2)
	line, err := nextLine(lines)
	first := idOf(line)
	if err != nil || first < 1 {
		return nil, usageError{fmt.Errorf("%s does not begin with an event: want one a line", path)}
	}
	w := walk{ctx: ctx, log: l, after: first - 1}
	for ; err == nil; line, err = nextLine(lines) {
		if err := w.match(line, path); err != nil {
			return nil, err
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	head, err := l.Head(ctx)
	return &copied{First: first, Last: w.after, Behind: max(head.Size-w.after, 0)}, err
}

// nextLine returns the next line without its end, or io.EOF. One that is too
// long for an event is cut where no event would end.
func nextLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF) && len(line) > 0 {
		return line, nil
	}
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// idOf returns the seq that a line bears, or 0.
func idOf(line []byte) int64 {
	var v struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(line, &v) != nil {
		return 0
	}
	n, _ := strconv.ParseInt(v.ID, 10, 64)
	return n
}

// walk goes through the log beside a copy.
type walk struct {
	ctx   context.Context // of the one comparison
	log   logfile.Log
	after int64 // the last event that was the same
	ahead []store.Record
}

// match holds one line to the next event.
func (w *walk) match(line []byte, path string) (err error) {
	if len(w.ahead) == 0 {
		if w.ahead, err = w.log.Read(w.ctx, w.after, 512); err != nil {
			return err
		}
	}
	seq := w.after + 1
	if len(w.ahead) == 0 || w.ahead[0].Seq != seq {
		return &replay.AlteredError{Seq: seq, What: fmt.Sprintf("missing in the log; the copy %s goes on", path)}
	}
	if bytes.Equal(line, w.ahead[0].Bytes) {
		w.after, w.ahead = seq, w.ahead[1:]
		return nil
	}
	if id := idOf(line); id > 0 && id != seq {
		return &replay.AlteredError{Seq: seq, What: fmt.Sprintf("missing in the copy %s, which has event %d in its place", path, id)}
	}
	return &replay.AlteredError{Seq: seq, What: fmt.Sprintf("the copy %s has other bytes", path)}
}
