package events

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

const logID = "local-0a1b2c3d"

var (
	notes  = domain.At{Peer: "notes", Incarnation: 3}
	call   = domain.CallID{Host: "local", ID: "first"}
	frame  = domain.Ref{Digest: strings.Repeat("0123456789abcdef", 4), Size: 159}
	bytes5 = domain.Payload{Size: 5, HMAC: strings.Repeat("fedcba9876543210", 4)}
	search = domain.Owner{Peer: "notes", Local: "search"}
	other  = domain.Owner{Peer: "wiki", Local: "search"}
	cursor = "page-1"
	none   = jsontext.Value("{}")
)

// samples has an event of every kind. They are written into testdata: a new
// kind gets a sample, and no sample is ever changed.
var samples = []domain.Data{
	domain.ServiceStarted{Version: "0.1", Rules: 1},
	domain.ServiceStopped{Reason: "interrupt"},
	domain.ConfigLoaded{Config: frame, Peers: 3},
	domain.LogRestored{Log: "local-9f8e7d6c", Key: "waybill/local-9f8e7d6c+12345678+AAAA", Size: 4021, Root: bytes5.HMAC, Signed: 4019, Checkpoint: frame, Beyond: 4100},
	domain.PeerSpawned{At: notes, PID: 4006},
	domain.SpawnFailed{At: notes, Code: domain.CodeSpawnFailed, Reason: "fork: no more processes"},
	domain.PeerExited{At: notes, Status: -1, Signal: "killed", Cause: "stopped", StderrSize: 1200},
	domain.ProbeAnswered{At: notes, Frame: frame},
	domain.ProbeFailed{At: notes, RequestID: 2, Class: domain.ClassAmbiguous, Status: 404, Reason: "no message in it", Frame: frame},
	domain.CatalogListed{At: notes, RequestID: 7, Frame: frame},
	domain.CallReceived{CallID: call, DuplicateOf: "taken", Tool: "search", Generation: 2, Timeout: 1500, Arguments: bytes5, Problem: "a problem"},
	domain.CallAnswered{CallID: call, At: notes, RequestID: 9, Result: bytes5, Facts: domain.Facts{Kind: domain.FactResult, ResultType: "complete", IsError: true}},
	domain.CallCancelled{CallID: call, By: "host"},
	domain.ExchangeFailed{At: notes, RequestID: 9, Written: "maybe", Code: domain.CodeTransportLost},
	domain.DeadlinePassed{At: notes, RequestID: 9},
	domain.WaitPassed{CallID: call},
	domain.HealthDue{At: notes},
	domain.HealthAnswered{At: notes, RequestID: 11},
	domain.OperatorCommanded{By: "oncall", Verb: domain.VerbResend, Peer: "notes", Call: "local/first", Arguments: &bytes5},
	domain.KeyRotated{By: "oncall", From: "waybill/local-0a1b2c3d+9dbdbb4f+AWtJ", To: "waybill/local-0a1b2c3d+0c2f3b4a+AX0k", Note: "waybill/local-0a1b2c3d/key\nfrom\nto\n\n\u2014 a signature\n"},
	domain.NoiseCounted{At: notes, Kinds: []domain.NoiseCount{{What: "notification", Count: 2, Bytes: 120}}},
	domain.IntakeShed{Count: 7, Code: domain.CodeOverloaded},
	domain.RetentionPassed{Calls: 12},
	domain.StreamForked{Stream: "WAYBILL_" + logID, Seq: 20, Log: frame.Digest, Copy: bytes5.HMAC},
	domain.ListChanged{At: notes, Context: "alice", Subscription: 6, Count: 2000},
	domain.ListDue{At: notes, Context: "alice"},
	domain.ToolsRead{Context: "alice", Reads: 3},
	domain.SubscriptionAcknowledged{At: notes, Context: "alice", RequestID: 6, Frame: frame},
	domain.SubscriptionEnded{At: notes, Context: "alice", RequestID: 6, How: domain.EndedError, ErrorCode: -32603},
	domain.SubscriptionDue{At: notes, Context: "alice"},

	domain.PeerAdmitted{Peer: "notes", Pin: frame.Digest},
	domain.PeerRefused{Peer: "notes", Code: domain.CodeNotPinned, Reason: "peer notes is not in waybill.lock; run waybill pin"},
	domain.PeerLaunched{At: notes, First: domain.MethodDiscover},
	domain.PeerRestarted{At: notes, Attempt: 2, Delay: 257, After: domain.CodePeerExited},
	domain.PeerQuarantined{Peer: "notes", Attempts: 8, Reason: "8 starts in a row failed; the last: the process ended (status 1)"},
	domain.PeerAbandoned{At: notes, Code: domain.CodePeerHung, Reason: "the peer wrote nothing while its calls reached their deadlines"},
	domain.HealthRequested{At: notes, RequestID: 11, Method: domain.MethodPing, Era: domain.EraLegacy, Version: "2025-11-25", Capabilities: none, Deadline: 5_000, Every: 30_000},
	domain.CommandRefused{By: "oncall", Verb: domain.VerbRevive, Peer: "notes", Call: "local/first", Code: domain.CodeNotDown, Reason: "the peer is up"},
	domain.CallHeld{CallID: call, Peer: "notes", Code: domain.CodeTransportLost, Rule: domain.RuleNeverWritten, Ran: domain.RanNo, Wait: 5_000},
	domain.CallResent{CallID: call, At: notes, RequestID: 12, After: 9, Attempt: 2, Rule: domain.RuleOperator, By: "oncall", Local: "search", Era: domain.EraModern, Version: "2026-07-28", Capabilities: none, Deadline: 60_000, Idle: 60_000, Limit: 600_000, Progress: true},
	domain.ProbeIssued{At: notes, RequestID: 1, Method: domain.MethodDiscover, Version: "2026-07-28", Attempt: 2, Deadline: 10_000, Authority: domain.AuthorityCapability, Capabilities: jsontext.Value(`{"roots":{"listChanged":true}}`)},
	domain.LegacyExcluded{At: notes, Reason: "modern behaviour was seen under an unknown id"},
	domain.EraDetermined{At: notes, Era: domain.EraModern, Version: "2026-07-28", Evidence: frame.Digest, HasTools: true, Capabilities: none, Warnings: []string{"cache hint"}},
	domain.EraRefused{At: notes, Code: domain.CodeAmbiguousError, Reason: `a reason with "quotes", <angles> & a back\slash`, Evidence: frame.Digest},
	domain.ListRequested{At: notes, RequestID: 7, Page: 2, Cursor: &cursor, Era: domain.EraModern, Version: "2026-07-28", Capabilities: none, Deadline: 10_000},
	domain.CatalogAccepted{At: notes, Digest: frame.Digest, Tools: 2, CacheScope: domain.ScopePublic, TTL: 60_000, Pages: []string{frame.Digest}, Warnings: []string{"cache hint"}},
	domain.CatalogRefused{At: notes, Code: domain.CodeListTimeout, Reason: "tools/list was not answered within 10000 ms (probe_timeout)"},
	domain.ToolRejected{At: notes, Position: 4, Name: `bad\u202ename`, Code: domain.CodeToolNameInvalid},
	domain.CollisionDecided{Context: domain.DefaultContext, Name: "search", Policy: domain.PrefixOnCollision, Candidates: []domain.Owner{search, other}, Winner: &search},
	domain.NameMoved{Context: domain.DefaultContext, Name: "search", From: search, To: other},
	domain.NamespaceMerged{Context: domain.DefaultContext, Generation: 2, Digest: frame.Digest, Policy: domain.PrefixOnCollision, Tools: 5, Inputs: []domain.Input{{Peer: "notes", Seq: 18, Digest: frame.Digest}}},
	domain.ConfigRejected{Code: domain.CodeCollisionReject, Reason: "2 names are contested"},
	domain.CallRouted{CallID: call, At: notes, RequestID: 9, Tool: "notes/search", Local: "search", Era: domain.EraModern, Version: "2026-07-28", Capabilities: none, Generation: 2, Namespace: 22, Catalog: 18, Deadline: 60_000},
	domain.CallRefused{CallID: call, Code: domain.CodeUnknownTool, Reason: "no peer has a tool of this name; see waybill tools"},
	domain.CallJoined{CallID: domain.CallID{Host: "local", ID: "wb-again"}, First: "local/first", Received: 20},
	domain.CallAbandoned{CallID: call, At: notes, RequestID: 9, Reason: "deadline passed"},
	domain.CallSettled{CallID: call, Status: domain.StatusTimedOut, Code: domain.CodeTimedOut, Ran: domain.RanMaybe},
	domain.AnswerDropped{At: notes, RequestID: 9, Reason: "the call has ended"},
	domain.PayloadsErased{By: "oncall", Call: "local/first", Host: "local", Before: 1_785_240_000_009, Calls: 12},
	domain.SubscriptionRequested{At: notes, Context: "alice", RequestID: 6, Types: []string{domain.TypeToolsChanged}, Attempt: 2, Version: "2026-07-28", Capabilities: none, Deadline: 10_000},
	domain.SubscriptionOpened{At: notes, Context: "alice", RequestID: 6, Granted: []string{}, Missing: []string{domain.TypeToolsChanged}},
	domain.SubscriptionClosed{At: notes, Context: "alice", RequestID: 6, Code: domain.CodeNotAcknowledged, Reason: "the subscription was not acknowledged in time", Withdrawn: true, Reopen: 2_000},
	domain.ListDeferred{At: notes, Context: "alice", Why: domain.WhyChanged, Delay: 750},
	domain.CacheDecided{Context: "alice", Why: domain.WhyRead, Uses: []domain.CacheUse{{Peer: "notes", Owner: "bob", List: 18, Verdict: domain.CacheShared, Act: domain.ActServed, Age: 1_200}}},
	domain.ToolChanged{At: notes, Context: "alice", Local: "search", From: frame.Digest, To: bytes5.HMAC, Diff: []string{`description: "a" -> "b"`}, Held: true},
	domain.ToolFlagged{At: notes, Context: "alice", Local: "search", Marks: []domain.ToolMark{{Where: "/description", What: "zero_width", Count: 2}}},
	domain.NameFlagged{Context: domain.DefaultContext, Name: "search", Alike: []string{"Search", "5earch"}},
	domain.ToolApproved{By: "oncall", Peer: "notes", Context: "alice", Name: "notes/search", Local: "search", Digest: bytes5.HMAC},
}

// event puts data into an event as the service would: a decision has a cause.
func event(d domain.Data) domain.Event {
	e := domain.Event{Seq: 24, Time: 1_785_240_000_009_000_009, Mono: 9_000_000, Data: d}
	if kinds[d.Kind()].decision {
		e.Cause = 23
	}
	return e
}
