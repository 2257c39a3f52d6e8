package replay

import "context"

// Piece is evidence as a source has it: Row is its place among all.
type Piece struct {
	Row    int64
	Digest [32]byte
	Bytes  []byte
}

// Runner is a Source that can also be asked for its evidence in the order in which it
// was kept, which is nearly that in which the events cite it.
type Runner interface {
	// EvidenceRun returns at most max pieces after a row, fewer where they are large,
	// and none where there are no more.
	EvidenceRun(ctx context.Context, after int64, max int) ([]Piece, error)
}

// aheadRun is how many pieces of evidence are read at once.
const aheadRun = 256

// ahead reads evidence in runs, for who goes through a log from its beginning: to ask
// for each piece alone takes ten times as long. A piece that is not where it is looked
// for is asked for alone, so that nothing depends on the order.
type ahead struct {
	Source
	runner Runner
	run    map[[32]byte][]byte // read, and not yet used
	last   int64               // row of the last one that was read
	missed int                 // pieces that were not in the run
	ended  bool
}

// readAhead wraps a source for one pass over it, by one goroutine.
func readAhead(src Source) Source {
	if r, ok := src.(Runner); ok {
		return &ahead{Source: src, runner: r}
	}
	return src
}

// Evidence implements Source. The bytes are as stored; join hashes them.
func (a *ahead) Evidence(ctx context.Context, digest [32]byte) ([]byte, error) {
	if b, ok := a.take(digest); ok {
		return b, nil
	}
	if a.missed++; !a.ended && (len(a.run) == 0 || a.missed > aheadRun/16) {
		if err := a.next(ctx); err != nil {
			return nil, err
		}
		if b, ok := a.take(digest); ok {
			return b, nil
		}
	}
	return a.Source.Evidence(ctx, digest)
}

func (a *ahead) take(digest [32]byte) ([]byte, bool) {
	b, ok := a.run[digest]
	delete(a.run, digest)
	return b, ok
}

// next reads the next run in the place of what is left of the last.
func (a *ahead) next(ctx context.Context) error {
	pieces, err := a.runner.EvidenceRun(ctx, a.last, aheadRun)
	if err != nil {
		return err
	}
	a.run, a.missed, a.ended = make(map[[32]byte][]byte, len(pieces)), 0, len(pieces) == 0
	for _, p := range pieces {
		a.run[p.Digest], a.last = p.Bytes, p.Row
	}
	return nil
}
