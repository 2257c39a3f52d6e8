package moment

import (
	"slices"
	"time"

	"waybill/domain"
)

// Sight is a moment as a person or a program can read it. Its JSON form is a contract.
type Sight struct {
	Log    string              `json:"log"`
	Seq    int64               `json:"seq"`
	Time   string              `json:"time"` // RFC 3339, UTC; "" before the first event
	Report domain.Report       `json:"report"`
	Spaces []Space             `json:"namespaces"` // by context
	Calls  []domain.CallReport `json:"calls"`      // under way, by seq
}

// Space is a namespace with its names.
type Space struct {
	Context    string `json:"context"`
	Generation int64  `json:"generation"`
	Digest     string `json:"digest"` // as namespace.merged recorded it
	Names      []Name `json:"names"`  // sorted
}

// Name is a canonical name and who held it.
type Name struct {
	Canonical string         `json:"canonical"`
	Owner     domain.Owner   `json:"owner"`
	Since     int64          `json:"since_generation"`
	Collided  []domain.Owner `json:"collided,omitempty"`
	Held      bool           `json:"quarantined,omitempty"`
}

// Sight copies what can be read of the moment.
func (m Moment) Sight() Sight {
	s := Sight{Log: m.Log, Seq: m.Seq, Report: m.State.Report(m.Log), Spaces: []Space{}, Calls: m.State.Calls()}
	if m.Seq > 0 {
		s.Time = time.Unix(0, m.Time).UTC().Format(time.RFC3339Nano)
	}
	for _, ns := range s.Report.Namespaces {
		s.Spaces = append(s.Spaces, m.space(ns))
	}
	return s
}

func (m Moment) space(ns domain.NamespaceReport) Space {
	out := Space{Context: ns.Context, Generation: ns.Generation, Digest: ns.Digest, Names: []Name{}}
	for _, e := range m.State.Tools(ns.Context, "", 0, m.Mono).Tools {
		out.Names = append(out.Names, Name{Canonical: e.Canonical, Owner: domain.Owner{Peer: e.Peer, Local: e.Local}, Since: e.SinceGen,
			Collided: e.Collided, Held: e.Held != nil})
	}
	return out
}

// space returns the names of a context; nil for none.
func (s Sight) space(context string) *Space {
	i := slices.IndexFunc(s.Spaces, func(x Space) bool { return x.Context == context })
	if i < 0 {
		return nil
	}
	return &s.Spaces[i]
}
