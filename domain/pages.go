package domain

import (
	"crypto/sha256"

	"waybill/domain/catalog"
	"waybill/domain/wire"
)

// mostPages bounds the results that Pages keeps, in bytes.
const mostPages = 16 << 20

// Pages spares whoever folds a log the judging of lists that came before, word for
// word: peers are asked for theirs again and again, and answer mostly the same. The
// zero value is ready. It is for one goroutine.
type Pages struct {
	kept map[[32]byte]*catalog.Page // by the digest of the result
	size int                        // of the results, which the pages are cut from
}

// Judge puts what the state makes of an answer to tools/list beside it, as the
// connection that read it first did. All that a page is made from is the result of the
// answer, and the rules that it is read by.
func (p *Pages) Judge(s *State, e *Event) {
	d, ok := e.Data.(CatalogListed)
	if !ok {
		return
	}
	m, err := wire.ParseMessage(e.Evidence)
	if err != nil || !m.Is2() || m.Result == nil || m.Error != nil {
		return
	}
	key := sha256.Sum256(m.Result)
	known := p.kept[key]
	if d.Page = s.page(*e, d, known); d.Page == nil {
		return
	}
	if known == nil {
		p.keep(key, d.Page, len(m.Result))
	}
	e.Data = d
}

// page returns what is made of an answer to tools/list; nil where it is no page, or
// nobody asked for it. known is what was made of the same result before, or nil: it is
// returned where the same rules hold.
func (s *State) page(e Event, d CatalogListed, known *catalog.Page) *catalog.Page {
	l := s.reading(d.At, d.RequestID)
	switch {
	case l == nil:
		return nil
	case l.peer.reads(known):
		return known
	}
	page, problem, _ := l.peer.readPage(nil, e.Evidence)
	if problem != "" {
		return nil
	}
	return &page
}

func (p *Pages) keep(key [32]byte, page *catalog.Page, size int) {
	if p.size += size; p.kept == nil || p.size > mostPages {
		p.kept, p.size = map[[32]byte]*catalog.Page{}, size
	}
	p.kept[key] = page
}
