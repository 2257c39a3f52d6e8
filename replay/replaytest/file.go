package replaytest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"waybill/replay"
)

// A Header is the first line of a log in a text file, of JSON lines. What
// follows it is one row of the log a line:
//
//	{"record":{"seq":1,"type":"...","peer":"...","call":"...","leaf":"<hex>","envelope":"<the exact bytes>"}}
//	{"root":{"size":1,"hash":"<hex>"}}
//	{"tile":{"level":0,"index":0,"hashes":"<base64>"}}
//	{"evidence":{"digest":"<hex>","bytes":"<base64>"}}
type Header struct {
	Log   string `json:"log"`
	About string `json:"about"`
	Want  *Want  `json:"want,omitzero"` // nil: it is whole, and every decision agrees
}

// Want says what is found wrong with a log.
type Want struct {
	By   string `json:"by"`   // verify, or replay of a log that verifies
	Code string `json:"code"` // altered, undecidable, or a divergence: different, extra, missing
	Seq  int64  `json:"seq"`
}

type line struct {
	Record   *recordLine   `json:"record,omitzero"`
	Root     *rootLine     `json:"root,omitzero"`
	Tile     *tileLine     `json:"tile,omitzero"`
	Evidence *evidenceLine `json:"evidence,omitzero"`
}

type recordLine struct {
	Seq      int64  `json:"seq"`
	Type     string `json:"type"`
	Peer     string `json:"peer"`
	Call     string `json:"call"`
	Leaf     string `json:"leaf"`
	Envelope string `json:"envelope"`
}

type rootLine struct {
	Size int64  `json:"size"`
	Hash string `json:"hash"`
}

type tileLine struct {
	Level  int    `json:"level"`
	Index  int64  `json:"index"`
	Hashes []byte `json:"hashes"`
}

type evidenceLine struct {
	Digest string `json:"digest"`
	Bytes  []byte `json:"bytes"`
}

// Encode returns the log as a text file. Each envelope must be text.
func (l *Log) Encode(h Header) ([]byte, error) {
	h.Log = l.Identity
	rows := []any{h}
	for _, r := range l.Rows {
		rows = append(rows, line{Record: &recordLine{r.Seq, r.Type, r.Peer, r.Call, hex.EncodeToString(r.Leaf[:]), string(r.Bytes)}})
	}
	for _, r := range l.Heads {
		rows = append(rows, line{Root: &rootLine{r.Size, hex.EncodeToString(r.Hash[:])}})
	}
	for _, t := range l.Full {
		rows = append(rows, line{Tile: &tileLine{t.Level, t.Index, t.Hashes}})
	}
	digests, _ := l.Digests(context.Background(), [32]byte{}, len(l.Kept))
	for _, d := range digests {
		rows = append(rows, line{Evidence: &evidenceLine{hex.EncodeToString(d[:]), l.Kept[d]}})
	}
	var out bytes.Buffer
	for _, r := range rows {
		b, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		out.Write(append(b, '\n'))
	}
	return out.Bytes(), nil
}

// Decode reads what Encode wrote.
func Decode(b []byte) (h Header, l *Log, err error) {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	if err := json.Unmarshal(first, &h, json.RejectUnknownMembers(true)); err != nil {
		return h, nil, fmt.Errorf("line 1: %w", err)
	}
	l = &Log{Identity: h.Log, Kept: map[[32]byte][]byte{}}
	n := 1
	for b := range bytes.Lines(rest) {
		n++
		var row line
		if err := json.Unmarshal(b, &row, json.RejectUnknownMembers(true)); err != nil {
			return h, nil, fmt.Errorf("line %d: %w", n, err)
		}
		if err := l.add(row); err != nil {
			return h, nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return h, l, nil
}

func (l *Log) add(row line) (err error) {
	switch {
	case row.Record != nil:
		r := replay.Record{Seq: row.Record.Seq, Type: row.Record.Type, Peer: row.Record.Peer, Call: row.Record.Call,
			Bytes: []byte(row.Record.Envelope)}
		r.Leaf, err = hash(row.Record.Leaf)
		l.Rows = append(l.Rows, r)
	case row.Root != nil:
		r := replay.Root{Size: row.Root.Size}
		r.Hash, err = hash(row.Root.Hash)
		l.Heads = append(l.Heads, r)
	case row.Tile != nil:
		l.Full = append(l.Full, replay.Tile{Level: row.Tile.Level, Index: row.Tile.Index, Hashes: row.Tile.Hashes})
	case row.Evidence != nil:
		var d [32]byte
		d, err = hash(row.Evidence.Digest)
		l.Kept[d] = row.Evidence.Bytes
	default:
		err = errors.New("none of record, root, tile and evidence")
	}
	return err
}

func hash(s string) (h [32]byte, err error) {
	if n, err := hex.Decode(h[:], []byte(s)[:min(len(s), 64)]); err != nil || n != len(h) || len(s) != 64 {
		return h, fmt.Errorf("%q is no hash", s)
	}
	return h, nil
}
