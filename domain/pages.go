package domain

import (
	"bytes"
	"strconv"

	"waybill/domain/catalog"
	"waybill/domain/wire"
)

// mostPages bounds the results that Pages keeps, in bytes.
const mostPages = 16 << 20

// Pages spares whoever folds a log the judging of lists that came before, word for
// word: peers are asked for theirs again and again, and answer mostly the same. The
// zero value is ready. It is for one goroutine.
type Pages struct {
	kept map[string]*catalog.Page // by the result
	size int                      // of the results
}

// Judge puts what the state makes of an answer to tools/list beside it, as the
// connection that read it first did. All that a page is made from is the result of the
// answer, and the rules that it is read by.
func (p *Pages) Judge(s *State, e *Event) {
	d, ok := e.Data.(CatalogListed)
	if !ok {
		return
	}
	result, known := p.known(e.Evidence)
	if known == nil {
		m, err := wire.ParseMessage(e.Evidence)
		if err != nil || !m.Is2() || m.Result == nil || m.Error != nil {
			return
		}
		result = m.Result
		known = p.kept[string(result)]
	}
	if d.Page = s.page(*e, d, known); d.Page == nil {
		return
	}
	if known == nil {
		p.keep(string(result), d.Page)
	}
	e.Data = d
}

// known finds the page of an answer whose result came before, where the answer is laid
// out as most are: what stands around the result is then known at sight to be whole.
func (p *Pages) known(answer []byte) (result []byte, page *catalog.Page) {
	rest, ok := bytes.CutPrefix(answer, []byte(`{"jsonrpc":"2.0","id":`))
	if !ok {
		return nil, nil
	}
	id, result, ok := bytes.Cut(rest, []byte(`,"result":`))
	if _, err := strconv.ParseUint(string(id), 10, 63); !ok || err != nil || len(id) > 1 && id[0] == '0' {
		return nil, nil
	}
	result, ok = bytes.CutSuffix(result, []byte("}"))
	if !ok {
		return nil, nil
	}
	return result, p.kept[string(result)]
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

func (p *Pages) keep(result string, page *catalog.Page) {
	if p.size += len(result); p.kept == nil || p.size > mostPages {
		p.kept, p.size = map[string]*catalog.Page{}, len(result)
	}
	p.kept[result] = page
}
