package replaytest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"

	"golang.org/x/mod/sumdb/tlog"

	"waybill/domain"
	"waybill/events"
	"waybill/replay"
	"waybill/store"
)

// ID is the id of every log that is made here.
const ID = "local-0a1b2c3d"

// A Log is a log in memory, and a [replay.Source]. Its rows can be changed at
// will; Records must stay sorted by seq, as a database would give them.
type Log struct {
	Identity string
	Rows     []replay.Record
	Heads    []replay.Root
	Full     []replay.Tile
	Kept     map[[32]byte][]byte
	Notes    []replay.Checkpoint // none unless Sign was called; sorted by size
}

// Make seals events, numbers given, into a log: whole, dense and with the right
// tree, whatever the events say.
func Make(list []domain.Event) *Log {
	var entries []store.Entry
	var sizes []int64
	for i, e := range list {
		b, err := events.Seal(ID, e)
		if err != nil {
			panic(err)
		}
		entry := store.Entry{Type: e.Data.Kind(), Peer: e.Peer(), Call: e.Call(), Bytes: b}
		if ref, ok := events.EvidenceOf(e.Data); ok {
			d, err := events.DigestOf(ref)
			if err != nil {
				panic(err)
			}
			entry.Evidence = []store.Evidence{{Digest: d, Bytes: e.Evidence}}
		}
		entries = append(entries, entry)
		if i+1 == len(list) || endsTransaction(list[i+1]) {
			sizes = append(sizes, int64(i+1))
		}
	}
	return Build(entries, sizes)
}

// endsTransaction reports whether a transaction ends before this event: one
// holds an observation with its decisions, some hold two.
func endsTransaction(next domain.Event) bool { return !next.IsDecision() && next.Mono%3_000_000 != 0 }

// Build makes a log of entries, with a transaction up to each of the sizes.
func Build(entries []store.Entry, sizes []int64) *Log {
	l := &Log{Identity: ID, Kept: map[[32]byte][]byte{}}
	hashes := &hashStore{}
	for i, e := range entries {
		l.Rows = append(l.Rows, replay.Record{Seq: int64(i + 1), Type: e.Type, Peer: e.Peer, Call: e.Call, Bytes: e.Bytes})
		for _, ev := range e.Evidence {
			l.Kept[ev.Digest] = ev.Bytes
		}
		l.Rows[i].Leaf = hashes.add(int64(i), e.Bytes)
	}
	for _, size := range sizes {
		l.Heads = append(l.Heads, replay.Root{Size: size, Hash: hashes.root(size)})
	}
	for level := 0; len(entries)>>(8*(level+1)) > 0; level++ {
		for n := range int64(len(entries) >> (8 * (level + 1))) {
			l.Full = append(l.Full, hashes.tile(level, n))
		}
	}
	return l
}

// Entries returns what would have to be appended to a store to get this log.
// It is for logs that are well made.
func (l *Log) Entries() []store.Entry {
	out := make([]store.Entry, len(l.Rows))
	for i, r := range l.Rows {
		out[i] = store.Entry{Type: r.Type, Peer: r.Peer, Call: r.Call, Bytes: r.Bytes}
		_, e, err := events.Open(r.Bytes)
		if err != nil {
			continue // one that a test has made up
		}
		if ref, ok := events.EvidenceOf(e.Data); ok {
			d, _ := events.DigestOf(ref)
			out[i].Evidence = []store.Evidence{{Digest: d, Bytes: l.Kept[d]}}
		}
	}
	return out
}

// Sizes returns the sizes at which transactions ended.
func (l *Log) Sizes() []int64 {
	var out []int64
	for _, h := range l.Heads {
		out = append(out, h.Size)
	}
	return out
}

// Events opens every event of a well-made log, with its evidence.
func (l *Log) Events() []domain.Event {
	out := make([]domain.Event, len(l.Rows))
	for i, r := range l.Rows {
		_, e, err := events.Open(r.Bytes)
		if err != nil {
			panic(err)
		}
		if ref, ok := events.EvidenceOf(e.Data); ok {
			d, _ := events.DigestOf(ref)
			e.Evidence = l.Kept[d]
		}
		out[i] = e
	}
	return out
}

// Forge makes another log of the events that edit returns. They are numbered
// again, and decisions follow their observation's number: the forger is
// careful. An event with Seq 0 is a new one.
func (l *Log) Forge(edit func([]domain.Event) []domain.Event) *Log {
	list := edit(l.Events())
	moved := map[int64]int64{}
	for i := range list {
		if list[i].Seq != 0 {
			moved[list[i].Seq] = int64(i + 1)
		}
		list[i].Seq = int64(i + 1)
	}
	for i := range list {
		if now, ok := moved[list[i].Cause]; ok {
			list[i].Cause = now
		}
	}
	return Make(list)
}

// Rewrite makes another log in which the envelope of one event is different
// bytes.
func (l *Log) Rewrite(seq int64, b []byte) *Log {
	entries := l.Entries()
	entries[seq-1].Bytes = b
	return Build(entries, l.Sizes())
}

// Cut returns the log as it was after the transaction that holds an event.
func (l *Log) Cut(seq int64) *Log {
	i := slices.IndexFunc(l.Heads, func(h replay.Root) bool { return h.Size >= seq })
	return Build(l.Entries()[:l.Heads[i].Size], l.Sizes()[:i+1])
}

// Clone returns a copy that shares nothing.
func (l *Log) Clone() *Log {
	c := *l
	c.Rows, c.Heads, c.Full = slices.Clone(l.Rows), slices.Clone(l.Heads), slices.Clone(l.Full)
	for i := range c.Rows {
		c.Rows[i].Bytes = bytes.Clone(c.Rows[i].Bytes)
	}
	for i := range c.Full {
		c.Full[i].Hashes = bytes.Clone(c.Full[i].Hashes)
	}
	c.Notes = slices.Clone(l.Notes)
	for i := range c.Notes {
		c.Notes[i].Note = bytes.Clone(c.Notes[i].Note)
	}
	c.Kept = maps.Clone(l.Kept)
	for d, b := range c.Kept {
		c.Kept[d] = bytes.Clone(b)
	}
	return &c
}

// ID implements [replay.Source].
func (l *Log) ID() string { return l.Identity }

// Records implements [replay.Source].
func (l *Log) Records(_ context.Context, after int64, max int) ([]replay.Record, error) {
	i := sort.Search(len(l.Rows), func(i int) bool { return l.Rows[i].Seq > after })
	return atMost(l.Rows[i:], max), nil
}

// Roots implements [replay.Source].
func (l *Log) Roots(_ context.Context, after int64, max int) ([]replay.Root, error) {
	i := sort.Search(len(l.Heads), func(i int) bool { return l.Heads[i].Size > after })
	return atMost(l.Heads[i:], max), nil
}

// Tiles implements [replay.Source].
func (l *Log) Tiles(_ context.Context, level int, after int64, max int) (out []replay.Tile, err error) {
	for _, t := range l.Full {
		if t.Level == level && t.Index > after {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b replay.Tile) int { return int(a.Index - b.Index) })
	return atMost(out, max), nil
}

// Evidence implements [replay.Source].
func (l *Log) Evidence(_ context.Context, digest [32]byte) ([]byte, error) {
	b, ok := l.Kept[digest]
	if !ok {
		return nil, fmt.Errorf("%x: %w", digest, replay.ErrNoEvidence)
	}
	return b, nil
}

// Digests implements [replay.Source].
func (l *Log) Digests(_ context.Context, after [32]byte, max int) ([][32]byte, error) {
	all := slices.SortedFunc(maps.Keys(l.Kept), func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	i := sort.Search(len(all), func(i int) bool { return bytes.Compare(all[i][:], after[:]) > 0 })
	return atMost(all[i:], max), nil
}

func atMost[T any](list []T, max int) []T { return list[:min(max, len(list))] }

// hashStore keeps every hash of a tree.
type hashStore struct{ hashes []tlog.Hash }

// ReadHashes implements tlog.HashReader.
func (s *hashStore) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		out[i] = s.hashes[x]
	}
	return out, nil
}

func (s *hashStore) add(n int64, b []byte) tlog.Hash {
	hs, err := tlog.StoredHashes(n, b, s)
	if err != nil {
		panic(err)
	}
	s.hashes = append(s.hashes, hs...)
	return hs[0]
}

func (s *hashStore) root(size int64) tlog.Hash {
	h, err := tlog.TreeHash(size, s)
	if err != nil {
		panic(err)
	}
	return h
}

func (s *hashStore) tile(level int, n int64) replay.Tile {
	b, err := tlog.ReadTileData(tlog.Tile{H: 8, L: level, N: n, W: 256}, s)
	if err != nil {
		panic(err)
	}
	return replay.Tile{Level: level, Index: n, Hashes: b}
}
