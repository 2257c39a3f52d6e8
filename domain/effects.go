package domain

import "github.com/go-json-experiment/json/jsontext"

// Effect is an act towards the world. It follows from one decision and is
// performed only after that decision is durable.
type Effect interface{ effect() }

// Launch starts one incarnation of a peer. Its outcome is peer.spawned or
// spawn.failed.
type Launch struct {
	At
	Delay int64 // milliseconds to wait first
}

// Send writes one request. Its outcome is exactly one of an answer,
// exchange.failed and deadline.passed.
type Send struct {
	At
	RequestID    int64
	Method       string
	Era          Era    // EraUnknown for a probe
	Version      string // stamped into _meta, or proposed by initialize
	Capabilities jsontext.Value
	Cursor       *string  // of tools/list
	Call         string   // key of the call, for tools/call: its arguments travel as the host wrote them
	Tool         string   // local name, for tools/call
	Deadline     int64    // milliseconds from release; the wait ends then
	Idle         int64    // milliseconds from the last progress; 0 where progress extends nothing
	Limit        int64    // milliseconds from release; no progress extends the wait beyond it
	Progress     bool     // a progressToken goes with it: the request id
	Context      string   // authorization context; "" for the default one
	Types        []string // of subscriptions/listen; its Deadline is for the acknowledgement
}

// Body is what a tools/call carries besides what is decided: the bytes of the
// host, as it wrote them, and what its result is checked against. None of it but the
// trace is ever in an event.
type Body struct {
	Arguments      jsontext.Value // an object
	InputResponses jsontext.Value // an object; nil for none
	RequestState   jsontext.Value // a string, quoted; nil for none
	OutputSchema   jsontext.Value // as the peer wrote it; nil for none
	InputSchema    jsontext.Value // says which arguments are mirrored in headers; nil where none are
	Trace          Trace          // of the host's last submission, as its call.received has it
}

// SelectEra tells the connection which era it speaks from here on. For legacy it
// sends notifications/initialized.
type SelectEra struct {
	At
	Era     Era
	Version string
}

// Withdraw stops waiting for a request and tells the peer
// (notifications/cancelled). Never for a probe or initialize.
type Withdraw struct {
	At
	RequestID int64
	Reason    string
}

// Stop ends one incarnation: its whole process group, by the ladder, or at once.
type Stop struct {
	At
	Kill bool
}

// Wake reports wait.passed for a call after a time, in milliseconds.
type Wake struct {
	Call  string
	After int64
}

// Remind reports health.due for an incarnation after a time, in milliseconds. One
// that is gone needs no reminder.
type Remind struct {
	At
	After int64
}

// What a Due is about.
const (
	DueList         = "list"
	DueSubscription = "subscription"
)

// Due reports list.due or subscription.due for a list of an incarnation after a
// time, in milliseconds, in place of what was due before. One that is read, or an
// incarnation that is gone, needs no reminder.
type Due struct {
	At
	Context string // "" for the default one
	What    string
	After   int64
}

// Answer replies to the host: the call has ended.
type Answer struct{ Call string }

// Join answers a submission with the outcome of the call First, or has it wait for
// that.
type Join struct {
	Call     string // key of the submission
	First    string // key of the call
	Received int64  // seq of its call.received
	Seq      int64  // of call.joined
}

// Erase erases the kept bytes and keys of the calls that were received before the
// event Seq, as PayloadsErased says. It may be done twice.
type Erase struct {
	Seq    int64
	Call   string
	Host   string
	Before int64 // milliseconds since 1970
	Only   Kept  // of those received before; "" for all
}

// Halt ends the service: the configuration was rejected.
type Halt struct {
	Code   Code
	Reason string
}

func (Launch) effect()    {}
func (Send) effect()      {}
func (SelectEra) effect() {}
func (Withdraw) effect()  {}
func (Stop) effect()      {}
func (Wake) effect()      {}
func (Remind) effect()    {}
func (Due) effect()       {}
func (Answer) effect()    {}
func (Join) effect()      {}
func (Halt) effect()      {}
func (Erase) effect()     {}

// Effects names the acts a decision releases, in order. Observations release
// nothing.
func Effects(e Event) []Effect {
	switch d := e.Data.(type) {
	case PeerLaunched:
		return []Effect{Launch{At: d.At}}
	case PeerRestarted:
		return []Effect{Launch{At: d.At, Delay: d.Delay}}
	case ProbeIssued:
		return []Effect{Send{At: d.At, RequestID: d.RequestID, Method: d.Method, Era: EraUnknown, Version: d.Version,
			Capabilities: d.Capabilities, Deadline: d.Deadline, Context: d.Context}}
	case EraDetermined:
		return d.effects()
	case EraRefused:
		return []Effect{Stop{At: d.At}}
	case PeerAbandoned:
		return []Effect{Stop{At: d.At, Kill: true}}
	case ListRequested:
		return []Effect{Send{At: d.At, RequestID: d.RequestID, Method: MethodList, Era: d.Era, Version: d.Version,
			Capabilities: d.Capabilities, Cursor: d.Cursor, Deadline: d.Deadline, Context: d.Context}}
	case HealthRequested:
		return []Effect{Send{At: d.At, RequestID: d.RequestID, Method: d.Method, Era: d.Era, Version: d.Version,
			Capabilities: d.Capabilities, Deadline: d.Deadline, Context: d.Context}, Remind{At: d.At, After: d.Every}}
	case ListDeferred:
		return []Effect{Due{At: d.At, Context: d.Context, What: DueList, After: d.Delay}}
	case SubscriptionRequested:
		return []Effect{Send{At: d.At, RequestID: d.RequestID, Method: MethodListen, Era: EraModern, Version: d.Version,
			Capabilities: d.Capabilities, Deadline: d.Deadline, Context: d.Context, Types: d.Types}}
	case SubscriptionClosed:
		return d.effects()
	case ConfigRejected:
		return []Effect{Halt(d)}
	case PayloadsErased:
		return []Effect{d.effect(e.Seq)}
	}
	return callEffects(e)
}

func callEffects(e Event) []Effect {
	switch d := e.Data.(type) {
	case CallRouted:
		return []Effect{Send{At: d.At, RequestID: d.RequestID, Method: MethodCall, Era: d.Era, Version: d.Version,
			Capabilities: d.Capabilities, Call: d.CallKey(), Tool: d.Local, Deadline: d.Deadline,
			Idle: d.Idle, Limit: d.Limit, Progress: d.Progress, Context: d.Context}}
	case CallResent:
		return []Effect{Send{At: d.At, RequestID: d.RequestID, Method: MethodCall, Era: d.Era, Version: d.Version,
			Capabilities: d.Capabilities, Call: d.CallKey(), Tool: d.Local, Deadline: d.Deadline,
			Idle: d.Idle, Limit: d.Limit, Progress: d.Progress, Context: d.Context}}
	case CallHeld:
		return []Effect{Wake{Call: d.CallKey(), After: d.Wait}}
	case CallAbandoned:
		return []Effect{Withdraw{At: d.At, RequestID: d.RequestID, Reason: d.Reason}}
	case CallSettled:
		return []Effect{Answer{d.CallKey()}}
	case CallJoined:
		return []Effect{Join{Call: d.CallKey(), First: d.First, Received: d.Received, Seq: e.Seq}}
	case CallRefused:
		return []Effect{Answer{d.CallKey()}}
	}
	return nil
}

func (d SubscriptionClosed) effects() (out []Effect) {
	if d.Withdrawn {
		out = append(out, Withdraw{At: d.At, RequestID: d.RequestID, Reason: string(d.Code)})
	}
	if d.Reopen > 0 {
		out = append(out, Due{At: d.At, Context: d.Context, What: DueSubscription, After: d.Reopen})
	}
	return out
}

func (d EraDetermined) effects() []Effect {
	out := []Effect{SelectEra{At: d.At, Era: d.Era, Version: d.Version}}
	if d.HealthEvery > 0 {
		out = append(out, Remind{At: d.At, After: d.HealthEvery})
	}
	return out
}
