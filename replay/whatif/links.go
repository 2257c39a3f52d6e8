package whatif

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// links say what in the other world stands for what in the log: incarnations, and
// requests with what they were sent to.
type links struct {
	lives    map[domain.At]domain.At
	requests map[int64]sent
	known    map[int64]bool // every request of the log

	// Requests of one world that no request of the other stands for yet, by what they
	// are about: the last of each.
	was map[string]sent
	is  map[string]sent
}

// sent is a request and the incarnation that it went to.
type sent struct {
	id int64
	at domain.At
}

func newLinks() *links {
	return &links{lives: map[domain.At]domain.At{}, requests: map[int64]sent{}, known: map[int64]bool{}, was: map[string]sent{}, is: map[string]sent{}}
}

// join links what the decisions that follow from one observation start and send.
func (l *links) join(was, is []domain.Event) {
	started := map[string]domain.At{}
	for _, e := range is {
		if at, ok := starts(e.Data); ok {
			started[at.Peer] = at
		}
	}
	for _, e := range was {
		if at, ok := starts(e.Data); ok {
			if other, ok := started[at.Peer]; ok {
				l.lives[at] = other
			}
		}
	}
	for _, e := range is {
		if about, x, ok := asks(e.Data); ok {
			l.is[about] = x
		}
	}
	for _, e := range was {
		if about, x, ok := asks(e.Data); ok {
			l.was[about] = x
			l.known[x.id] = true
		}
	}
	for about, x := range l.was {
		if other, ok := l.is[about]; ok {
			l.requests[x.id] = other
			delete(l.was, about)
			delete(l.is, about)
		}
	}
}

// starts returns the incarnation that a decision starts.
func starts(d domain.Data) (domain.At, bool) {
	switch x := d.(type) {
	case domain.PeerLaunched:
		return x.At, true
	case domain.PeerRestarted:
		return x.At, true
	}
	return domain.At{}, false
}

// asks returns what a request of a decision is about.
func asks(d domain.Data) (about string, x sent, ok bool) {
	switch d := d.(type) {
	case domain.ProbeIssued:
		return "probe " + d.Peer + " " + d.Method, sent{d.RequestID, d.At}, true
	case domain.ListRequested:
		return "list " + d.Peer + " " + d.Context + " " + strconv.Itoa(d.Page), sent{d.RequestID, d.At}, true
	case domain.SubscriptionRequested:
		return "listen " + d.Peer + " " + d.Context, sent{d.RequestID, d.At}, true
	case domain.HealthRequested:
		return "health " + d.Peer, sent{d.RequestID, d.At}, true
	case domain.CallRouted:
		return "call " + d.CallKey(), sent{d.RequestID, d.At}, true
	case domain.CallResent:
		return "call " + d.CallKey(), sent{d.RequestID, d.At}, true
	}
	return "", sent{}, false
}

// translate says what the other world hears of an observation; false where it did not
// ask, or has nobody whom it concerns.
func (l *links) translate(e domain.Event) (domain.Event, bool, error) {
	var ok bool
	switch d := e.Data.(type) {
	case domain.PeerSpawned:
		ok, e.Data = l.lived(&d.At), d
	case domain.SpawnFailed:
		ok, e.Data = l.lived(&d.At), d
	case domain.PeerExited:
		ok, e.Data = l.lived(&d.At), d
	case domain.HealthDue:
		ok, e.Data = l.lived(&d.At), d
	case domain.ListDue:
		ok, e.Data = l.lived(&d.At), d
	case domain.SubscriptionDue:
		ok, e.Data = l.lived(&d.At), d
	case domain.NoiseCounted:
		ok, e.Data = l.lived(&d.At), d
	case domain.ProbeAnswered:
		return l.probed(e, d)
	case domain.ListChanged:
		if ok = l.lived(&d.At); d.Subscription != 0 {
			ok = l.asked(&d.Subscription, &d.At)
		}
		e.Data = d
	default:
		return l.answered(e)
	}
	return e, ok, nil
}

// answered translates what is about one request.
func (l *links) answered(e domain.Event) (domain.Event, bool, error) {
	ok := true
	switch d := e.Data.(type) {
	case domain.ProbeFailed:
		ok, e.Data = l.asked(&d.RequestID, &d.At), d
	case domain.CatalogListed:
		ok, e.Data = l.asked(&d.RequestID, &d.At), d
	case domain.CallAnswered:
		ok, e.Data = l.asked(&d.RequestID, &d.At), d
	case domain.ExchangeFailed:
		ok, e.Data = l.asked(&d.RequestID, &d.At), d
	case domain.DeadlinePassed:
		ok, e.Data = l.asked(&d.RequestID, &d.At), d
	case domain.HealthAnswered:
		ok, e.Data = l.asked(&d.RequestID, &d.At), d
	case domain.SubscriptionAcknowledged:
		ok, e.Data = l.asked(&d.RequestID, &d.At), d
	case domain.SubscriptionEnded:
		ok, e.Data = l.asked(&d.RequestID, &d.At), d
	}
	return e, ok, nil
}

// mattered reports whether an observation was about something that was asked in the
// log, and not a peer's own invention.
func (l *links) mattered(data domain.Data) bool {
	switch d := data.(type) {
	case domain.ListChanged:
		return d.Subscription == 0 || l.known[d.Subscription]
	case domain.CallAnswered:
		return l.known[d.RequestID]
	case domain.SubscriptionAcknowledged:
		return l.known[d.RequestID]
	case domain.SubscriptionEnded:
		return l.known[d.RequestID]
	}
	return true
}

// lived puts the incarnation of the other world in the place of a recorded one.
func (l *links) lived(at *domain.At) bool {
	other, ok := l.lives[*at]
	*at = other
	return ok
}

// asked does so with a request and where it went.
func (l *links) asked(id *int64, at *domain.At) bool {
	other, ok := l.requests[*id]
	*id, *at = other.id, other.at
	return ok
}

// probed translates a message that came before the era was known: the id is in it.
func (l *links) probed(e domain.Event, d domain.ProbeAnswered) (domain.Event, bool, error) {
	m, err := domain.ParseMessage(e.Evidence)
	id, known := m.RequestID()
	other, asked := l.requests[id]
	if err != nil || !known || !asked || other.id == id {
		if d.RequestID != 0 {
			ok := l.asked(&d.RequestID, &d.At)
			e.Data = d
			return e, ok, nil
		}
		ok := l.lived(&d.At)
		e.Data = d
		return e, ok, nil
	}
	frame, err := renumber(e.Evidence, other.id)
	if err != nil {
		return e, false, err
	}
	if d.RequestID != 0 {
		d.RequestID = other.id
	}
	d.At, d.Frame = other.at, domain.RefTo(frame)
	e.Data, e.Evidence = d, frame
	return e, true, nil
}

// renumber puts another id into a message.
func renumber(frame []byte, id int64) ([]byte, error) {
	var out []byte
	dec := jsontext.NewDecoder(strings.NewReader(string(frame)), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	out = append(out, '{')
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		isID := string(name) == `"id"` // the name is the decoder's, and gone with the next value
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, name...), ':')
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if isID {
			out = strconv.AppendInt(out, id, 10)
			continue
		}
		out = append(out, value...)
	}
	return append(out, '}'), nil
}

// callID reads the key of a call, "host/id". A host's name has no slash.
func callID(key string) domain.CallID {
	host, id, _ := strings.Cut(key, "/")
	return domain.CallID{Host: host, ID: id}
}
