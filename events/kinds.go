package events

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"waybill/domain"
)

// kind is what the package knows of one kind of event.
type kind struct {
	decision bool
	decode   func(b []byte) (domain.Data, error)
}

var kinds = map[string]*kind{}

func observation[T domain.Data]() { register[T](false) }
func decision[T domain.Data]()    { register[T](true) }

func register[T domain.Data](decision bool) {
	var zero T
	kinds[zero.Kind()] = &kind{decision: decision, decode: func(b []byte) (domain.Data, error) {
		var d T
		if err := json.Unmarshal(b, &d, json.RejectUnknownMembers(true)); err != nil {
			return nil, err
		}
		return d, nil
	}}
}

func init() {
	observation[domain.ServiceStarted]()
	observation[domain.ServiceStopped]()
	observation[domain.ConfigLoaded]()
	observation[domain.LogRestored]()
	observation[domain.PeerSpawned]()
	observation[domain.SpawnFailed]()
	observation[domain.PeerExited]()
	observation[domain.ProbeAnswered]()
	observation[domain.ProbeFailed]()
	observation[domain.CatalogListed]()
	observation[domain.CallReceived]()
	observation[domain.CallAnswered]()
	observation[domain.CallCancelled]()
	observation[domain.ExchangeFailed]()
	observation[domain.DeadlinePassed]()
	observation[domain.WaitPassed]()
	observation[domain.HealthDue]()
	observation[domain.HealthAnswered]()
	observation[domain.OperatorCommanded]()
	observation[domain.KeyRotated]()
	observation[domain.RetentionPassed]()
	observation[domain.NoiseCounted]()
	observation[domain.IntakeShed]()
	observation[domain.StreamForked]()
	observation[domain.ListChanged]()
	observation[domain.ListDue]()
	observation[domain.ToolsRead]()
	observation[domain.SubscriptionAcknowledged]()
	observation[domain.SubscriptionEnded]()
	observation[domain.SubscriptionDue]()
	decision[domain.PeerAdmitted]()
	decision[domain.PeerRefused]()
	decision[domain.PeerLaunched]()
	decision[domain.PeerRestarted]()
	decision[domain.PeerQuarantined]()
	decision[domain.PeerAbandoned]()
	decision[domain.HealthRequested]()
	decision[domain.CommandRefused]()
	decision[domain.CallResent]()
	decision[domain.CallHeld]()
	decision[domain.ProbeIssued]()
	decision[domain.LegacyExcluded]()
	decision[domain.EraDetermined]()
	decision[domain.EraRefused]()
	decision[domain.ListRequested]()
	decision[domain.CatalogAccepted]()
	decision[domain.CatalogRefused]()
	decision[domain.ToolRejected]()
	decision[domain.CollisionDecided]()
	decision[domain.NameMoved]()
	decision[domain.NamespaceMerged]()
	decision[domain.ConfigRejected]()
	decision[domain.CallRouted]()
	decision[domain.CallRefused]()
	decision[domain.CallJoined]()
	decision[domain.CallAbandoned]()
	decision[domain.CallSettled]()
	decision[domain.AnswerDropped]()
	decision[domain.PayloadsErased]()
	decision[domain.SubscriptionRequested]()
	decision[domain.SubscriptionOpened]()
	decision[domain.SubscriptionClosed]()
	decision[domain.ListDeferred]()
	decision[domain.CacheDecided]()
	decision[domain.ToolChanged]()
	decision[domain.ToolFlagged]()
	decision[domain.NameFlagged]()
	decision[domain.ToolApproved]()
}

// fits holds kind and cause together: a decision that passed for an observation
// would be taken for granted by a replay.
func (k *kind) fits(e domain.Event) error {
	switch {
	case k == nil:
		return errors.New("no such kind is registered")
	case k.decision && !e.IsDecision():
		return errors.New("a decision without a cause")
	case !k.decision && e.IsDecision():
		return errors.New("an observation with a cause")
	}
	return nil
}

// Kinds lists every kind of event this version reads and writes, sorted.
func Kinds() []string {
	out := make([]string, 0, len(kinds))
	for k := range kinds {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// EvidenceOf returns the reference to the evidence that an event's data cites.
func EvidenceOf(d domain.Data) (domain.Ref, bool) {
	switch d := d.(type) {
	case domain.ConfigLoaded:
		return d.Config, true
	case domain.ProbeAnswered:
		return d.Frame, true
	case domain.ProbeFailed:
		return d.Frame, d.Frame != (domain.Ref{})
	case domain.CatalogListed:
		return d.Frame, true
	case domain.SubscriptionAcknowledged:
		return d.Frame, true
	case domain.LogRestored:
		return d.Checkpoint, d.Checkpoint != (domain.Ref{})
	}
	return domain.Ref{}, false
}

// DigestOf returns the digest that a reference writes in hex. It fails if that
// is not 64 lower-case hex digits.
func DigestOf(ref domain.Ref) (d [32]byte, err error) {
	b, err := hex.DecodeString(ref.Digest)
	if err != nil || len(b) != len(d) || hex.EncodeToString(b) != ref.Digest {
		return d, fmt.Errorf("evidence is cited by %.80q, which is no digest", ref.Digest)
	}
	copy(d[:], b)
	return d, nil
}
