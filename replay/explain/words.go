package explain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"waybill/domain"
)

// word is a name as it stands in a sentence: as it is where it is plain, else quoted,
// since somebody else chose it.
func word(s string) string {
	const most = 256
	for _, r := range s {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return strconv.QuoteToASCII(cut(s, most))
		}
	}
	if s == "" {
		return `""`
	}
	return cut(s, most)
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// plain makes every character of a sentence one that only prints.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, s)
}

// shown is a name as tool.rejected has it.
func shown(name string) string {
	q := strconv.QuoteToASCII(name[:min(len(name), 128)])
	return q[1 : len(q)-1]
}

// some joins the first of a list.
func some(list []string, most int) string {
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// ownerWords names a tool by its peer.
func ownerWords(o domain.Owner) string {
	if o == (domain.Owner{}) {
		return "nobody"
	}
	return "the tool " + word(o.Local) + " of peer " + o.Peer
}

// stop ends a reason that another program wrote with one full stop.
func stop(s string) string { return strings.TrimRight(s, ". ") + "." }

var policyWords = map[string]string{
	domain.PrefixOnCollision: "the first of them by the name of its peer keeps the name, the others are called by peer and name, and what still meets belongs to nobody",
	domain.RejectOnCollision: "the first of them by the name of its peer keeps the name, the others are left out, and what still meets belongs to nobody",
	domain.PrefixAlways:      "each tool is called by peer and name, and what still meets belongs to nobody",
}

var listWords = map[string]string{
	"":                "the peer had just come up",
	domain.WhyChanged: "the peer announced a change",
	domain.WhyRead:    "a host read the tools",
	domain.WhyMissed:  "a call named a tool that nobody had",
	domain.WhyUnknown: "the peer said that it did not know the tool of a call",
	domain.WhyAgain:   "the last try had failed",
	domain.WhyRefresh: "the time of list_refresh had passed",
	domain.WhyListen:  "a subscription was opened after it had been read",
	domain.WhyHeader:  "the peer said that the headers of a call did not match it",
}

var cacheWords = map[string]string{
	domain.CacheFresh:  "it was within its time, and no change had been announced",
	domain.CacheStale:  "its time was over or a change had been announced, and it was served all the same",
	domain.CacheShared: "it is public, and was read for another context",
	domain.CacheNone:   "there was no list, or the last one had been served for too long",
}

var actWords = map[string]string{
	domain.ActServed:   "it was served as it was",
	domain.ActRead:     "it was read again",
	domain.ActJoined:   "it was being read already",
	domain.ActDeferred: "it was to be read again when its interval had passed",
	domain.ActDown:     "it could not be read, since the peer was not there",
}

var authorityWords = map[string]string{
	domain.AuthorityFirst:       "as its first message",
	domain.AuthorityVersion:     "again at the version that both sides know, since the peer had refused the other (-32022)",
	domain.AuthorityCapability:  "again with the capabilities that the peer required (-32021) and the configuration allows",
	domain.AuthorityStamp:       "again with its metadata stamped again (-32020)",
	domain.AuthorityAllowLegacy: "on the operator's word: allow_legacy is set for this peer",
	domain.AuthorityCredential:  "again with the credential of another context, since the one before was refused",
}

// Rules by which a call is sent again: the ground, and on whose authority it is one.
var ruleWords = map[string][2]string{
	domain.RuleNeverWritten: {"the request before had certainly never reached the peer", "the configuration, which lets a call be sent again by rule so many times (resends)"},
	domain.RuleHeader:       {"the peer had rejected it before it ran, for its headers (-32020)", "the configuration, which lets a call be sent again by rule so many times (resends)"},
	domain.RuleCapability:   {"the peer had rejected it before it ran, for capabilities that may be declared and were not (-32021)", "the configuration, which lets a call be sent again by rule so many times (resends)"},
	domain.RuleVersion:      {"the peer had rejected it before it ran, for its version (-32022)", "the configuration, which lets a call be sent again by rule so many times (resends)"},
	domain.RuleSession:      {"the peer had rejected it before it ran, since its session was gone (HTTP 404)", "the configuration, which lets a call be sent again by rule so many times (resends)"},
	domain.RuleRepeatable:   {"the tool is marked as one that may run twice", "the configuration (repeatable)"},
	domain.RuleKey:          {"it carries the idempotency key that the tool honours", "the configuration (idempotency)"},
	domain.RuleHints:        {"the tool's own hints say that it may run twice", "the configuration (trust_hints)"},
	domain.RuleContinue:     {"the peer asked for nothing but to be asked again with its requestState", "the peer's own answer, for at most input_rounds of the configuration"},
	domain.RuleInput:        {"the host answered what the tool had asked for", "the host"},
	domain.RuleOperator:     {"an operator ordered it", "the operator"},
}

var statusWords = map[domain.Status]string{
	domain.StatusComplete:      "complete: the host got the tool's result",
	domain.StatusToolError:     "tool_error: the tool itself reported an error",
	domain.StatusInputRequired: "input_required: the tool asks the host for something first",
	domain.StatusProtocolError: "protocol_error: there was an answer, and it is no result",
	domain.StatusTimedOut:      "timed_out: there was no answer in time",
	domain.StatusCancelled:     "cancelled: it was given up before there was an answer",
	domain.StatusLost:          "lost: there will be no answer",
}

// eraWords say what in the evidence decides an era.
var eraWords = map[domain.Era]string{
	domain.EraModern: "only a valid DiscoverResult makes a peer modern, and that was one",
	domain.EraLegacy: "what came of server/discover was ambiguous, the operator allows legacy for this peer, and initialize had a valid result",
}

var ranWords = map[domain.Ran]string{
	domain.RanYes:   "The tool ran",
	domain.RanNo:    "The tool certainly did not run",
	domain.RanMaybe: "The tool may have run",
}

// codeWords says what a code of a call's end, of a hold or of a refusal means.
var codeWords = map[domain.Code]string{
	domain.CodeServiceRestarted: "the service ended while the call was under way",
	domain.CodeTransportLost:    "the peer's transport was lost while the call was under way",
	domain.CodeCancelled:        "the host gave the call up",
	domain.CodeTimedOut:         "the call's deadline passed",
	domain.CodePeerError:        "the peer answered with a JSON-RPC error",
	domain.CodeNoResultType:     "a modern result has no resultType, which is never accepted",
	domain.CodeBadResultType:    "the result has a resultType that nobody defined, or that the era does not know",
	domain.CodeBadResult:        "the answer is no JSON-RPC response",
	domain.CodeToolError:        "the tool reports an error",
	domain.CodeInputRequired:    "the tool asks for input first",
	domain.CodeShuttingDown:     "the service was stopping",
	domain.CodeResultTooLarge:   "the tool ran, and its result does not fit a reply",
	domain.CodeRequestTooLarge:  "the request would have exceeded the frame limit",
	domain.CodeFrameTooLarge:    "the peer's answer exceeded limits.frame",
	domain.CodePeerHung:         "the peer gave no sign of life and was given up",
	domain.CodeUndeclaredInput:  "the tool asks for input by a capability that was not declared to it",
	domain.CodeTooManyRounds:    "the tool asked for input more often than input_rounds allows",
	domain.CodeOutputInvalid:    "the result does not match the tool's outputSchema",
	domain.CodeUnauthorized:     "the endpoint refused the credential (HTTP 401), or none could be had",
	domain.CodeForbidden:        "the endpoint forbids it (HTTP 403)",
	domain.CodeUnavailable:      "nobody was at the endpoint",
	domain.CodeSessionGone:      "the peer no longer knew the session",
	domain.CodeHTTPStatus:       "the endpoint answered with an HTTP status and no message",
	domain.CodeRedirect:         "the endpoint answered with a redirect, which is not followed",
	domain.CodeHeaderMismatch:   "the peer says that the headers of the request do not match it (-32020)",
	domain.CodeHeaderUnfit:      "an argument cannot be carried by the header that the tool asks for",

	domain.CodeBadRequest:      "the submission is no call",
	domain.CodeDuplicateCall:   "the host had used this call_id already",
	domain.CodeOverloaded:      "as many calls were under way as the configuration allows",
	domain.CodeLogUnavailable:  "the log could not be written",
	domain.CodeAuditLag:        "the copy of the log was too far behind",
	domain.CodeNotReady:        "the peers were still being probed and listed",
	domain.CodeUnknownTool:     "no peer had a tool of this name for this context",
	domain.CodeAmbiguousOwner:  "several tools claim the name and none owns it",
	domain.CodeStaleRoute:      "the name had changed its owner since the generation that the host named",
	domain.CodeNameMoved:       "the name had changed its owner a moment ago, and the host named no generation",
	domain.CodeUnknownGen:      "the host named a generation that did not exist yet",
	domain.CodePeerUnavailable: "the peer that owns the tool could not be called",
	domain.CodeEraUnknown:      "the era of the peer that owns the tool was not known",
	domain.CodeToolQuarantined: "the tool's definition had changed and was not approved",
	domain.CodeNotAllowed:      "the configuration does not let the host use it",
	domain.CodeNotWaiting:      "the call that the input names asks for none",
	domain.CodeInputMismatch:   "the input does not repeat the call that it goes on with",
	domain.CodeInputExpired:    "the input came after input_window",

	domain.CodeIdempotencyConflict: "its idempotency key is that of another call",
	domain.CodeOutcomeExpired:      "the call under its idempotency key was made longer ago than idempotency_window",
	domain.CodeCollisionReject:     "the configuration was rejected for a collision",
}

// codeText is what a code means; the code itself where nothing more is known.
func codeText(c domain.Code) string {
	if w, ok := codeWords[c]; ok {
		return w
	}
	return "code " + word(string(c))
}

func exitText(d domain.PeerExited) string {
	switch {
	case d.Signal != "":
		return fmt.Sprintf("%s, signal %s", word(d.Cause), word(d.Signal))
	case d.Cause == "exited":
		return fmt.Sprintf("exited, status %d", d.Status)
	}
	return word(d.Cause)
}

// factsText says what an answer was.
func factsText(f domain.Facts) string {
	switch {
	case f.Kind == domain.FactError:
		return fmt.Sprintf("a JSON-RPC error (%d)", f.ErrorCode)
	case f.Kind == domain.FactBroken:
		return "something that is no JSON-RPC response"
	case f.IsError:
		return "a result that reports an error of the tool"
	case f.ResultType == "?":
		return "a result of a resultType that nobody defined"
	case f.ResultType == "":
		return "a result without a resultType"
	case len(f.Asks) > 0:
		return "a result that is " + f.ResultType + " and asks for " + strings.Join(f.Asks, ", ")
	}
	return "a result that is " + f.ResultType
}

func statusText(s domain.Status) string {
	if w, ok := statusWords[s]; ok {
		return w
	}
	return word(string(s))
}
