package whatif

import (
	"context"
	"errors"
	"fmt"

	"waybill/domain"
	"waybill/replay"
)

// Row is one subject about which an observation would have led to something else. Its
// JSON form is a contract.
type Row struct {
	Seq      int64  `json:"seq"` // of the observation
	Subject  string `json:"subject"`
	Recorded string `json:"recorded"` // "" for nothing
	Instead  string `json:"instead"`  // "" for nothing
	Call     string `json:"call,omitempty"`
}

// Found is what would have come out otherwise.
type Found struct {
	Log       string `json:"log"`
	Size      int64  `json:"size"` // events that were decided again
	Otherwise int64  `json:"otherwise"`
	Calls     int64  `json:"calls"` // of them, different calls
	Unheard   int64  `json:"unheard"`
}

// Ask decides a log again with settings changed in every configuration it holds, and
// calls row with each difference, in order. Unheard counts what the log says of
// questions that would not have been asked. Errors are those of replay.Scan, and row's.
func Ask(ctx context.Context, src replay.Source, settings []Setting, row func(Row) error) (Found, error) {
	w := &worlds{src: src, settings: settings, row: row, recorded: domain.NewState(), other: domain.NewState(), calls: map[string]bool{}, peers: map[string]bool{},
		links: newLinks(), found: Found{Log: src.ID()}}
	err := replay.Scan(ctx, src, w.event)
	if err == nil {
		err = w.compare()
	}
	if err == nil {
		err = w.strangers()
	}
	w.found.Calls = int64(len(w.calls))
	return w.found, err
}

// worlds are the log as it is, and as it would have been.
type worlds struct {
	src      replay.Source
	settings []Setting
	row      func(Row) error
	recorded *domain.State
	other    *domain.State
	links    *links
	calls    map[string]bool
	peers    map[string]bool // that some configuration of the log has
	found    Found

	seq     int64 // of the observation whose decisions are gathered
	was, is []domain.Event
}

func (w *worlds) event(e domain.Event, _ replay.Record) error {
	w.found.Size++
	if e.IsDecision() {
		w.recorded.Apply(e)
		w.was = append(w.was, e)
		return nil
	}
	if err := w.compare(); err != nil {
		return err
	}
	w.recorded.Apply(e)
	w.seq = e.Seq
	other, heard, err := w.translate(e)
	if err != nil {
		return err
	}
	if !heard {
		if w.links.mattered(e.Data) {
			w.found.Unheard++
		}
		return nil
	}
	w.is = w.other.Step(other)[1:]
	return nil
}

// translate says what the other world hears; false where it would hear nothing.
func (w *worlds) translate(e domain.Event) (domain.Event, bool, error) {
	if _, ok := e.Data.(domain.ConfigLoaded); ok {
		return w.configured(e)
	}
	return w.links.translate(e)
}

// configured changes the configuration.
func (w *worlds) configured(e domain.Event) (domain.Event, bool, error) {
	c, err := domain.DecodeConfig(e.Evidence)
	if err != nil {
		return e, true, nil //nolint:nilerr // it could not be read then, and is not in force
	}
	for _, p := range c.Peers {
		w.peers[p.Name] = true
	}
	for _, s := range w.settings {
		if err := s.apply(&c); err != nil {
			return e, false, fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	b, err := domain.EncodeConfig(c)
	if err != nil {
		return e, false, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	e.Data, e.Evidence = domain.ConfigLoaded{Config: domain.RefTo(b), Peers: len(c.Peers)}, b
	return e, true, nil
}

// ErrNoPeer says that a setting is for a peer that no configuration of the log has.
var ErrNoPeer = errors.New("no configuration of the log has this peer")

func (w *worlds) strangers() error {
	for _, s := range w.settings {
		if s.Peer != "" && !w.peers[s.Peer] {
			return fmt.Errorf("%s.%s: %w", s.Key, s.Peer, ErrNoPeer)
		}
	}
	return nil
}

// compare holds the decisions of both worlds against each other, links what each asked
// for, and ends calls of the other world whose answer nobody will tell.
func (w *worlds) compare() error {
	was, is := w.was, w.is
	w.was, w.is = nil, nil
	w.links.join(was, is)
	for _, d := range differences(was, is) {
		w.found.Otherwise++
		if d.Call != "" {
			w.calls[d.Call] = true
		}
		d.Seq = w.seq
		if err := w.row(d); err != nil {
			return err
		}
	}
	w.release(is)
	return nil
}

// release ends the calls that were sent in the other world alone: they would fill it.
func (w *worlds) release(is []domain.Event) {
	for _, e := range is {
		call := e.Call()
		switch e.Data.(type) {
		case domain.CallRouted, domain.CallResent, domain.CallHeld:
		default:
			continue
		}
		if call == "" || w.recorded.UnderWay(call) || !w.other.UnderWay(call) {
			continue
		}
		c := callID(call)
		w.other.Step(domain.Event{Time: e.Time, Mono: e.Mono, Data: domain.CallCancelled{CallID: c, By: "host"}})
	}
}
