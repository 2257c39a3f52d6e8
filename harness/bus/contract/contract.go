package contract

import (
	"bytes"
	"embed"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

//go:embed schemas
var files embed.FS

const (
	hostFolder     = "schemas/host/"
	operatorFolder = "schemas/operator/"
	eventFolder    = "schemas/event/"

	requestEnd = ".request.json"
	replyEnd   = ".reply.json"
)

// Verbs lists what hosts can ask for, sorted.
func Verbs() []string { return named(hostFolder, requestEnd) }

// Orders lists what operators can order, sorted.
func Orders() []string { return named(operatorFolder, requestEnd) }

// EventTypes lists the kinds of events that have a schema, sorted.
func EventTypes() []string { return named(eventFolder, ".json") }

// Request is the schema of what is sent with a verb of hosts or operators; nil
// for a verb that is not there. Its description says what the verb does. The bytes
// of this and of the other schemas belong to whoever asks for them.
func Request(verb string) []byte { return ofVerb(verb, requestEnd) }

// Reply is the schema of what a verb of hosts or operators is answered with; nil for a
// verb that is not there. A reply with the header Nats-Service-Error may be of the form
// of Refusal instead.
func Reply(verb string) []byte { return ofVerb(verb, replyEnd) }

// Event is the schema of the whole CloudEvents object of one kind of event; nil for
// one that is not there.
func Event(kind string) []byte { return read(eventFolder + kind + ".json") }

// Refusal is the schema of the body of a reply with the header Nats-Service-Error,
// other than the reply of the verb itself.
func Refusal() []byte { return read("schemas/refusal.json") }

// Progress is the schema of a message about the progress of a call.
func Progress() []byte { return read("schemas/progress.json") }

// Description is what a verb does, in a sentence or two; "" for one that is not there.
func Description(verb string) string {
	var s struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(Request(verb), &s) // nil holds none
	return s.Description
}

// spoken are the keywords that are for people.
var spoken = []string{"title", "description", "examples", "$comment"}

// Terse returns a schema in as few bytes as it can be: no spaces, and none of the
// keywords that are for people. It takes and refuses what the schema does. What is no
// JSON object comes back as nil.
func Terse(schema []byte) []byte {
	var s map[string]any
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber() // 2^53 is not to become 9.007199254740992e+15
	if d.Decode(&s) != nil {
		return nil
	}
	strip(s)
	out, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return out
}

// strip removes what is for people from a schema and from those in it. Members of the
// objects in holders have names, not keywords, as keys.
func strip(s map[string]any) {
	for _, word := range spoken {
		delete(s, word)
	}
	for word, v := range s {
		each, isMap := v.(map[string]any)
		switch {
		case word == "const" || word == "enum" || word == "default":
		case isMap && (word == "properties" || word == "$defs" || word == "patternProperties"):
			for _, inner := range each {
				stripAny(inner)
			}
		default:
			stripAny(v)
		}
	}
}

func stripAny(v any) {
	switch v := v.(type) {
	case map[string]any:
		strip(v)
	case []any:
		for _, inner := range v {
			stripAny(inner)
		}
	}
}

func ofVerb(verb, end string) []byte {
	if b := read(hostFolder + verb + end); b != nil {
		return b
	}
	return read(operatorFolder + verb + end)
}

func read(name string) []byte {
	b, err := files.ReadFile(path.Clean(name))
	if err != nil {
		return nil
	}
	return b
}

// named lists the files of a folder that end in end, without it.
func named(folder, end string) (out []string) {
	list, _ := files.ReadDir(strings.TrimSuffix(folder, "/")) // a folder that is not there is empty
	for _, f := range list {
		if name, ok := strings.CutSuffix(f.Name(), end); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
