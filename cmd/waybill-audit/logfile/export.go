package logfile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"waybill/events"
	"waybill/replay"
	"waybill/store"
)

// exportMark begins every export: its first line is a header.
const exportMark = `{"waybill_export":`

const exportVersion = 1

type exportHeader struct {
	Version int    `json:"waybill_export"`
	Log     string `json:"log"`
	Key     string `json:"key"`
}

// exportLine is a line that is no event: it stands before the event that cites the
// evidence, or behind the last one that the checkpoint covers.
type exportLine struct {
	Evidence   *exportEvidence   `json:"evidence,omitzero"`
	Checkpoint *exportCheckpoint `json:"checkpoint,omitzero"`
}

type exportEvidence struct {
	Digest string `json:"digest"` // SHA-256, hex
	Bytes  []byte `json:"bytes"`  // base64
}

type exportCheckpoint struct {
	Size int64  `json:"size"`
	Note string `json:"note"`
}

// ErrBadExport says that a file begins like an export and is none.
var ErrBadExport = errors.New("not an export as waybill-audit export --whole writes it")

// maxExportLine bounds a line: evidence is the longest, a list of a peer in base64.
const maxExportLine = 256 << 20

// Export writes all that an auditor needs of a log as lines of text: its identity, every
// event as it is hashed, the evidence, and the checkpoints. Open takes the file in the
// place of the log. It verifies nothing.
func (l Log) Export(ctx context.Context, to io.Writer) error {
	w := bufio.NewWriterSize(to, 256<<10)
	x := exporter{log: l, w: w, cited: map[[32]byte]bool{}}
	err := x.line(exportHeader{exportVersion, l.ID(), l.PublicKey()})
	for after := int64(0); err == nil; {
		var records []store.Record
		if records, err = l.Read(ctx, after, 512); err != nil || len(records) == 0 {
			break
		}
		for _, r := range records {
			if err = x.event(ctx, r); err != nil {
				break
			}
			after = r.Seq
		}
	}
	return errors.Join(err, w.Flush())
}

type exporter struct {
	log   Log
	w     *bufio.Writer
	cited map[[32]byte]bool
	ahead []replay.Checkpoint // not yet written
	last  int64               // size of the last one that was read
	ended bool
}

func (x *exporter) line(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = x.w.Write(append(b, '\n'))
	return err
}

func (x *exporter) event(ctx context.Context, r store.Record) error {
	if bytes.IndexByte(r.Bytes, '\n') >= 0 {
		return &replay.AlteredError{Seq: r.Seq, What: "it is not one line, as every event is"}
	}
	if _, e, err := events.Open(r.Bytes); err == nil {
		if ref, ok := events.EvidenceOf(e.Data); ok {
			d, err := events.DigestOf(ref)
			if err != nil {
				return &replay.AlteredError{Seq: r.Seq, What: err.Error()}
			}
			if err := x.evidence(ctx, d); err != nil {
				return fmt.Errorf("evidence of event %d: %w", r.Seq, err)
			}
		}
	}
	if _, err := x.w.Write(append(r.Bytes, '\n')); err != nil {
		return err
	}
	return x.checkpoints(ctx, r.Seq)
}

func (x *exporter) evidence(ctx context.Context, d [32]byte) error {
	if x.cited[d] {
		return nil
	}
	x.cited[d] = true
	b, err := x.log.Evidence(ctx, d)
	if errors.Is(err, replay.ErrNoEvidence) {
		return nil // what reads the export will miss it
	}
	if err != nil {
		return err
	}
	return x.line(exportLine{Evidence: &exportEvidence{hex.EncodeToString(d[:]), b}})
}

func (x *exporter) checkpoints(ctx context.Context, seq int64) error {
	for {
		if len(x.ahead) == 0 && !x.ended {
			list, err := x.log.Checkpoints(ctx, x.last, 256)
			if err != nil {
				return err
			}
			if x.ahead = list; len(list) == 0 {
				x.ended = true
			} else {
				x.last = list[len(list)-1].Size
			}
		}
		if len(x.ahead) == 0 || x.ahead[0].Size > seq {
			return nil
		}
		c := x.ahead[0]
		x.ahead = x.ahead[1:]
		if err := x.line(exportLine{Checkpoint: &exportCheckpoint{c.Size, string(c.Note)}}); err != nil {
			return err
		}
	}
}

// isExport reports whether a file begins like an export.
func isExport(path string) bool { return begins(path, exportMark) }

// isEvents reports whether a file begins like the events of a log, and nothing else.
func isEvents(path string) bool { return begins(path, `{"specversion":`) }

func begins(path, mark string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(mark))
	_, err = io.ReadFull(f, b)
	return err == nil && string(b) == mark
}

// openExport makes a log of an export, in a folder of its own that goes with it. Its
// tree is computed from the events: what the export holds of it are the signed
// checkpoints.
func openExport(path string) (Log, error) {
	dir, err := os.MkdirTemp("", "waybill-audit-")
	if err != nil {
		return Log{}, err
	}
	l := Log{dir: dir}
	file := filepath.Join(dir, "log.db")
	if err := restore(path, file); err != nil {
		return Log{}, errors.Join(err, l.remove())
	}
	if l.Reader, err = store.OpenReader(file); err != nil {
		return Log{}, errors.Join(err, l.remove())
	}
	return l, nil
}

func restore(path, file string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 256<<10)
	first, err := readLine(r)
	if err != nil {
		return fmt.Errorf("read export %s: %w", path, err)
	}
	var h exportHeader
	if json.Unmarshal(first, &h) != nil || h.Log == "" || h.Key == "" {
		return fmt.Errorf("%s: %w", path, ErrBadExport)
	}
	if h.Version != exportVersion {
		return fmt.Errorf("%s: an export of version %d, and this program knows %d: %w", path, h.Version, exportVersion, ErrBadExport)
	}
	if err := store.Create(file, h.Log, h.Key); err != nil {
		return err
	}
	log, err := store.Open(file)
	if err != nil {
		return err
	}
	x := restorer{log: log}
	err = x.read(r)
	return errors.Join(err, log.Close())
}

// readLine returns a line without its end; io.EOF behind the last.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxExportLine:
			return nil, ErrBadExport
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, fmt.Errorf("its last line has no end, so that the file was cut: %w", ErrBadExport)
		case err != nil:
			return nil, err
		default:
			return line[:len(line)-1], nil
		}
	}
}

type restorer struct {
	log     *store.Log
	entries []store.Entry
	waiting []store.Evidence // for the next event
	n       int              // lines
}

func (x *restorer) read(r *bufio.Reader) error {
	for x.n = 2; ; x.n++ {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) {
			return x.flush()
		}
		if err == nil {
			err = x.take(line)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", x.n, err)
		}
	}
}

func (x *restorer) take(line []byte) error {
	if !bytes.HasPrefix(line, []byte(`{"evidence":`)) && !bytes.HasPrefix(line, []byte(`{"checkpoint":`)) {
		return x.event(line)
	}
	var l exportLine
	if err := json.Unmarshal(line, &l); err != nil {
		return ErrBadExport
	}
	if l.Checkpoint != nil {
		if err := x.flush(); err != nil {
			return err
		}
		return x.log.Checkpoint(context.Background(), l.Checkpoint.Size, []byte(l.Checkpoint.Note))
	}
	d, err := hex.DecodeString(l.Evidence.Digest)
	if err != nil || len(d) != 32 {
		return ErrBadExport
	}
	x.waiting = append(x.waiting, store.Evidence{Digest: [32]byte(d), Bytes: l.Evidence.Bytes})
	return nil
}

func (x *restorer) event(line []byte) error {
	_, e, err := events.Open(line)
	if err != nil {
		return &replay.UndecidableError{Seq: x.log.Head().Size + int64(len(x.entries)) + 1, What: err.Error()}
	}
	x.entries = append(x.entries, store.Entry{Type: e.Data.Kind(), Peer: e.Peer(), Call: e.Call(), Bytes: line, Evidence: x.waiting})
	x.waiting = nil
	if len(x.entries) < 512 {
		return nil
	}
	return x.flush()
}

func (x *restorer) flush() error {
	if len(x.entries) == 0 {
		return nil
	}
	_, err := x.log.Append(context.Background(), x.log.Head().Size, x.entries)
	x.entries = nil
	return err
}
