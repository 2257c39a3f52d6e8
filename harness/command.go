package harness

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"waybill/domain"
)

// CommandReply is what an operator gets for a command. Its JSON form, made by
// Encode, is a contract.
type CommandReply struct {
	By     string
	Verb   string
	Peer   string // "" for none
	Call   string // key: host/call_id; "" for none
	Tool   string // canonical name; "" for none
	Done   bool   // it is decided on and durable; else Code and Reason say why it changes nothing
	Code   domain.Code
	Reason string
	Seqs   []int64 // of the command and of what it led to at once; none where it was refused unrecorded
	Log    string
	Erased *Erased // what was erased; nil where nothing was to be
	Reply  *Reply  // how a call ended that was sent again; nil for none
}

// commandHead is the JSON form but for the outcome, whose bytes are the peer's.
type commandHead struct {
	By     string  `json:"by"`
	Verb   string  `json:"verb"`
	Peer   *string `json:"peer"`
	Call   *string `json:"call"`
	Tool   string  `json:"tool,omitempty"`
	Code   *string `json:"code"`
	Reason *string `json:"reason"`
	Seqs   []int64 `json:"seqs"`
	Log    string  `json:"log"`
	Erased *Erased `json:"erased,omitzero"`
}

// Encode returns the JSON form: by, verb, peer, call, tool where one was named, code, reason, seqs, log and
// outcome, and erased behind an erase. Every key is there, null where there is nothing to say: code is null
// for a command that was done. The outcome is Reply.Encode of the call that was
// sent again.
func (r CommandReply) Encode() []byte {
	head, err := json.Marshal(commandHead{By: r.By, Verb: r.Verb, Peer: wordOrNull(r.Peer), Call: wordOrNull(r.Call), Tool: r.Tool,
		Code: wordOrNull(string(r.Code)), Reason: wordOrNull(r.Reason), Seqs: r.Seqs, Log: r.Log, Erased: r.Erased}, lenient)
	if err != nil {
		panic("a command's reply cannot be encoded: " + err.Error()) // its fields are strings and numbers
	}
	out := append(head[:len(head)-1], `,"outcome":`...)
	if r.Reply == nil {
		return append(out, "null}"...)
	}
	return append(append(out, r.Reply.Encode()...), '}')
}

func wordOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// command is one that waits for the loop, and then for its call.
type command struct {
	claimed atomic.Bool // by the loop or by the end of ctx, whichever comes first
	decided chan CommandReply
	settled chan Reply
	erased  chan error
}

// decided is a command of the batch that is on its way to the log.
type decided struct {
	command *command
	reply   CommandReply
}

// Command records what an operator orders and returns when what follows from it
// is durable: Done, or refused with a code and a reason. arguments are the bytes
// that a call is to be sent again with, nil for those that are kept of it; they are
// named by their digest and held until the call has ended. A command that cannot be recorded is
// refused as bad_request, with no seqs.
//
// A resend returns when the call has been settled, with its reply. If ctx ends
// before that, the error matches the cause and the reply says what was done: the
// call goes on. An erase returns when the bytes are gone, and after an error they
// will be. If ctx ends before the loop has taken the command, it is not
// recorded and never will be. Safe for concurrent use.
func (l *Loop) Command(ctx context.Context, d domain.OperatorCommanded, arguments []byte) (CommandReply, error) {
	if r, refused := l.refuseCommand(ctx, d); refused {
		return r, nil
	}
	d.Arguments, d.Calls = nil, 0
	if d.Verb == domain.VerbErase {
		var err error
		if d.Calls, err = countErased(ctx, l.cfg.Payloads, l.cfg.Clock.Wall(), d); err != nil {
			return CommandReply{}, err
		}
	}
	if arguments != nil {
		p := l.cfg.Digest(arguments)
		d.Arguments = &p
	}
	c := &command{decided: make(chan CommandReply, 1), settled: make(chan Reply, 1), erased: make(chan error, 1)}
	if !l.inbox.put(input{data: d, arguments: arguments, command: c}) {
		return CommandReply{}, errStopping
	}
	r, err := l.decision(ctx, c)
	switch {
	case err != nil || !r.Done:
		return r, err
	case r.Verb == domain.VerbResend:
		return c.outcome(ctx, r)
	case r.Verb == domain.VerbErase:
		return c.awaitErasure(ctx, r)
	}
	return r, nil
}

// refuseCommand answers a command that cannot be recorded.
func (l *Loop) refuseCommand(ctx context.Context, d domain.OperatorCommanded) (r CommandReply, refused bool) {
	if problem := l.unfit(d); problem != "" {
		for _, word := range []*string{&d.By, &d.Peer, &d.Call, &d.Tool} {
			*word = string(l.cfg.Redact([]byte(*word))) // they go into the answer
		}
		r = l.commandReply(d)
		r.Code, r.Reason = domain.CodeBadRequest, problem
		return r, true
	}
	if d.Verb == domain.VerbErase && !l.everKept(ctx) {
		r = l.commandReply(d)
		r.Code, r.Reason = domain.CodePayloadNotKept, "this data directory keeps no payloads, and never has"
		return r, true
	}
	return r, false
}

// everKept reports whether there may be anything to erase.
func (l *Loop) everKept(ctx context.Context) bool {
	if l.cfg.Payloads == nil {
		return false
	}
	if l.cfg.Keep {
		return true
	}
	ever, err := l.cfg.Payloads.Ever(ctx)
	return ever || err != nil // what is wrong is found when it is counted
}

var operatorName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// maxWord bounds each word of a command, in bytes: it is recorded before anybody
// knows what it names.
const maxWord = 256

// unfit says why a command cannot be recorded.
func (l *Loop) unfit(d domain.OperatorCommanded) string {
	if !operatorName.MatchString(d.By) {
		return "by must be 1 to 63 of a-z 0-9 _ -, and begin with a letter or a digit"
	}
	for _, word := range []string{d.By, d.Verb, d.Peer, d.Call, d.Host, d.Tool, d.Context, d.Digest} {
		switch {
		case len(word) > maxWord || !utf8.ValidString(word):
			return fmt.Sprintf("verb, peer, call, host and tool must be at most %d bytes of UTF-8", maxWord)
		case string(l.cfg.Redact([]byte(word))) != word:
			return "the command holds a secret of the configuration"
		}
	}
	return ""
}

func (l *Loop) commandReply(d domain.OperatorCommanded) CommandReply {
	return CommandReply{By: d.By, Verb: d.Verb, Peer: d.Peer, Call: d.Call, Tool: d.Tool, Seqs: []int64{}, Log: l.cfg.Log.ID()}
}

// decision waits for what follows from a command.
func (l *Loop) decision(ctx context.Context, c *command) (CommandReply, error) {
	select {
	case r := <-c.decided:
		return r, nil
	case <-l.inbox.ended:
	case <-ctx.Done():
	}
	if c.claimed.CompareAndSwap(false, true) {
		return CommandReply{}, errors.Join(ctx.Err(), l.endedErr())
	}
	select {
	case r := <-c.decided:
		return r, nil
	case <-l.inbox.ended:
	}
	select {
	case r := <-c.decided: // the loop's last word
		return r, nil
	default:
		return CommandReply{}, fmt.Errorf("%w; whether the command was recorded is in the log", errStopping)
	}
}

// endedErr is errStopping once the loop has ended.
func (l *Loop) endedErr() error {
	select {
	case <-l.inbox.ended:
		return errStopping
	default:
		return nil
	}
}

// outcome waits for the end of the call that was sent again. The loop answers
// every call before it ends.
func (c *command) outcome(ctx context.Context, r CommandReply) (CommandReply, error) {
	select {
	case reply := <-c.settled:
		r.Reply = &reply
		return r, nil
	case <-ctx.Done():
		return r, fmt.Errorf("call %s was sent again and goes on; ask for its outcome: %w", r.Call, context.Cause(ctx))
	}
}

// obey notes what follows from a command, to be told when it is durable, and who
// waits for the call that is sent again.
func (l *Loop) obey(in input, steps []domain.Event) {
	d, ok := in.data.(domain.OperatorCommanded)
	if !ok || in.command == nil {
		return
	}
	r := l.commandReply(d)
	r.follow(steps)
	for _, e := range steps {
		switch x := e.Data.(type) {
		case domain.PayloadsErased:
			l.keeper.waiting[e.Seq] = in.command
		case domain.CallResent:
			if k := in.keeping; k != nil && k.known {
				l.keeper.hold(x.CallKey(), k.key)
			}
			doc := l.recall(x.CallID)
			l.calls[x.CallKey()] = &underway{arguments: in.arguments, doc: doc, trace: doc.trace,
				reply: func(reply Reply) { in.command.settled <- reply }}
		}
	}
	l.commands = append(l.commands, decided{in.command, r})
}

// tellCommands says what follows from the commands of a batch that is durable.
func (l *Loop) tellCommands() {
	for _, c := range l.commands {
		c.command.decided <- c.reply
	}
	l.commands = nil
}
