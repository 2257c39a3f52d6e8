package replay_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/replay"
	"waybill/replay/replaytest"
)

// forgery changes the decision of one kind into another that could have been.
type forgery struct {
	kind   string
	change func(domain.Data) domain.Data
}

func change[T domain.Data](f func(*T)) forgery {
	var zero T
	return forgery{zero.Kind(), func(d domain.Data) domain.Data {
		v := d.(T)
		f(&v)
		return v
	}}
}

var wiki = domain.Owner{Peer: "wiki", Local: "search"}

var forgeries = []forgery{
	change(func(d *domain.PeerAdmitted) { d.Pin = strings.Repeat("0", 64) }),
	change(func(d *domain.PeerRefused) { d.Code = domain.CodePinMismatch }),
	change(func(d *domain.PeerLaunched) { d.First = domain.MethodInitialize }),
	change(func(d *domain.PeerRestarted) { d.Delay++ }),
	change(func(d *domain.PeerQuarantined) { d.Attempts-- }),
	change(func(d *domain.ProbeIssued) { d.Authority = domain.AuthorityAllowLegacy }),
	change(func(d *domain.LegacyExcluded) { d.Reason = "nothing" }),
	change(func(d *domain.EraDetermined) { d.Era, d.Version = domain.EraLegacy, "2025-11-25" }),
	change(func(d *domain.EraRefused) { d.Code = domain.CodeAmbiguousSilence }),
	change(func(d *domain.ListRequested) { d.Page++ }),
	change(func(d *domain.CatalogAccepted) { d.Tools++ }),
	change(func(d *domain.CatalogRefused) { d.Code = domain.CodeListTimeout }),
	change(func(d *domain.ToolRejected) { d.Position = 0 }),
	change(func(d *domain.CollisionDecided) { d.Winner = &wiki }),
	change(func(d *domain.NameMoved) { d.To = wiki }),
	change(func(d *domain.NamespaceMerged) { d.Digest = strings.Repeat("0", 64) }),
	change(func(d *domain.CallRouted) { d.Peer = "wiki" }),
	change(func(d *domain.CallRefused) { d.Code = domain.CodeOverloaded }),
	change(func(d *domain.CallAbandoned) { d.Reason = "the host lost patience" }),
	change(func(d *domain.CallSettled) { d.Ran = domain.RanNo }),
	change(func(d *domain.AnswerDropped) { d.RequestID++ }),
	change(func(d *domain.PeerAbandoned) { d.Code = domain.CodeFrameTooLarge }),
	change(func(d *domain.HealthRequested) { d.Method = domain.MethodInitialize }),
	change(func(d *domain.CommandRefused) { d.Code = domain.CodeNotResendable }),
	change(func(d *domain.CallResent) { d.Rule = domain.RuleRepeatable }),
	change(func(d *domain.CallHeld) { d.Rule = domain.RuleHints }),
	change(func(d *domain.PayloadsErased) { d.By = "somebody" }),
	change(func(d *domain.SubscriptionRequested) { d.Types = nil }),
	change(func(d *domain.SubscriptionOpened) {
		d.Missing = nil
		d.Granted = []string{domain.TypeToolsChanged, "more"}
	}),
	change(func(d *domain.SubscriptionClosed) { d.Reopen++ }),
	change(func(d *domain.ListDeferred) { d.Delay = 1 }),
	change(func(d *domain.CacheDecided) { d.Uses = nil }),
	change(func(d *domain.ToolChanged) { d.Held = !d.Held }),
	change(func(d *domain.ToolFlagged) { d.Marks = nil }),
	change(func(d *domain.NameFlagged) { d.Alike = nil }),
	change(func(d *domain.ToolApproved) { d.By = "somebody" }),
	change(func(d *domain.CallJoined) { d.First = "local/nothing" }),
}

// logWith is a log that has a decision of a kind.
func logWith(kind string) *replaytest.Log {
	switch kind {
	case "peer.abandoned", "health.requested", "command.refused", "call.resent", "call.held":
		return replaytest.Fire()
	case "subscription.requested", "subscription.opened", "subscription.closed", "list.deferred", "cache.decided", "tool.changed", "tool.flagged",
		"name.flagged", "tool.approved":
		return replaytest.Lists()
	case "payloads.erased":
		return replaytest.Kept()
	case "call.joined":
		return replaytest.Keys()
	}
	return replaytest.Full()
}

// TestForgedDecisionIsFound forges one decision of each kind in a log that is
// whole, its hashes, tiles and roots made anew.
func TestForgedDecisionIsFound(t *testing.T) {
	for _, f := range forgeries {
		t.Run(f.kind, func(t *testing.T) {
			good := logWith(f.kind)
			i := findKind(t, good, f.kind)
			forged := good.Forge(func(list []domain.Event) []domain.Event {
				list[i].Data = f.change(list[i].Data)
				return list
			})
			wantProof(t, good, forged, i)
		})
	}
}

// wantProof holds that the forged decision at an index is found with both sides
// and the observation they came from.
func wantProof(t *testing.T, good, forged *replaytest.Log, i int) {
	t.Helper()
	d := diverged(t, forged, replay.Different, int64(i+1))
	cause := good.Events()[i].Cause
	for _, side := range []struct {
		name      string
		got, want jsontext.Value
	}{
		{"recorded", d.Recorded, forged.Rows[i].Bytes},
		{"decided again", d.Redecided, good.Rows[i].Bytes},
		{"observation", d.Observation, good.Rows[cause-1].Bytes},
	} {
		if !bytes.Equal(side.got, side.want) {
			t.Errorf("%s is\n%s, want\n%s", side.name, side.got, side.want)
		}
		if !strings.Contains(d.Error(), string(side.want)) {
			t.Errorf("the error does not show what is %s: %v", side.name, d)
		}
	}
}

// TestEveryKindOfDecisionIsForged keeps a new kind from being left out.
func TestEveryKindOfDecisionIsForged(t *testing.T) {
	var kinds []string
	for _, l := range []*replaytest.Log{replaytest.Full(), replaytest.Rejected(), replaytest.Fire(), replaytest.Kept(), replaytest.Lists(), replaytest.HTTP(), replaytest.Keys()} {
		for _, e := range l.Events() {
			if e.IsDecision() {
				kinds = append(kinds, e.Data.Kind())
			}
		}
	}
	for _, f := range forgeries {
		if !slices.Contains(kinds, f.kind) {
			t.Errorf("no log here has a %s", f.kind)
		}
	}
	for _, k := range kinds {
		known := slices.ContainsFunc(forgeries, func(f forgery) bool { return f.kind == k })
		if !known && k != "config.rejected" { // forged below, in every field
			t.Errorf("%s is not forged", k)
		}
	}
}

// TestAnyFieldOfAnyDecisionIsFound forges each field of each decision that the
// logs here have.
func TestAnyFieldOfAnyDecisionIsFound(t *testing.T) {
	for _, good := range []*replaytest.Log{replaytest.Full(), replaytest.Rejected(), replaytest.Fire(), replaytest.Kept(), replaytest.Lists(), replaytest.HTTP(), replaytest.Keys()} {
		for i, e := range good.Events() {
			if !e.IsDecision() {
				continue
			}
			for n := range fields(reflect.ValueOf(e.Data)) {
				forged := good.Forge(func(list []domain.Event) []domain.Event {
					list[i].Data = altering(list[i].Data, n)
					return list
				})
				if replayFinds(t, forged, replay.Different, e.Seq); t.Failed() {
					t.Fatalf("field %d of %s", n, e.Data.Kind())
				}
			}
		}
	}
}

// fields counts what altering can alter.
func fields(v reflect.Value) int {
	n := 0
	walk(v, func(reflect.Value) { n++ })
	return n
}

// altering returns data with its n-th field changed.
func altering(d domain.Data, n int) domain.Data {
	v := reflect.New(reflect.TypeOf(d)).Elem()
	v.Set(reflect.ValueOf(d))
	walk(v, func(f reflect.Value) {
		if n == 0 {
			alter(f)
		}
		n--
	})
	return v.Interface().(domain.Data)
}

func walk(v reflect.Value, f func(reflect.Value)) {
	if v.Kind() != reflect.Struct {
		f(v)
		return
	}
	for i := range v.NumField() {
		walk(v.Field(i), f)
	}
}

func alter(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		} else {
			v.SetZero()
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[jsontext.Value]() {
			v.SetBytes([]byte(`{"sampling":{}}`))
			return
		}
		v.Set(reflect.Append(v.Slice(0, 0), reflect.Zero(v.Type().Elem())))
	default:
		panic("decisions hold a " + v.Type().String() + ": teach this test")
	}
}

// TestAttributesOfADecisionAreDecidedToo forges what stands beside the data.
func TestAttributesOfADecisionAreDecidedToo(t *testing.T) {
	good := replaytest.Full()
	for i, e := range good.Events() {
		if !e.IsDecision() {
			continue
		}
		for _, change := range []func(*domain.Event){
			func(e *domain.Event) { e.Time++ },
			func(e *domain.Event) { e.Mono++ },
			func(e *domain.Event) { e.Cause-- },
		} {
			forged := good.Forge(func(list []domain.Event) []domain.Event {
				change(&list[i])
				if list[i].Cause == 0 {
					list[i].Cause = 2 // of the first decision of all: it must stay one
				}
				return list
			})
			replayFinds(t, forged, replay.Different, e.Seq)
		}
	}
}

func TestDecisionThatIsTakenOutIsFound(t *testing.T) {
	good := replaytest.Full()
	list := good.Events()
	for i, e := range list {
		if !e.IsDecision() {
			continue
		}
		last := i+1 == len(list) || !list[i+1].IsDecision()
		forged := good.Forge(func(list []domain.Event) []domain.Event { return slices.Delete(list, i, i+1) })
		code := replay.Different
		if last {
			code = replay.Missing
		}
		d := diverged(t, forged, code, e.Seq)
		if !bytes.Equal(d.Redecided, good.Rows[i].Bytes) || (d.Recorded == nil) != last {
			t.Errorf("%s was taken out: recorded %s, decided again %s", e.Data.Kind(), d.Recorded, d.Redecided)
		}
	}
}

// TestAllThatFollowedIsTakenOut leaves an observation from which nothing
// follows any more.
func TestAllThatFollowedIsTakenOut(t *testing.T) {
	good := replaytest.Full()
	i := findKind(t, good, "namespace.merged")
	cause := good.Events()[i].Cause
	forged := good.Forge(func(list []domain.Event) []domain.Event {
		return slices.DeleteFunc(list, func(e domain.Event) bool { return e.Cause == cause })
	})
	d := diverged(t, forged, replay.Missing, cause+1)
	if !bytes.Equal(d.Redecided, good.Rows[cause].Bytes) || !bytes.Equal(d.Observation, good.Rows[cause-1].Bytes) {
		t.Errorf("decided again %s from %s", d.Redecided, d.Observation)
	}
}

func TestDecisionThatIsAddedIsFound(t *testing.T) {
	good := replaytest.Full()
	list := good.Events()
	for i, e := range list {
		last := i+1 == len(list) || !list[i+1].IsDecision()
		added := domain.Event{Time: e.Time, Mono: e.Mono, Cause: max(e.Cause, e.Seq),
			Data: domain.CallRefused{CallID: domain.CallID{Host: "local", ID: "never"}, Code: domain.CodeOverloaded}}
		if e.IsDecision() {
			added.Cause = e.Cause
		}
		forged := good.Forge(func(list []domain.Event) []domain.Event { return slices.Insert(list, i+1, added) })
		code := replay.Different
		if last {
			code = replay.Extra
		}
		d := diverged(t, forged, code, e.Seq+1)
		if !bytes.Equal(d.Recorded, forged.Rows[i+1].Bytes) || (d.Redecided == nil) != last {
			t.Errorf("one was added behind %s: recorded %s, decided again %s", e.Data.Kind(), d.Recorded, d.Redecided)
		}
	}
}

func TestDecisionBeforeAnyObservationIsFound(t *testing.T) {
	forged := replaytest.Small().Forge(func(list []domain.Event) []domain.Event {
		return slices.Insert(list, 0, domain.Event{Cause: 1, Time: 1, Data: domain.PeerAdmitted{Peer: "notes"}})
	})
	if d := diverged(t, forged, replay.Extra, 1); d.Observation != nil || d.Redecided != nil || !strings.Contains(d.Error(), "nothing") {
		t.Errorf("got %v", d)
	}
}

func TestDecisionsThatAreExchangedAreFound(t *testing.T) {
	good := replaytest.Full()
	list := good.Events()
	pairs := 0
	for i := range len(list) - 1 {
		if !list[i].IsDecision() || !list[i+1].IsDecision() {
			continue
		}
		pairs++
		forged := good.Forge(func(list []domain.Event) []domain.Event {
			list[i], list[i+1] = list[i+1], list[i]
			return list
		})
		diverged(t, forged, replay.Different, list[i].Seq)
	}
	if pairs < 10 {
		t.Errorf("only %d pairs of decisions stand side by side", pairs)
	}
}

// TestObservationThatIsTakenOutLeavesDecisionsWithoutGround holds for all but
// those from which nothing followed: these only a kept root can miss.
func TestObservationThatIsTakenOutLeavesDecisionsWithoutGround(t *testing.T) {
	good := replaytest.Full()
	list := good.Events()
	for i, e := range list[:len(list)-1] {
		if e.IsDecision() || !list[i+1].IsDecision() {
			continue
		}
		forged := good.Forge(func(list []domain.Event) []domain.Event { return slices.Delete(list, i, i+1) })
		diverged(t, forged, replay.Extra, e.Seq)
	}
}
