package frame

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	// ErrTooLong says that a line exceeds the limit. The rest of it may be skipped.
	ErrTooLong = errors.New("a line exceeds the frame limit")

	// ErrEndless says that a line exceeds the limit so far that its end is not waited for.
	ErrEndless = errors.New("a line exceeds the frame limit many times over")
)

const (
	readBuffer = 64 << 10
	keepBuffer = 1 << 20 // a larger one, grown for a long line, is given back
	patience   = 64      // limits that a line may take before its end is given up
)

var bom = []byte("\xef\xbb\xbf")

// Reader cuts a stream into lines, which end in a line feed. It never holds more than one of them, nor more of it than the
// limit and a buffer of 64 KiB. It is for one goroutine.
type Reader struct {
	r     *bufio.Reader
	limit int // bytes, without the terminator

	line  []byte // the last one, or the beginning of one over the limit
	whole bool   // line is all of it, and its terminator has been read
	long  []byte // where a line is gathered that does not fit into r
	ours  bool   // line is in long
}

// NewReader returns a Reader of lines that have up to limit bytes, their terminators not counted.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, readBuffer), limit: limit}
}

// Next returns the next line without its terminator, good until the next call. The error is ErrTooLong, after which PassOver
// is to be called, or that of the stream; with either it returns how many bytes of an unfinished line there were: they are
// never a message.
func (r *Reader) Next() (line []byte, unfinished int, err error) {
	if cap(r.long) > keepBuffer {
		r.long = nil
	}
	part, err := r.r.ReadSlice('\n')
	r.line, r.ours, r.whole = part, false, err == nil
	if errors.Is(err, bufio.ErrBufferFull) {
		err = r.gather(part)
	}
	r.line = bytes.TrimSuffix(r.line, []byte("\n"))
	switch {
	case len(r.line) > r.limit && (err == nil || errors.Is(err, bufio.ErrBufferFull)):
		return nil, len(r.line), ErrTooLong
	case err != nil:
		return nil, len(r.line), err
	}
	return r.line, 0, nil
}

// gather reads on where a line did not fit into the buffer, to its end or over the limit.
func (r *Reader) gather(part []byte) error {
	r.long = r.long[:0]
	r.append(part)
	err := bufio.ErrBufferFull
	for errors.Is(err, bufio.ErrBufferFull) && len(r.long) <= r.limit {
		part, err = r.r.ReadSlice('\n')
		r.append(part)
	}
	r.line, r.ours, r.whole = r.long, true, err == nil
	return err
}

// append doubles the room where it has to, so that a line is copied about once more than it must be, and takes no more
// than the limit can need.
func (r *Reader) append(part []byte) {
	if need := len(r.long) + len(part); need > cap(r.long) {
		room := max(need, min(max(2*cap(r.long), 2*readBuffer), r.limit+readBuffer))
		r.long = append(make([]byte, 0, room), r.long...)
	}
	r.long = append(r.long, part...)
}

// Keep returns a part of the line that Next returned as the caller's own. A part that is most of a long line is not
// copied: the Reader gives its buffer away.
func (r *Reader) Keep(part []byte) []byte {
	if !r.ours || cap(r.long) <= keepBuffer || 2*len(part) < cap(r.long) {
		return bytes.Clone(part)
	}
	r.long, r.ours = nil, false
	return part[:len(part):len(part)]
}

// PassOver reads past a line for which Next returned ErrTooLong, up to and with its terminator, and returns the size of the line
// and its id: the value of its member "id", nil where there is none, or where it cannot be that of an answer because
// the line has a method, or is no JSON object as far as that can be told without holding it. The error is ErrEndless where
// 64 times the limit has passed without a terminator, or that of the stream; then there is no id.
func (r *Reader) PassOver() (id jsontext.Value, size int, err error) {
	var s scan
	s.feed(bytes.TrimPrefix(r.line, bom))
	size = len(r.line)
	r.line = nil
	for !r.whole {
		part, err := r.r.ReadSlice('\n')
		r.whole = err == nil
		part = bytes.TrimSuffix(part, []byte("\n"))
		size += len(part)
		s.feed(part)
		switch {
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, size, err
		case !r.whole && size/patience > r.limit:
			return nil, size, ErrEndless
		}
	}
	return s.answerID(), size, nil
}
