package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Config renders the accounts as a snippet of nats-server configuration. It is what
// the embedded server runs with, too.
func Config(prefix, logID string, c Credentials) []byte {
	list, between := layout(prefix, logID, c)
	var b bytes.Buffer
	b.WriteString("accounts {\n")
	for _, a := range list {
		fmt.Fprintf(&b, "  %s {\n", a.name)
		if a.jetStream {
			b.WriteString("    jetstream: enabled\n")
		}
		writeUsers(&b, a.users)
		writeExports(&b, a.name, between)
		writeImports(&b, a.name, between)
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func writeUsers(b *bytes.Buffer, list []user) {
	b.WriteString("    users = [\n")
	for _, u := range list {
		fmt.Fprintf(b, "      # %s\n      {\n        nkey: %s\n        permissions: {\n", u.name, u.public)
		fmt.Fprintf(b, "          publish: { allow: %s%s }\n", quotedList(u.publish), refusal(u.refuse))
		fmt.Fprintf(b, "          subscribe: { allow: %s%s }\n", quotedList(u.subscribe), refusal(u.blind))
		b.WriteString("        }\n      }\n")
	}
	b.WriteString("    ]\n")
}

// writeExports writes each subject once, with all who get it.
func writeExports(b *bytes.Buffer, name string, between []passage) {
	var lines []string
	takers := map[string][]string{}
	for _, p := range between {
		if p.from != name {
			continue
		}
		line := "stream: " + quoted(p.subject)
		if p.service {
			line = "service: " + quoted(p.subject)
		}
		if p.streamed {
			line += ", response: stream"
		}
		if takers[line] == nil {
			lines = append(lines, line)
		}
		takers[line] = append(takers[line], p.to)
	}
	if len(lines) == 0 {
		return
	}
	b.WriteString("    exports = [\n")
	for _, line := range lines {
		fmt.Fprintf(b, "      { %s, accounts: [%s] }\n", line, strings.Join(takers[line], ", "))
	}
	b.WriteString("    ]\n")
}

func writeImports(b *bytes.Buffer, name string, between []passage) {
	if !slices.ContainsFunc(between, func(p passage) bool { return p.to == name }) {
		return
	}
	b.WriteString("    imports = [\n")
	for _, p := range between {
		switch {
		case p.to != name:
		case !p.service:
			fmt.Fprintf(b, "      { stream: { account: %s, subject: %s } }\n", p.from, quoted(p.subject))
		case p.local == p.subject:
			fmt.Fprintf(b, "      { service: { account: %s, subject: %s } }\n", p.from, quoted(p.subject))
		default:
			fmt.Fprintf(b, "      { service: { account: %s, subject: %s }, to: %s }\n", p.from, quoted(p.subject), quoted(p.local))
		}
	}
	b.WriteString("    ]\n")
}

func refusal(subjects []string) string {
	if len(subjects) == 0 {
		return ""
	}
	return ", deny: " + quotedList(subjects)
}

func quotedList(subjects []string) string {
	items := make([]string, len(subjects))
	for i, s := range subjects {
		items[i] = quoted(s)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// quoted renders a subject as a quoted string: unquoted, a leading $ would be read
// as a variable.
func quoted(subject string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(subject) // a string into a buffer cannot fail
	return strings.TrimSpace(b.String())
}
