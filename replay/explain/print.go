package explain

import (
	"fmt"
	"strings"
)

// Line is the sentence with the events it rests on, as a person reads it.
func (s Sentence) Line() string {
	return s.Text + " " + eventsText(s.Seqs)
}

func eventsText(seqs []int64) string {
	if len(seqs) == 0 {
		return "(no event)"
	}
	var list []string
	for _, seq := range seqs {
		list = append(list, fmt.Sprint(seq))
	}
	return "(" + one(len(list), "event ", "events ") + strings.Join(list, ", ") + ")"
}

// Text is the explanation as sentences, one a line.
func (x Explanation) Text() string { return text(x.Sentences) }

func text(list []Sentence) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(s.Line())
		b.WriteByte('\n')
	}
	return b.String()
}

var headings = map[string]string{
	sectionRequest:  "What was asked",
	sectionName:     "Whose the name was",
	sectionList:     "The list it was looked up in",
	sectionPeer:     "The peer",
	sectionExchange: "What was sent, and what came of it",
	sectionRefusal:  "Why it was refused",
	sectionEnd:      "How it ended",
	sectionAfter:    "Afterwards",
	sectionAnswer:   "The answer",
}

// Markdown is the explanation as a report to hand in.
func (x Explanation) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Call %s\n\nLog `%s`. %s\n", escaped(x.Call), x.Log, outcomeText(x.Outcome))
	markSentences(&b, x.Sentences)
	b.WriteString("\n## Events\n\nThose marked * are the call's own. A digest is the hash of the event's leaf in the tree of the log.\n")
	markEvents(&b, x.Events)
	return b.String()
}

func outcomeText(o Outcome) string {
	switch o.Kind {
	case Settled:
		return fmt.Sprintf("Ended as **%s**; ran: **%s** (event %d).", escaped(string(o.Status)), escaped(string(o.Ran)), o.Seq)
	case Refused:
		return fmt.Sprintf("Refused with **%s** (event %d).", escaped(string(o.Code)), o.Seq)
	case Joined:
		return fmt.Sprintf("Had the outcome of call **%s** (event %d).", escaped(o.First), o.Seq)
	}
	return fmt.Sprintf("No end in the log, up to event %d of the call.", o.Seq)
}

func markSentences(b *strings.Builder, list []Sentence) {
	section := ""
	for _, s := range list {
		if s.Section != section {
			section = s.Section
			fmt.Fprintf(b, "\n## %s\n\n", headings[section])
		}
		fmt.Fprintf(b, "- %s\n", escaped(s.Line()))
	}
}

func markEvents(b *strings.Builder, list []Line) {
	b.WriteString("\n| seq | kind | time | digest |\n| ---: | --- | --- | --- |\n")
	for _, l := range list {
		own := ""
		if l.OfCall {
			own = " \\*"
		}
		fmt.Fprintf(b, "| %d%s | %s | %s | `%s` |\n", l.Seq, own, l.Kind, l.Time, l.Digest)
	}
}

// escaped keeps text from being taken for markup.
func escaped(s string) string {
	return strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "&lt;", ">", "&gt;", "|", "\\|", "#", "\\#", "&", "&amp;").Replace(s)
}
