package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// rows is a source of evidence that counts what it is asked.
type rows struct {
	Source
	pieces []Piece
	alone  int // pieces asked for alone
	runs   int
}

func (r *rows) Evidence(_ context.Context, digest [32]byte) ([]byte, error) {
	r.alone++
	for _, p := range r.pieces {
		if p.Digest == digest {
			return p.Bytes, nil
		}
	}
	return nil, ErrNoEvidence
}

func (r *rows) EvidenceRun(_ context.Context, after int64, max int) ([]Piece, error) {
	r.runs++
	left := r.pieces[min(int(after), len(r.pieces)):]
	return left[:min(max, len(left))], nil
}

func newRows(n int) *rows {
	r := &rows{}
	for i := range n {
		b := fmt.Appendf(nil, "evidence %d", i)
		r.pieces = append(r.pieces, Piece{Row: int64(i + 1), Digest: sha256.Sum256(b), Bytes: b})
	}
	return r
}

func TestEvidenceInOrderIsReadInRunsAlone(t *testing.T) {
	r := newRows(3*aheadRun + 10)
	a := readAhead(r)
	for _, p := range r.pieces {
		if b, err := a.Evidence(t.Context(), p.Digest); err != nil || !bytes.Equal(b, p.Bytes) {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if r.alone != 0 || r.runs != 4 {
		t.Errorf("%d asked for alone, %d runs", r.alone, r.runs)
	}
}

// In any order, again, and where a piece is missing, the answer is the source's own.
func TestEvidenceReadAheadIsThatOfTheSourceInAnyOrder(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRows(rnd.IntN(4 * aheadRun))
		a, asked := readAhead(r), 0
		next := 0
		for range 500 {
			digest, want := sha256.Sum256(fmt.Append(nil, rnd.Int())), []byte(nil)
			switch k := rnd.IntN(10); {
			case k < 7 && next < len(r.pieces):
				digest, want = r.pieces[next].Digest, r.pieces[next].Bytes
				next++
			case k < 9 && len(r.pieces) > 0:
				p := r.pieces[rnd.IntN(len(r.pieces))]
				digest, want = p.Digest, p.Bytes
			}
			asked++
			b, err := a.Evidence(t.Context(), digest)
			if !bytes.Equal(b, want) || (want == nil) != errors.Is(err, ErrNoEvidence) {
				t.Fatalf("seed %d: %q, %v, want %q", seed, b, err, want)
			}
		}
		if most := len(r.pieces)/aheadRun + 2 + asked/(aheadRun/16); r.runs > most {
			t.Errorf("seed %d: %d runs for %d pieces", seed, r.runs, len(r.pieces))
		}
	}
}

// A source that knows no order is asked as it is.
func TestSourceWithoutRunsIsAskedForEachPiece(t *testing.T) {
	r := newRows(3)
	plain := struct{ Source }{r}
	if a := readAhead(plain); a != Source(plain) {
		t.Errorf("%T", a)
	}
}
