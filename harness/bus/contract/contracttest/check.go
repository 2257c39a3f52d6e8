package contracttest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Compare holds a file to what it should be. With write it writes the file instead.
func Compare(t testing.TB, write bool, name string, want []byte) {
	t.Helper()
	if write {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, want, 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the types say (%v): run the test with -record and read the difference: messages are a contract\n%s",
			name, err, firstDifference(got, want))
	}
}

func firstDifference(got, want []byte) string {
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, and would be %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, and would be %d", len(a), len(b))
}

// Published compiles a schema as it is.
func Published(t testing.TB, schema []byte) *jsonschema.Schema {
	t.Helper()
	return compile(t, parse(t, schema))
}

// Closed compiles a schema as one that takes no members but those it names.
func Closed(t testing.TB, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc := parse(t, schema)
	closeAll(doc)
	return compile(t, doc)
}

func parse(t testing.TB, schema []byte) any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatalf("schema %.80q: %v", schema, err)
	}
	return doc
}

func compile(t testing.TB, doc any) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("urn:it", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:it")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeAll(v any) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			closeAll(inner)
		}
	case map[string]any:
		for _, inner := range v {
			closeAll(inner)
		}
		if _, named := v["properties"].(map[string]any); named && v["type"] == "object" {
			v["additionalProperties"] = false
		}
	}
}

// Check fails the test if a message is not what a schema says.
func Check(t testing.TB, s *jsonschema.Schema, what string, message []byte) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(message))
	if err == nil {
		err = s.Validate(doc)
	}
	if err != nil {
		t.Errorf("%s does not match its schema: %v\n%s", what, err, message)
	}
}

// Unseen lists the members of a schema, as paths of names, that none of the messages
// has: a schema that promises what nobody has seen is not checked by them.
func Unseen(t testing.TB, schema []byte, messages ...[]byte) []string {
	t.Helper()
	root := parse(t, schema).(map[string]any)
	u := unseen{root: root, left: map[string]bool{}}
	u.expect(root, "", 0)
	for _, m := range messages {
		u.see(parse(t, m), "")
	}
	return slices.Sorted(maps.Keys(u.left))
}

type unseen struct {
	root map[string]any
	left map[string]bool
}

// expect adds every member that a schema names.
func (u *unseen) expect(v any, at string, depth int) {
	s, ok := v.(map[string]any)
	if !ok || depth > 8 {
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		defs, _ := u.root["$defs"].(map[string]any)
		u.expect(defs[strings.TrimPrefix(ref, "#/$defs/")], at, depth+1)
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := s[word].([]any)
		for _, inner := range list {
			u.expect(inner, at, depth+1)
		}
	}
	u.expect(s["items"], at, depth+1)
	properties, _ := s["properties"].(map[string]any)
	for name, inner := range properties {
		u.left[at+"/"+name] = true
		u.expect(inner, at+"/"+name, depth+1)
	}
}

// see takes away every member that a message has.
func (u *unseen) see(v any, at string) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			u.see(inner, at)
		}
	case map[string]any:
		for name, inner := range v {
			delete(u.left, at+"/"+name)
			u.see(inner, at+"/"+name)
		}
	}
}
