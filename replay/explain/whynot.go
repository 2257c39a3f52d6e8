package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"waybill/domain"
	"waybill/replay"
	"waybill/replay/moment"
)

const sectionAnswer = "answer"

// Question asks why a name could not be called at a moment.
type Question struct {
	Tool    string       // canonical, a model_name, local, or peer and local name
	At      moment.Point // the state after this event; the zero Point is the end, or what was before a last stop of the service
	Context string       // authorization context; that of the host, or the default one, where it is ""
	Host    string       // whose call it would be; "" for one that may use everything
}

// Answers to a Question that are no codes of a refusal.
const (
	Routable    = "routable"     // it could be called
	OtherName   = "other_name"   // the tool could, under another name
	NotInAnyWay = "unknown_tool" // nobody had it, under any form of the name
)

// WhyNot is the answer to a Question. Its JSON form is a contract.
type WhyNot struct {
	Log        string     `json:"log"`
	Tool       string     `json:"tool"`
	Context    string     `json:"context"`
	Host       string     `json:"host,omitempty"`
	Seq        int64      `json:"seq"`                  // the last event before the moment
	Time       string     `json:"time"`                 // of it
	Answer     string     `json:"answer"`               // routable, other_name, or the code with which a call would have been refused
	Peer       string     `json:"peer,omitempty"`       // to whom it would have gone
	Local      string     `json:"local,omitempty"`      // as what
	Name       string     `json:"name,omitempty"`       // the name that would have been good, where that is another
	Generation int64      `json:"generation,omitempty"` // of the names at that moment
	Sentences  []Sentence `json:"sentences"`
	Events     []Line     `json:"events"` // those that sentences rest on
}

// Text is the answer as sentences, one a line.
func (w WhyNot) Text() string { return text(w.Sentences) }

// Markdown is the answer as a report to hand in.
func (w WhyNot) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Why not %s\n\nLog `%s`, after event %d, %s. Answer: **%s**.\n", escaped(word(w.Tool)), w.Log, w.Seq, w.Time, escaped(w.Answer))
	markSentences(&b, w.Sentences)
	b.WriteString("\n## Events\n")
	markEvents(&b, w.Events)
	return b.String()
}

// AskWhyNot folds a log up to the moment and asks the rules themselves what would
// become of a call then. A moment beyond the log matches moment.ErrBeyond; one before
// its first event, or a log without any, ErrNoCall.
func AskWhyNot(ctx context.Context, src replay.Source, q Question) (WhyNot, error) {
	b := newBook(q.Tool)
	var stopped []domain.Event // not yet taken: nobody asks what a stopped service would have done
	err := replay.Scan(ctx, src, func(e domain.Event, _ replay.Record) error {
		if q.At.Seq != 0 && e.Seq > q.At.Seq || !q.At.Time.IsZero() && e.Time > q.At.Time.UnixNano() {
			return errDone
		}
		if _, stops := e.Data.(domain.ServiceStopped); q.At == (moment.Point{}) && (stops || len(stopped) > 0 && e.IsDecision()) {
			stopped = append(stopped, e)
			return nil
		}
		for _, before := range stopped {
			b.take(before)
		}
		stopped = nil
		b.take(e)
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errDone):
		return WhyNot{}, err
	case b.now.seq < q.At.Seq:
		return WhyNot{}, fmt.Errorf("%w: it has %d events, and %d was asked for", moment.ErrBeyond, b.now.seq, q.At.Seq)
	case b.now.seq == 0:
		return WhyNot{}, fmt.Errorf("%w: the log has no event up to that moment", ErrNoCall)
	}
	a := asker{book: b, q: q}
	a.set()
	a.answer()
	w := WhyNot{Log: src.ID(), Tool: q.Tool, Context: contextOf(a.context), Host: q.Host, Seq: b.now.seq, Time: when(b.now.time), Answer: a.code,
		Peer: a.owner.Peer, Local: a.owner.Local, Name: a.name, Generation: a.generation, Sentences: a.told.list}
	w.Events, err = lines(ctx, src, nil, w.Sentences)
	return w, err
}

// asker answers one question of a state that nobody else uses.
type asker struct {
	*book
	q          Question
	told       telling
	context    string
	generation int64
	code       string
	owner      domain.Owner
	name       string
}

// set makes the state that of the question: it is thrown away afterwards.
func (a *asker) set() {
	a.told.section = sectionAnswer
	a.context = a.q.Context
	if a.q.Host == "" {
		a.state.Config.Hosts = nil
	} else if a.context == "" {
		a.context = a.state.Config.ContextOf(a.q.Host)
	}
	a.generation = a.state.Tools(a.context, "", 1, a.now.mono).Generation
	m := a.spaces[contextOf(a.context)]
	a.told.say("moment", []note{a.now, m}, Facts{"seq": a.now.seq, "time": when(a.now.time), "context": contextOf(a.context), "generation": a.generation},
		"The moment is that after event %d, of %s; the names of context %s were at generation %d.", a.now.seq, when(a.now.time), word(contextOf(a.context)), a.generation)
}

// call asks the rules for the fate of a call.
func (a *asker) call(tool, form string, generation int64) (*domain.CallRouted, domain.CallRefused) {
	host := a.q.Host
	if host == "" {
		host = "anybody"
	}
	word := a.context
	if word == domain.DefaultContext {
		word = ""
	}
	d := domain.CallReceived{CallID: domain.CallID{Host: host, ID: domain.GeneratedPrefix + "why-not"}, Tool: tool, Form: form, Generation: generation, Context: word}
	e := domain.Event{Seq: a.now.seq + 1, Time: a.now.time, Mono: a.now.mono, Data: d}
	for _, next := range a.state.Decide(e) {
		switch next := next.(type) {
		case domain.CallRouted:
			return &next, domain.CallRefused{}
		case domain.CallRefused:
			return nil, next
		}
	}
	return nil, domain.CallRefused{Code: domain.CodeShuttingDown, Reason: "the service takes no call"}
}

func (a *asker) answer() {
	routed, refused := a.call(a.q.Tool, "", 0)
	if routed != nil {
		a.routable(*routed)
		return
	}
	a.code = string(refused.Code)
	if refused.Code == domain.CodeUnknownTool && a.otherName() {
		return
	}
	a.told.say("would_be_refused", []note{a.now, a.config}, Facts{"code": refused.Code, "reason": refused.Reason},
		"A call of %s would have been refused, because %s (%s): %s", word(a.q.Tool), codeText(refused.Code), word(string(refused.Code)), stop(refused.Reason))
	a.look(&a.told, query{host: a.q.Host, context: a.context, tool: a.q.Tool}, refused.Code)
	switch refused.Code {
	case domain.CodeNameMoved:
		if again, _ := a.call(a.q.Tool, "", a.generation); again != nil {
			a.told.say("with_generation", []note{a.spaces[contextOf(a.context)]}, Facts{"generation": a.generation, "peer": again.Peer, "local": again.Local},
				"A call that named generation %d would have gone to %s.", a.generation, ownerWords(domain.Owner{Peer: again.Peer, Local: again.Local}))
		}
	case domain.CodeUnknownTool:
		a.claims()
	}
}

// claims tells of a contested name that its tools are not routable under.
func (a *asker) claims() {
	for _, p := range a.state.Config.Peers {
		for _, local := range a.locals(a.q.Tool, p.Name) {
			n := a.book.name(a.context, local).collision
			if local != a.q.Tool && n.seq != 0 && a.inForce(a.context, local) {
				tellCollision(&a.told, n)
			}
		}
	}
}

func (a *asker) routable(d domain.CallRouted) {
	a.code, a.owner = Routable, domain.Owner{Peer: d.Peer, Local: d.Local}
	m := a.spaces[contextOf(a.context)]
	a.told.say("routable", []note{m}, Facts{"name": d.Tool, "peer": d.Peer, "local": d.Local, "era": d.Era, "version": d.Version, "cache": d.Cache},
		"It was routable: a call of %s would have gone to %s, in its incarnation %d, era %s, version %s.", word(d.Tool), ownerWords(a.owner), d.Incarnation, d.Era, word(d.Version))
	a.tellTenure(&a.told, a.context, d.Tool, a.owner)
	a.tellCollisions(&a.told, a.context, d.Tool, d.Local)
	if l, _ := a.listAt(d.Peer, a.context, d.Catalog); l.accepted.seq != 0 {
		a.told.say("listed_by", []note{l.accepted}, Facts{"peer": d.Peer}, "The list of peer %s that has it had been accepted at %s.", d.Peer, when(l.accepted.time))
	}
}

// otherName finds the tool under another name than the one that was asked for: the
// name of which that is the form for models, or a tool of that local name.
func (a *asker) otherName() bool {
	if d, _ := a.call(a.q.Tool, domain.ModelForm, 0); d != nil {
		a.otherwise("model_name", d.Tool, domain.Owner{Peer: d.Peer, Local: d.Local}, "it is the model_name of that")
		return true
	}
	for _, e := range a.state.Tools(a.context, "", 0, a.now.mono).Tools {
		local := e.Local == a.q.Tool
		prefixed := e.Peer+a.state.Config.Separator+e.Local == a.q.Tool || e.Peer+"/"+e.Local == a.q.Tool
		if d, _ := a.call(e.Canonical, "", a.generation); d == nil || !local && !prefixed {
			continue
		}
		how := "it is what its peer calls the tool"
		if prefixed {
			how = "the tool had the name alone, without that of its peer"
		}
		a.otherwise("other_name", e.Canonical, domain.Owner{Peer: e.Peer, Local: e.Local}, how)
		return true
	}
	return false
}

func (a *asker) otherwise(code, name string, o domain.Owner, how string) {
	a.code, a.name, a.owner = OtherName, name, o
	a.told.say(code, []note{a.spaces[contextOf(a.context)]}, Facts{"name": name, "peer": o.Peer, "local": o.Local},
		"No tool had the name %s, but %s was routable under the name %s: %s.", word(a.q.Tool), ownerWords(o), word(name), how)
	a.tellTenure(&a.told, a.context, name, o)
	a.tellCollisions(&a.told, a.context, name, o.Local)
}
