package explain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
	"waybill/replay"
)

// ErrNoCall is matched by the error for a call that the log does not have, or that
// is named so that several could be meant.
var ErrNoCall = errors.New("no such call")

// Indexed is a Source that finds the events of a call without reading the whole log.
type Indexed interface {
	replay.Source
	// OfCall returns all events of a call, by its key, in order.
	OfCall(ctx context.Context, key string) ([]replay.Record, error)
}

// Facts are what a sentence says, for a program. The keys of one code of sentence
// are a contract.
type Facts map[string]any

// Sentence is one thing that is said, and the events it rests on.
type Sentence struct {
	Section string  `json:"section"` // request, name, list, peer, exchange, refusal, end, afterwards
	Code    string  `json:"code"`    // which sentence it is: a stable word
	Text    string  `json:"text"`    // it ends with a full stop
	Seqs    []int64 `json:"seqs"`    // ascending, at least one
	Facts   Facts   `json:"facts"`
}

// Line is an event, as far as a table of them goes.
type Line struct {
	Seq    int64  `json:"seq"`
	Kind   string `json:"kind"`
	Time   string `json:"time"`    // RFC 3339, UTC
	Digest string `json:"digest"`  // the hash of its leaf, which a proof of inclusion is of
	OfCall bool   `json:"of_call"` // not only cited by a sentence
}

// Kinds of outcomes.
const (
	Settled  = "settled"
	Refused  = "refused"
	UnderWay = "under_way" // the log holds no end
	Joined   = "joined"    // the submission had the outcome of another call
)

// Outcome says how the call ended.
type Outcome struct {
	Kind   string        `json:"kind"`
	First  string        `json:"first,omitempty"` // key of the call whose outcome a submission had that joined it
	Seq    int64         `json:"seq"`             // of the event that ended it; of the last event of the call where none did
	Status domain.Status `json:"status,omitempty"`
	Code   domain.Code   `json:"code,omitempty"`
	Ran    domain.Ran    `json:"ran,omitempty"`
	Reason string        `json:"reason,omitempty"` // of a refusal
}

// Explanation is the story of one call. Its JSON form is a contract.
type Explanation struct {
	Log       string     `json:"log"`
	Call      string     `json:"call"` // key: host/call_id
	Host      string     `json:"host"`
	CallID    string     `json:"call_id"`
	Tool      string     `json:"tool"` // as the host named it
	Outcome   Outcome    `json:"outcome"`
	Sentences []Sentence `json:"sentences"`
	Events    []Line     `json:"events"` // those of the call, and those that sentences rest on
}

// Call explains a call. It is named by its key host/call_id, by the seq of any of its
// events, or by its call_id alone where just one host has one of that id. Where the
// id was used for several calls, the key means the last of them that was not turned
// away as a duplicate. Errors for a call that is not there match ErrNoCall; others are
// those of replay.Scan.
func Call(ctx context.Context, src replay.Source, name string) (Explanation, error) {
	f, err := find(ctx, src, name)
	if err != nil {
		return Explanation{}, err
	}
	n := newNarrator(f)
	err = replay.Scan(ctx, src, n.event)
	if err != nil && !errors.Is(err, errDone) {
		return Explanation{}, err
	}
	if err := errors.Join(n.erasures(ctx, src), n.joins(ctx, src)); err != nil {
		return Explanation{}, err
	}
	n.finish()
	x := Explanation{Log: src.ID(), Call: f.key, Host: n.asked.Host, CallID: n.asked.ID, Tool: n.asked.Tool, Outcome: n.outcome, Sentences: n.told.list}
	x.Events, err = lines(ctx, src, f.story.has, x.Sentences)
	return x, err
}

// lines reads the events of a table again: there are few.
func lines(ctx context.Context, src replay.Source, own map[int64]bool, said []Sentence) ([]Line, error) {
	seqs := Seqs(said)
	for seq := range own { // order-free: sorted below
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	var out []Line
	for _, seq := range slices.Compact(seqs) {
		list, err := src.Records(ctx, seq-1, 1)
		if err != nil {
			return nil, fmt.Errorf("read event %d: %w", seq, err)
		}
		if len(list) == 0 || list[0].Seq != seq {
			return nil, &replay.AlteredError{Seq: seq, What: "missing"}
		}
		l, err := lineOf(list[0])
		if err != nil {
			return nil, err
		}
		l.OfCall = own[seq]
		out = append(out, l)
	}
	return out, nil
}

func lineOf(r replay.Record) (Line, error) {
	e, err := opened(r)
	if err != nil {
		return Line{}, err
	}
	leaf := tlog.RecordHash(r.Bytes)
	return Line{Seq: r.Seq, Kind: e.Data.Kind(), Time: when(e.Time), Digest: hex.EncodeToString(leaf[:])}, nil
}

// Seqs lists the events that sentences rest on, ascending, each once.
func Seqs(list []Sentence) (out []int64) {
	for _, s := range list {
		out = append(out, s.Seqs...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func when(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}

// telling is what has been said so far.
type telling struct {
	section string
	list    []Sentence
}

// say adds a sentence. Notes of events that never were are left out of what it rests
// on.
func (t *telling) say(code string, rests []note, facts Facts, format string, args ...any) {
	s := Sentence{Section: t.section, Code: code, Text: plain(fmt.Sprintf(format, args...)), Seqs: []int64{}, Facts: facts}
	if s.Facts == nil {
		s.Facts = Facts{}
	}
	for _, n := range rests {
		if n.seq != 0 {
			s.Seqs = append(s.Seqs, n.seq)
		}
	}
	slices.Sort(s.Seqs)
	s.Seqs = slices.Compact(s.Seqs)
	if slices.ContainsFunc(t.list, func(x Sentence) bool {
		return x.Code == s.Code && x.Text == s.Text && slices.Equal(x.Seqs, s.Seqs)
	}) {
		return // it has been said
	}
	t.list = append(t.list, s)
}
