package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	tlogproof "github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/tlog"

	"waybill/events/checkpoint"
)

// Kinds of proofs.
const (
	inclusion   = "inclusion"   // of an event in a log
	consistency = "consistency" // of a log with what it was
)

// proof is what a proof file says, and by which key.
type proof struct {
	Kind       string
	Log        string
	Seq        int64 // of the event, for inclusion
	Old        int64 // the older size, for consistency
	Size       int64 // of the checkpoint
	Root       [32]byte
	Event      []byte // for inclusion
	Hashes     []tlog.Hash
	Checkpoint []byte
	Key        string
}

// text is the proof in its public format.
func (p proof) text() []byte {
	if p.Kind == inclusion {
		t := tlogproof.TLogProof{Index: uint64(p.Seq - 1), Checkpoint: p.Checkpoint, ExtraData: p.Event}
		for _, h := range p.Hashes {
			t.Hashes = append(t.Hashes, h)
		}
		return t.Marshal()
	}
	b := fmt.Appendf(nil, "old %d\n", p.Old)
	for _, h := range p.Hashes {
		b = append(base64.StdEncoding.AppendEncode(b, h[:]), '\n')
	}
	return append(append(b, '\n'), p.Checkpoint...)
}

// errNoProof says what a proof file has to look like.
var errNoProof = errors.New("no proof: want a c2sp.org/tlog-proof@v1 with the event as its extra data, or a line \"old SIZE\", hashes, a blank line and a checkpoint")

// parseProof reads what text wrote; nothing in it is checked yet but its form.
// The library's own reader takes no event of more than 48 KiB.
func parseProof(b []byte) (p proof, err error) {
	front, note, found := bytes.Cut(b, []byte("\n\n"))
	lines := strings.Split(string(front), "\n")
	switch {
	case found && len(lines) >= 3 && lines[0] == "c2sp.org/tlog-proof@v1":
		p.Kind = inclusion
		extra, hasExtra := strings.CutPrefix(lines[1], "extra ")
		index, hasIndex := strings.CutPrefix(lines[2], "index ")
		p.Event, err = base64.StdEncoding.DecodeString(extra)
		if !hasExtra || !hasIndex || err != nil {
			return proof{}, errNoProof
		}
		p.Seq, err = strconv.ParseInt(index, 10, 64)
		p.Seq++
		lines = lines[3:]
	case found && strings.HasPrefix(lines[0], "old "):
		p.Kind = consistency
		p.Old, err = strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
		lines = lines[1:]
	default:
		return proof{}, errNoProof
	}
	if err != nil || p.readHashes(lines) != nil {
		return proof{}, errNoProof
	}
	p.Checkpoint = note
	if !bytes.Equal(p.text(), b) { // in more than one way to write it something could hide
		return proof{}, errNoProof
	}
	return p, nil
}

func (p *proof) readHashes(lines []string) error {
	for _, line := range lines {
		b, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(b) != tlog.HashSize {
			return errNoProof
		}
		p.Hashes = append(p.Hashes, tlog.Hash(b))
	}
	return nil
}

// includes reports whether the event is in the tree of the head.
func (p proof) includes() bool {
	return p.Seq >= 1 && p.Seq <= p.Size &&
		tlog.CheckRecord(p.Hashes, p.Size, p.Root, p.Seq-1, tlog.RecordHash(p.Event)) == nil
}

// continues reports whether the tree of the head continues an older one. Every
// tree continues the empty one.
func (p proof) continues(from checkpoint.Head) bool {
	if from.Log != p.Log || from.Size != p.Old || p.Old > p.Size {
		return false
	}
	if p.Old == 0 {
		return len(p.Hashes) == 0 && from.Root == sha256.Sum256(nil)
	}
	return tlog.CheckTree(p.Hashes, p.Size, p.Root, p.Old, from.Root) == nil
}

func (p proof) says() string {
	if p.Kind == inclusion {
		return fmt.Sprintf("event %d is in log %s, under its checkpoint of %d events", p.Seq, p.Log, p.Size)
	}
	return fmt.Sprintf("log %s with %d events continues what it was with %d", p.Log, p.Size, p.Old)
}

type proofDoc struct {
	Kind    string `json:"kind"`
	Log     string `json:"log"`
	Seq     int64  `json:"seq,omitzero"`
	OldSize *int64 `json:"old_size,omitzero"`
	Size    int64  `json:"size"`
	Root    string `json:"root"`
	Key     string `json:"key"`             // that the checkpoint is signed with
	Event   string `json:"event,omitzero"`  // its exact bytes
	Proof   string `json:"proof,omitempty"` // the text of the file
	File    string `json:"file,omitempty"`  // where it was written
}

func (p proof) doc(file string) proofDoc {
	d := proofDoc{Kind: p.Kind, Log: p.Log, Seq: p.Seq, Size: p.Size, Root: hex.EncodeToString(p.Root[:]), Key: p.Key, Event: string(p.Event),
		Proof: string(p.text()), File: file}
	if p.Kind == consistency {
		d.OldSize = &p.Old
	}
	return d
}
