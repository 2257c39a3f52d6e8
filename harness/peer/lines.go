package peer

import (
	"bufio"
	"errors"
	"io"
)

var errLineTooLong = errors.New("a line exceeds the frame limit")

const (
	readBuffer = 64 << 10
	keepBuffer = 1 << 20 // a larger one, grown for a long line, is given back
)

// lines cuts a stream into lines and never holds more than one of them, nor more than its limit allows.
type lines struct {
	r     *bufio.Reader
	limit int // bytes, without the terminator
	long  []byte
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, readBuffer), limit: limit}
}

// next returns the next line without its terminator, good until the next call. With an error it returns how many bytes of
// an unfinished line there were: they are never a message.
func (l *lines) next() (line []byte, unfinished int, err error) {
	if cap(l.long) > keepBuffer {
		l.long = nil
	}
	part, err := l.r.ReadSlice('\n')
	if err == nil {
		return l.finish(part)
	}
	l.long = append(l.long[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) && len(l.long) <= l.limit {
		part, err = l.r.ReadSlice('\n')
		l.long = append(l.long, part...)
	}
	switch {
	case err == nil:
		return l.finish(l.long)
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, len(l.long), errLineTooLong
	}
	return nil, len(l.long), err
}

func (l *lines) finish(terminated []byte) ([]byte, int, error) {
	line := terminated[:len(terminated)-1]
	if len(line) > l.limit {
		return nil, len(line), errLineTooLong
	}
	return line, 0, nil
}
