package web

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"math"
	"strconv"
	"time"
)

// An Event is one block of a stream: up to an empty line.
type Event struct {
	Data []byte // the message; nil where the event has none or is of another type than message

	HasID bool   // it set the id of the stream, which may be to ""
	ID    string // that is to be sent as Last-Event-ID when the stream is resumed

	HasRetry bool
	Retry    time.Duration // before the stream may be resumed
}

// Events reads the body as a text/event-stream, as the WHATWG's HTML standard says in section 9.2, and waits for what comes. It
// yields the events with a message, and those without that bring an id or a retry. An event that the stream ends in is no event; its
// id and retry do not count either. The last pair may be an error: ErrTooLarge for an event over MaxBody or a stream over MaxStream,
// or a *Failure, such as KindIdle where the stream brought nothing for Idle. It may be called again where the reader left off.
func (a *Answer) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := a.decoded(); err != nil {
			yield(Event{}, err)
			return
		}
		a.watch.idle = a.options.Idle
		s := a.stream()
		for {
			e, err := s.next()
			if errors.Is(err, io.EOF) {
				a.ended = true
				return
			}
			if err != nil {
				yield(Event{}, a.streamError(err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (a *Answer) streamError(err error) error {
	switch {
	case errors.Is(err, errEvent):
		return a.tooLarge("an event", a.options.MaxBody)
	case errors.Is(err, errQuiet):
		return a.tooLarge("what comes between two messages", mostSilence)
	case errors.Is(err, errStream):
		return a.tooLarge("the stream", a.options.MaxStream)
	}
	return a.failure(unread(a.ctx, err))
}

// ParseEvents cuts a body that is there as a whole into its events, as Events does. One that the body ends in is no event.
func ParseEvents(body []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		s := &stream{in: bufio.NewReader(bytes.NewReader(body)), event: int64(len(body)), silence: int64(len(body))}
		for {
			e, err := s.next()
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// mostSilence is how many bytes may come between two messages that are part of neither: comments, empty lines, events of other types. A
// stream of them alone is work for nobody.
const mostSilence = 1 << 20

var (
	errQuiet  = errors.New("nothing but comments and the like")
	errEvent  = errors.New("an event is over the limit")
	errStream = errors.New("the stream is over the limit")
)

// stream is made once, for it may have begun an event when the caller left off.
func (a *Answer) stream() *stream {
	if a.events == nil {
		a.events = &stream{in: a.in, event: a.options.MaxBody, all: a.options.MaxStream, silence: mostSilence}
	}
	return a.events
}

var bom = []byte("\xef\xbb\xbf")

// A stream cuts a text/event-stream into events. It is our own because github.com/tmaxmax/go-sse v0.12.0 looks at an event from its
// beginning each time that more of it has come (4 MiB in reads of 1400 bytes: seconds), counts comments towards the size of the event
// after them, so that a stream which only pings breaks the limit, and tells nobody of retry.
//
// Bytes come out as they went in: what is wrong in UTF-8 is for the reader of the message to say.
type stream struct {
	in    *bufio.Reader
	event int64 // most bytes of one event's data, and of a line's value
	all   int64 // most bytes of the stream; 0 for no limit

	silence int64 // most bytes between two messages; 0 for no limit
	quiet   int64 // of them so far

	taken  int64 // of the stream
	begun  bool  // past the place of a byte order mark
	passLF bool  // a line ended in CR: the LF that may follow belongs to its end, and is not waited for
	line   []byte

	err error // the end of the stream, or why there is no going on

	pending Event
	data    []byte
	lines   int  // of data
	other   bool // the event is of another type than message
}

// next reads up to the next event that has something to tell.
func (s *stream) next() (Event, error) {
	for s.err == nil {
		line, err := s.readLine()
		switch {
		case err != nil:
			s.err = err
		case len(line) > 0:
			s.err = s.field(line)
			if !bytes.HasPrefix(line, []byte("data")) {
				s.hush(len(line) + 1)
			}
		default:
			if s.other {
				s.hush(len(s.data))
			}
			s.hush(1)
			e := s.dispatch()
			if e.Data != nil {
				s.quiet = 0
			}
			if e.Data != nil || e.HasID || e.HasRetry {
				return e, nil
			}
		}
	}
	return Event{}, s.err
}

// hush counts what is no part of a message.
func (s *stream) hush(n int) {
	if s.quiet += int64(n); s.silence > 0 && s.quiet > s.silence && s.err == nil {
		s.err = errQuiet
	}
}

// dispatch ends an event.
func (s *stream) dispatch() Event {
	e := s.pending
	if len(s.data) > 0 && !s.other {
		e.Data = s.data
	}
	s.pending, s.data, s.lines, s.other = Event{}, nil, 0, false
	return e
}

// field takes one line. A comment is a line whose field has no name; it and fields that nobody knows are passed over.
func (s *stream) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return s.add(value)
	case "event":
		s.other = len(value) > 0 && string(value) != "message"
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			s.pending.HasID, s.pending.ID = true, string(value)
		}
	case "retry":
		if d, ok := milliseconds(value); ok {
			s.pending.HasRetry, s.pending.Retry = true, d
		}
	}
	return nil
}

// add adds a line of data. The first one is not copied if it had to be gathered, so that a big message is held once.
func (s *stream) add(value []byte) error {
	s.lines++
	switch {
	case int64(len(s.data)+len(value)+min(1, s.lines-1)) > s.event:
		return errEvent
	case s.lines == 1 && len(value) > readBuffer:
		s.data, s.line = value, nil
		return nil
	case s.lines > 1:
		s.data = append(s.data, '\n')
	}
	s.data = append(s.data, value...)
	return nil
}

// milliseconds reads digits and nothing else. What is too long for a duration is the longest.
func milliseconds(digits []byte) (time.Duration, bool) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	if len(digits) == 0 {
		return 0, false
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n > most {
		n = most
	}
	return time.Duration(n) * time.Millisecond, true
}

// readLine returns the next line without its end, good until the next call. It returns as soon as the end has come.
func (s *stream) readLine() ([]byte, error) {
	if err := s.start(); err != nil {
		return nil, err
	}
	s.line = s.line[:0]
	if cap(s.line) > 4*readBuffer {
		s.line = nil
	}
	for {
		part, err := s.part()
		if err != nil {
			return nil, err
		}
		end := bytes.IndexAny(part, "\r\n")
		if end < 0 {
			end = len(part)
		}
		if int64(len(s.line)+end) > s.event+int64(len("retry: ")) {
			return nil, errEvent
		}
		if end == len(part) {
			s.line = append(s.line, part...)
			if err := s.take(end); err != nil {
				return nil, err
			}
			continue
		}
		s.passLF = part[end] == '\r'
		return s.ended(part[:end])
	}
}

// ended gives a line whose last part is still in the buffer of the reader.
func (s *stream) ended(part []byte) ([]byte, error) {
	if err := s.take(len(part) + 1); err != nil {
		return nil, err
	}
	if len(s.line) == 0 {
		return part, nil
	}
	s.line = append(s.line, part...)
	return s.line, nil
}

// part waits until something is there and returns it. It is good until the next reading.
func (s *stream) part() ([]byte, error) {
	for {
		if _, err := s.in.Peek(1); err != nil {
			return nil, err
		}
		part, err := s.in.Peek(s.in.Buffered())
		if err != nil || !s.passLF || part[0] != '\n' {
			s.passLF = false
			return part, err
		}
		s.passLF = false
		if err := s.take(1); err != nil {
			return nil, err
		}
	}
}

// take counts bytes of the stream as read. They stay where they are until the next reading.
func (s *stream) take(n int) error {
	s.taken += int64(n)
	if s.all > 0 && s.taken > s.all {
		return errStream
	}
	_, err := s.in.Discard(n)
	return err
}

// start passes over a byte order mark, waiting for no byte of it that cannot come.
func (s *stream) start() error {
	if s.begun {
		return nil
	}
	s.begun = true
	for n := 1; n <= len(bom); n++ {
		head, _ := s.in.Peek(n) // its error comes again, when the lines are read
		if !bytes.Equal(head, bom[:n]) {
			return nil
		}
	}
	return s.take(len(bom))
}
