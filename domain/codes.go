package domain

// Code is a short stable word for why something was refused or ended as it
// did. Codes appear in events, in replies, in the Nats-Service-Error header
// and in reports, and never change their meaning. The README lists them all; a
// test keeps both lists equal.
type Code string

// Codes of a configuration, a pin or a process: the peer is not started.
const (
	CodeNotPinned       Code = "not_pinned"        // no entry in waybill.lock
	CodePinMismatch     Code = "pin_mismatch"      // the entry differs from what is there
	CodeUnpinnedCode    Code = "unpinned_code"     // a launcher that fetches or hides code, not accepted
	CodeCommandMissing  Code = "command_missing"   // the command is not found or not executable
	CodeDirMissing      Code = "directory_missing" // the working directory is not there
	CodeSpawnFailed     Code = "spawn_failed"      // the operating system refused to start it
	CodeCollisionReject Code = "collision_rejected"
)

// Codes of the stdio probe, one for each row that closes.
const (
	CodeNoCommonVersion   Code = "no_common_version"    // DiscoverResult or -32022 without a modern version we know
	CodeBrokenAnswer      Code = "broken_answer"        // not a valid DiscoverResult, nor a JSON-RPC error
	CodeVersionRefused    Code = "version_refused"      // -32022 twice for one version
	CodeLegacyOnly        Code = "legacy_only"          // -32022 offering legacy revisions only
	CodeNoVersionList     Code = "no_version_list"      // -32022 without a usable list
	CodeCapabilityMissing Code = "capability_missing"   // -32021 naming what we may not declare
	CodeHeaderMismatch    Code = "header_mismatch"      // -32020 again after stamping again
	CodeModernEvidence    Code = "modern_evidence"      // modern behaviour seen where only legacy was left
	CodeAmbiguousError    Code = "ambiguous_error"      // an unrecognised JSON-RPC error
	CodeAmbiguousSilence  Code = "ambiguous_silence"    // no answer inside the deadline
	CodeAmbiguousExit     Code = "ambiguous_exit"       // the connection closed
	CodeAmbiguousEmpty    Code = "ambiguous_empty"      // result is null or {}
	CodeLegacyInvalid     Code = "legacy_invalid"       // initialize answered, but not validly
	CodeLegacyRevision    Code = "legacy_revision"      // initialize answered with a revision not configured
	CodeLegacyError       Code = "legacy_error"         // initialize answered with an error
	CodeLegacySilence     Code = "legacy_silence"       // initialize not answered inside its deadline
	CodeLegacyExit        Code = "legacy_exit"          // the process ended during initialize
	CodeWatchdogLost      Code = "watchdog_lost"        // our watchdog process is gone, and the peers with it
	CodeListError         Code = "list_error"           // tools/list answered with an error
	CodeListInvalid       Code = "list_invalid"         // tools/list answered with something that is no list
	CodeListTimeout       Code = "list_timeout"         // tools/list not answered inside its deadline
	CodeListLimit         Code = "list_limit"           // too many pages or tools
	CodeListCursor        Code = "list_cursor"          // a cursor came twice, or is too long
	CodeListLost          Code = "list_lost"            // the transport was lost while listing
	CodePeerExited        Code = "peer_exited"          // the process ended after it was ready
	CodeToolUnnamed       Code = "tool_unnamed"         // a tool without a usable name
	CodeToolNameInvalid   Code = "tool_name_invalid"    // a name outside [A-Za-z0-9_./-]{1,128}
	CodeToolSchemaInvalid Code = "tool_schema_invalid"  // inputSchema is missing, or its type is not object
	CodeToolDuplicate     Code = "tool_duplicate"       // a second tool of this name on the same peer
	CodeToolTooLarge      Code = "tool_too_large"       // a definition that is too large, too deep or too costly
	CodeToolExternal      Code = "tool_schema_external" // a schema that refers to something outside of itself
	CodeNotSubscribed     Code = "not_subscribed"       // the peer does not agree to send notices of changes
	CodeNotAcknowledged   Code = "not_acknowledged"     // a subscription was not acknowledged in time
	CodeSubscriptionEnded Code = "subscription_ended"   // the peer ended a subscription
	CodeSubscriptionError Code = "subscription_error"   // subscriptions/listen was answered with an error
	CodeServiceRestarted  Code = "service_restarted"    // the service ended while the call was under way
	CodeTransportLost     Code = "transport_lost"       // the peer's transport was lost while the call was under way
	CodeCancelled         Code = "cancelled"            // the host gave the call up
	CodeTimedOut          Code = "timed_out"            // the call's deadline passed
	CodePeerError         Code = "peer_error"           // the peer answered with a JSON-RPC error
	CodeNoResultType      Code = "no_result_type"       // a modern result without resultType
	CodeBadResultType     Code = "bad_result_type"      // a resultType nobody defined
	CodeBadResult         Code = "bad_result"           // an answer that is no JSON-RPC response
	CodeToolError         Code = "tool_error"           // the tool itself reports an error
	CodeInputRequired     Code = "input_required"       // the tool asks for input first
	CodeShuttingDown      Code = "shutting_down"        // the service is stopping
	CodeResultTooLarge    Code = "result_too_large"     // ran, but the result does not fit a reply
	CodeRequestTooLarge   Code = "request_too_large"    // the request would exceed the frame limit
	CodeFrameTooLarge     Code = "frame_too_large"      // a peer's line exceeded limits.frame
	CodePeerHung          Code = "peer_hung"            // the peer gave no sign of life and was killed
	CodeUndeclaredInput   Code = "undeclared_input"     // asks for input by a capability that was not declared
	CodeTooManyRounds     Code = "too_many_rounds"      // asks for input again and again
	CodeOutputInvalid     Code = "output_invalid"       // the result does not match the tool's outputSchema
	CodeUnauthorized      Code = "unauthorized"         // HTTP 401, or no credential could be had
	CodeForbidden         Code = "forbidden"            // HTTP 403
	CodeUnavailable       Code = "unavailable"          // nobody at the endpoint, or not now; it is tried again
	CodeAmbiguousStatus   Code = "ambiguous_status"     // an HTTP refusal that carries no message
	CodeLegacyStatus      Code = "legacy_status"        // initialize answered with such a refusal
	CodeRedirect          Code = "redirect_refused"     // a redirect that is not followed
	CodeSessionGone       Code = "session_gone"         // a legacy session that the peer no longer knows
	CodeHTTPStatus        Code = "http_status"          // answered with an HTTP status and no message
	CodeToolHeader        Code = "tool_header_invalid"  // an x-mcp-header that the specification forbids
	CodeHeaderUnfit       Code = "header_unfit"         // an argument that its header cannot carry
	CodeExplainTooLong    Code = "explain_too_long"     // a log that takes longer to explain from than a host waits
	CodeOutcomeLost       Code = "outcome_lost"         // ended as it says, but the bytes of its result are gone
)

// Codes of a refused call: nothing was sent to any peer.
const (
	CodeBadRequest      Code = "bad_request"
	CodeDuplicateCall   Code = "duplicate_call"
	CodeOverloaded      Code = "overloaded"
	CodeLogUnavailable  Code = "log_unavailable"
	CodeAuditLag        Code = "audit_lag" // the stream is further behind the log than nats.max_lag
	CodeNotReady        Code = "not_ready"
	CodeUnknownTool     Code = "unknown_tool"
	CodeUnknownCall     Code = "unknown_call" // asked after, and not in the log
	CodeAmbiguousOwner  Code = "ambiguous_owner"
	CodeStaleRoute      Code = "stale_route"
	CodeNameMoved       Code = "name_moved"
	CodeUnknownGen      Code = "unknown_generation"
	CodePeerUnavailable Code = "peer_unavailable"
	CodeEraUnknown      Code = "era_unknown"
	CodeToolQuarantined Code = "tool_quarantined" // its definition changed and was not approved
	CodeNotAllowed      Code = "not_allowed"      // hosts: does not let this host use this tool
	CodeNotWaiting      Code = "not_waiting"      // input for a call that asks for none
	CodeInputMismatch   Code = "input_mismatch"   // input that does not repeat the call it goes on with
	CodeInputExpired    Code = "input_expired"    // input after input_window

	CodeIdempotencyConflict Code = "idempotency_conflict" // the idempotency_key is that of another call
	CodeOutcomeExpired      Code = "outcome_expired"      // the idempotency_key is older than idempotency_window
)

// Codes of an operator's command that changes nothing.
const (
	CodeUnknownPeer    Code = "unknown_peer"
	CodeNotDown        Code = "not_down"         // revive: the peer is up, or on its way
	CodeNotResendable  Code = "not_resendable"   // resend: not lost, not timed out, or too long ago
	CodePayloadNotKept Code = "payload_not_kept" // resend: the same arguments must be given again
	CodeUnknownCommand Code = "unknown_command"
	CodeNotQuarantined Code = "not_quarantined" // approve: the tool is routable as it is
	CodeToolDiffers    Code = "tool_differs"    // approve: the definition is another one by now
)

// Codes lists every code, in the order of the README's table.
func Codes() []Code {
	return []Code{
		CodeNotPinned, CodePinMismatch, CodeUnpinnedCode, CodeCommandMissing, CodeDirMissing, CodeSpawnFailed,
		CodeCollisionReject,
		CodeNoCommonVersion, CodeBrokenAnswer, CodeVersionRefused, CodeLegacyOnly, CodeNoVersionList,
		CodeCapabilityMissing, CodeHeaderMismatch, CodeModernEvidence, CodeAmbiguousError, CodeAmbiguousSilence,
		CodeAmbiguousExit, CodeAmbiguousEmpty, CodeLegacyInvalid, CodeLegacyRevision, CodeLegacyError,
		CodeLegacySilence, CodeLegacyExit, CodeWatchdogLost, CodeListError, CodeListInvalid, CodeListTimeout, CodeListLimit,
		CodeListCursor, CodeListLost, CodePeerExited, CodeToolUnnamed, CodeToolNameInvalid, CodeToolSchemaInvalid,
		CodeToolDuplicate, CodeToolTooLarge, CodeToolExternal, CodeNotSubscribed, CodeNotAcknowledged, CodeSubscriptionEnded, CodeSubscriptionError,
		CodeServiceRestarted, CodeTransportLost, CodeCancelled, CodeTimedOut, CodePeerError, CodeNoResultType,
		CodeBadResultType, CodeBadResult, CodeToolError, CodeInputRequired, CodeShuttingDown, CodeResultTooLarge,
		CodeRequestTooLarge, CodeFrameTooLarge, CodePeerHung, CodeUndeclaredInput, CodeTooManyRounds, CodeOutputInvalid,
		CodeUnauthorized, CodeForbidden, CodeUnavailable, CodeAmbiguousStatus, CodeLegacyStatus, CodeRedirect, CodeSessionGone,
		CodeHTTPStatus, CodeToolHeader, CodeHeaderUnfit, CodeOutcomeLost, CodeExplainTooLong,
		CodeBadRequest, CodeDuplicateCall, CodeOverloaded, CodeLogUnavailable, CodeAuditLag, CodeNotReady, CodeUnknownTool, CodeUnknownCall,
		CodeAmbiguousOwner, CodeStaleRoute, CodeNameMoved, CodeUnknownGen, CodePeerUnavailable, CodeEraUnknown, CodeToolQuarantined, CodeNotAllowed,
		CodeNotWaiting, CodeInputMismatch, CodeInputExpired, CodeIdempotencyConflict, CodeOutcomeExpired,
		CodeUnknownPeer, CodeNotDown, CodeNotResendable, CodePayloadNotKept, CodeUnknownCommand, CodeNotQuarantined, CodeToolDiffers,
	}
}

// Status says how a call ended.
type Status string

// The ways a call can end. Each is final.
const (
	StatusComplete      Status = "complete"
	StatusToolError     Status = "tool_error"
	StatusInputRequired Status = "input_required"
	StatusProtocolError Status = "protocol_error"
	StatusRefused       Status = "refused"
	StatusTimedOut      Status = "timed_out"
	StatusCancelled     Status = "cancelled"
	StatusLost          Status = "lost"
)

// Ran says whether a call's tool ran, as far as Waybill can know.
type Ran string

// What can be known about a run.
const (
	RanYes   Ran = "yes"
	RanNo    Ran = "no"
	RanMaybe Ran = "maybe"
)
