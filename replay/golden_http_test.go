package replay_test

import (
	"slices"
	"testing"

	"waybill/domain"
	"waybill/replay"
	"waybill/replay/replaytest"
)

// httpLogs are forged decisions about endpoints and hosts, each in a log that is
// well made: what somebody would have to claim to have done what may not be done.
var httpLogs = []made{
	httpForged("probe-context", "the second credential was never tried: the probe is said to have been another context's", 38,
		func(d domain.ProbeIssued) domain.Data { d.Context = "alice"; return d }),
	httpForged("probe-authority", "a probe with another credential passes for a first message", 38,
		func(d domain.ProbeIssued) domain.Data { d.Authority = domain.AuthorityFirst; return d }),
	httpForged("initialize-unpermitted", "an initialize follows from HTTP 404, without allow_legacy", 50,
		func(d domain.EraRefused) domain.Data { return initialize(d.At, 18) }),
	httpForged("initialize-unauthorized", "an initialize follows from a peer that takes no credential", 58,
		func(d domain.EraRefused) domain.Data { return initialize(d.At, 16) }),
	httpForged("initialize-unavailable", "an initialize follows from HTTP 503", 40,
		func(d domain.EraRefused) domain.Data { return initialize(d.At, 11) }),
	httpForged("refused-for-good", "an endpoint that is not there is closed as one that is not authorized", 40,
		func(d domain.EraRefused) domain.Data { d.Code = domain.CodeUnauthorized; return d }),
	httpForged("redirect-followed", "a redirect is tried again", 46,
		func(d domain.EraRefused) domain.Data { d.Code = domain.CodeUnavailable; return d }),
	httpForged("session-resent-twice", "a call is sent again for a second session that is gone", 121,
		func(d domain.CallSettled) domain.Data {
			return domain.CallResent{CallID: d.CallID, At: domain.At{Peer: "archive", Incarnation: 3}, RequestID: 27, After: 25, Attempt: 3, Rule: domain.RuleSession,
				Local: "find", Era: domain.EraLegacy, Version: "2025-11-25", Capabilities: nothing, Deadline: 59_000}
		}),
	httpForged("session-held-twice", "a call waits for a third session", 121,
		func(d domain.CallSettled) domain.Data {
			return domain.CallHeld{CallID: d.CallID, Peer: "archive", Code: d.Code, Rule: domain.RuleSession, Ran: d.Ran, Wait: 5_000}
		}),
	httpForged("held-for-another-rule", "a call that is held for a fresh list is said never to have been written", 138,
		func(d domain.CallHeld) domain.Data { d.Rule = domain.RuleNeverWritten; return d }),
	httpForged("headers-unread", "a call is sent again although the list could not be read", 165,
		func(d domain.CallSettled) domain.Data {
			return domain.CallResent{CallID: d.CallID, At: domain.At{Peer: "lists", Incarnation: 1}, RequestID: 38, After: 36, Attempt: 2, Rule: domain.RuleHeader,
				Local: "mirror", Era: domain.EraModern, Version: "2026-07-28", Capabilities: nothing, Deadline: 59_000}
		}),
	httpForged("list-unread", "the list that was read for headers passes for one that a host read", 137,
		func(d domain.ListRequested) domain.Data { d.Why = domain.WhyRead; return d }),
	httpForged("sent-to-what-is-gone", "a call that was never written is sent again at once, in the incarnation that is over", 180,
		func(d domain.CallHeld) domain.Data {
			return domain.CallResent{CallID: d.CallID, At: domain.At{Peer: "notes", Incarnation: 1}, RequestID: 41, After: 40, Attempt: 2, Rule: domain.RuleNeverWritten,
				Local: "add", Era: domain.EraModern, Version: "2026-07-28", Capabilities: nothing, Deadline: 59_000, Context: "alice"}
		}),
	httpForged("retired-answer", "a call that an incarnation answered which was over is said to be lost", 132,
		func(d domain.CallSettled) domain.Data {
			d.Status, d.Code, d.Ran = domain.StatusLost, domain.CodeTransportLost, domain.RanMaybe
			return d
		}),
	httpForged("forbidden-ran", "a call that HTTP 403 answered is said not to have run", 174,
		func(d domain.CallSettled) domain.Data { d.Ran = domain.RanNo; return d }),
	httpForged("not-allowed-routed", "a host has called a tool that it may not use", 197,
		func(d domain.CallRefused) domain.Data {
			return domain.CallRouted{CallID: d.CallID, At: domain.At{Peer: "wiki", Incarnation: 1}, RequestID: 46, Tool: "secret", Local: "secret", Era: domain.EraModern,
				Version: "2026-07-28", Capabilities: nothing, Generation: 2, Namespace: 98, Catalog: 73, Deadline: 60_000}
		}),
	httpForged("stranger-allowed", "a host that nobody named is refused for a reason that is none", 205,
		func(d domain.CallRefused) domain.Data { d.Code = domain.CodeUnknownTool; return d }),
	httpForged("health-context", "a sign of life was asked for with another credential", 216,
		func(d domain.HealthRequested) domain.Data { d.Context = "bob"; return d }),
	httpEdited("tool-rejected-gone", "a tool whose header may not be was never left out", "tool.rejected", 64, replay.Different,
		func(list []domain.Event, i int) []domain.Event { return slices.Delete(list, i, i+1) }),
	httpEdited("recovery-gone", "an endpoint that is not there is not tried again", "peer.restarted", 60, replay.Missing,
		func(list []domain.Event, i int) []domain.Event { return slices.Delete(list, i, i+1) }),
	httpEdited("unauthorized-restarted", "an endpoint that takes no credential is tried again by itself", "peer.exited", 77, replay.Extra,
		func(list []domain.Event, i int) []domain.Event {
			d := domain.PeerRestarted{At: domain.At{Peer: "gate", Incarnation: 2}, Attempt: 1, Delay: 140, After: domain.CodeUnauthorized}
			return slices.Insert(list, i+1, domain.Event{Time: list[i].Time, Mono: list[i].Mono, Cause: list[i].Seq, Data: d})
		}),
	httpEdited("resent-before-the-list", "a call is sent again with the headers that were wrong", "cache.decided", 136, replay.Different,
		func(list []domain.Event, i int) []domain.Event {
			held := list[i+2].Data.(domain.CallHeld)
			list[i].Data = domain.CallResent{CallID: held.CallID, At: domain.At{Peer: "lists", Incarnation: 1}, RequestID: 31, After: 30, Attempt: 2, Rule: domain.RuleHeader,
				Local: "mirror", Era: domain.EraModern, Version: "2026-07-28", Capabilities: nothing, Deadline: 59_000}
			return slices.Delete(list, i+1, i+3)
		}),
}

var nothing = []byte("{}")

func initialize(at domain.At, id int64) domain.Data {
	return domain.ProbeIssued{At: at, RequestID: id, Method: domain.MethodInitialize, Version: "2025-11-25", Attempt: 2, Deadline: 5_000,
		Authority: domain.AuthorityAllowLegacy, Capabilities: nothing}
}

// httpForged puts another decision in the place of one.
func httpForged[T domain.Data](name, about string, seq int64, change func(T) domain.Data) made {
	var zero T
	return httpEdited(name, about, zero.Kind(), seq, replay.Different, func(list []domain.Event, i int) []domain.Event {
		list[i].Data = change(list[i].Data.(T))
		return list
	})
}

// httpEdited edits the log of endpoints at an event of a kind, and cuts it after.
func httpEdited(name, about, kind string, seq int64, code string, edit func([]domain.Event, int) []domain.Event) made {
	want := &replaytest.Want{By: "replay", Code: code, Seq: seq}
	if code == replay.Extra {
		want.Seq++
	}
	return made{"bad-decision-http-" + name, about, func(t *testing.T) *replaytest.Log {
		l := replaytest.HTTP()
		if got := l.Rows[seq-1].Type; got != kind {
			t.Fatalf("event %d is %s, want %s", seq, got, kind)
		}
		return l.Forge(func(list []domain.Event) []domain.Event { return edit(list, int(seq-1)) }).Cut(want.Seq)
	}, want}
}

// TestForgedDecisionsOverHTTPAreFound makes each of them anew, from the log as the
// rules have it now.
func TestForgedDecisionsOverHTTPAreFound(t *testing.T) {
	for _, m := range httpLogs {
		t.Run(m.name, func(t *testing.T) { diverged(t, m.log(t), m.want.Code, m.want.Seq) })
	}
}
