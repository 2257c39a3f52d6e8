package events

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"waybill/domain"
)

// decoder reads the data of one kind.
type decoder func(b []byte) (domain.Data, error)

func of[T domain.Data]() (string, decoder) {
	var zero T
	return zero.Kind(), func(b []byte) (domain.Data, error) {
		var d T
		if err := json.Unmarshal(b, &d, json.RejectUnknownMembers(true)); err != nil {
			return nil, err
		}
		return d, nil
	}
}

var decoders = map[string]decoder{}

func register(kind string, d decoder) { decoders[kind] = d }

func init() {
	register(of[domain.ServiceStarted]())
	register(of[domain.ServiceStopped]())
	register(of[domain.ConfigLoaded]())
	register(of[domain.PeerSpawned]())
	register(of[domain.SpawnFailed]())
	register(of[domain.PeerExited]())
	register(of[domain.ProbeAnswered]())
	register(of[domain.CatalogListed]())
	register(of[domain.CallReceived]())
	register(of[domain.CallAnswered]())
	register(of[domain.ExchangeFailed]())
	register(of[domain.DeadlinePassed]())
	register(of[domain.NoiseCounted]())
	register(of[domain.IntakeShed]())
	register(of[domain.PeerAdmitted]())
	register(of[domain.PeerRefused]())
	register(of[domain.PeerLaunched]())
	register(of[domain.ProbeIssued]())
	register(of[domain.LegacyExcluded]())
	register(of[domain.EraDetermined]())
	register(of[domain.EraRefused]())
	register(of[domain.ListRequested]())
	register(of[domain.CatalogAccepted]())
	register(of[domain.CatalogRefused]())
	register(of[domain.ToolRejected]())
	register(of[domain.CollisionDecided]())
	register(of[domain.NameMoved]())
	register(of[domain.NamespaceMerged]())
	register(of[domain.ConfigRejected]())
	register(of[domain.CallRouted]())
	register(of[domain.CallRefused]())
	register(of[domain.CallAbandoned]())
	register(of[domain.CallSettled]())
	register(of[domain.AnswerDropped]())
}

// Kinds lists every kind of event this version reads and writes, sorted.
func Kinds() []string {
	out := make([]string, 0, len(decoders))
	for k := range decoders {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// decodeData reads the data of a kind at a version of its schema. There is one
// version so far; an upgrade of an old one is registered here beside it.
func decodeData(kind, version string, b []byte) (domain.Data, error) {
	d := decoders[kind]
	if d == nil {
		return nil, fmt.Errorf("unknown kind %q: a newer waybill wrote it", kind)
	}
	if version != dataVersion {
		return nil, fmt.Errorf("kind %q has data version %q; this program reads %s", kind, version, dataVersion)
	}
	return d(b)
}

// EvidenceOf returns the reference to the evidence that an event's data cites.
func EvidenceOf(d domain.Data) (domain.Ref, bool) {
	switch d := d.(type) {
	case domain.ConfigLoaded:
		return d.Config, true
	case domain.ProbeAnswered:
		return d.Frame, true
	case domain.CatalogListed:
		return d.Frame, true
	}
	return domain.Ref{}, false
}
