package config

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file. They keep a hostile or a wrong file from costing anything.
const (
	maxFileSize = 1 << 20 // bytes
	maxTokens   = 40_000  // words and marks; the parser takes time in the square of them
	maxDepth    = 32      // of lists and mappings inside each other
)

// kind is what a YAML value is. Its text is used in messages.
type kind string

const (
	null    kind = "nothing"
	boolean kind = "true or false"
	integer kind = "a whole number"
	decimal kind = "a number"
	text    kind = "text"
	list    kind = "a list"
	mapping kind = "a mapping"
	broken  kind = "unusable" // reported already
)

// A node is one value of a file. A scalar keeps its text as written, quotes and
// escapes resolved. Line and column are those of a scalar, and of the key that
// a list or mapping stands under.
type node struct {
	kind    kind
	line    int
	column  int
	text    string
	items   []*node
	entries []entry
}

type entry struct {
	key    string
	line   int
	column int
	value  *node
}

// A document turns YAML into nodes and gathers what is wrong with it.
type document struct {
	file  string
	errs  Errors
	depth int
}

func (d *document) fail(line, column int, key, format string, args ...any) {
	d.errs = append(d.errs, &Error{File: d.file, Line: line, Column: column, Key: key, Msg: fmt.Sprintf(format, args...)})
}

// parse returns the value of the only document in data, nil if it is empty or
// no YAML. Anchors, aliases, merge keys and tags are refused: a configuration
// says each thing where it stands.
func (d *document) parse(data []byte) *node {
	if len(data) > maxFileSize {
		d.fail(0, 0, "", "the file is larger than %d bytes", maxFileSize)
		return nil
	}
	tree, err := parseYAML(bytes.TrimPrefix(data, []byte("\ufeff"))) // some editors put this mark first
	if err != nil {
		d.failSyntax(err)
		return nil
	}
	var body ast.Node
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil:
		case doc.Body.Type() == ast.DirectiveType:
			d.failAt(doc.Body, "", "YAML directives are not used here: take the line out")
		case body != nil:
			d.failAt(doc.Body, "", "a second document begins here: the file holds one")
		default:
			body = doc.Body
		}
	}
	if body == nil || len(d.errs) > 0 {
		return nil
	}
	return d.node(body, "", nil)
}

// parseYAML turns a panic of the library, which has had some on malformed
// input, into an error.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errors.New("cannot be read as YAML")
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if tk := tooMuch(tokens); tk != nil {
		return nil, &yaml.SyntaxError{Token: tk, Message: fmt.Sprintf(
			"at most %d words and marks are read, and %d lists or mappings inside each other", maxTokens, maxDepth)}
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// tooMuch finds where a file becomes too long, or nested so that it would
// exhaust the stack of the parser: by brackets, or by "- - - -" on one line.
// Nesting by indentation is bounded by the size of the file, because each level
// costs more than the one before, and by node.
func tooMuch(tokens token.Tokens) *token.Token {
	brackets, line, onLine := 0, 0, 0
	for i, tk := range tokens {
		if tk.Position != nil && tk.Position.Line != line {
			line, onLine = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType:
			onLine++
		}
		if i == maxTokens || brackets > maxDepth || onLine > maxDepth {
			return tk
		}
	}
	return nil
}

func (d *document) failSyntax(err error) {
	var located yaml.Error
	if !errors.As(err, &located) {
		d.fail(0, 0, "", "%s", err)
		return
	}
	line, column := position(located.GetToken())
	d.fail(line, column, "", "cannot be read as YAML: %s", located.GetMessage())
}

func (d *document) failAt(n ast.Node, key, format string, args ...any) {
	line, column := position(n.GetToken())
	d.fail(line, column, key, format, args...)
}

func position(tk *token.Token) (line, column int) {
	if tk == nil || tk.Position == nil {
		return 0, 0
	}
	return tk.Position.Line, tk.Position.Column
}

// node converts one value; under is the entry it stands in, nil at the top.
func (d *document) node(n ast.Node, key string, under *entry) *node {
	out := &node{kind: null}
	if n != nil {
		out.line, out.column = position(n.GetToken())
	}
	switch n := n.(type) {
	case nil, *ast.NullNode:
	case *ast.BoolNode:
		out.kind, out.text = boolean, n.GetToken().Value
	case *ast.IntegerNode:
		out.kind, out.text = integer, n.GetToken().Value
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = decimal, n.GetToken().Value
	case *ast.StringNode:
		out.kind, out.text = text, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = text, n.Value.Value
	case *ast.SequenceNode:
		d.items(out, n, key, under)
	case *ast.MappingNode:
		d.entries(out, n.Values, key, under)
	case *ast.MappingValueNode:
		d.entries(out, []*ast.MappingValueNode{n}, key, under)
	case *ast.AnchorNode:
		d.failAt(n, key, "%s", plainOnly)
		return d.node(n.Value, key, under)
	case *ast.TagNode:
		d.failAt(n, key, "%s", plainOnly)
		return d.node(n.Value, key, under)
	default:
		d.failAt(n, key, "%s", plainOnly)
		out.kind = broken
	}
	return out
}

const plainOnly = "anchors, aliases, merge keys and tags are not used here: write the value out"

func (d *document) items(out *node, n *ast.SequenceNode, key string, under *entry) {
	out.kind = list
	out.at(under)
	if d.deep(out) {
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	for i, item := range n.Values {
		out.items = append(out.items, d.node(item, fmt.Sprintf("%s[%d]", key, i), nil))
	}
}

func (d *document) entries(out *node, values []*ast.MappingValueNode, key string, under *entry) {
	out.kind = mapping
	out.at(under)
	if d.deep(out) {
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	seen := make(map[string]int)
	for _, v := range values {
		e, ok := d.entry(v, key)
		if !ok {
			continue
		}
		if line := seen[e.key]; line > 0 {
			d.fail(e.line, e.column, join(key, e.key), "given twice, first in line %d: keep one", line)
			continue
		}
		seen[e.key] = max(e.line, 1)
		e.value = d.node(v.Value, join(key, e.key), &e)
		out.entries = append(out.entries, e)
	}
}

// entry reads a key. Its text is the name, whatever YAML makes of it: the key
// 1 is "1".
func (d *document) entry(v *ast.MappingValueNode, key string) (entry, bool) {
	line, column := position(v.Key.GetToken())
	e := entry{line: line, column: column}
	switch k := v.Key.(type) {
	case *ast.StringNode:
		e.key = k.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		e.key = k.GetToken().Value
	default:
		d.fail(line, column, key, "a key here is no plain text: merge keys, anchors and lists as keys are not used")
		return e, false
	}
	return e, true
}

// deep refuses a value that stands too deep.
func (d *document) deep(n *node) bool {
	if d.depth < maxDepth {
		return false
	}
	d.fail(n.line, n.column, "", "more than %d lists or mappings inside each other", maxDepth)
	return true
}

func (n *node) at(under *entry) {
	if under != nil {
		n.line, n.column = under.line, under.column
	}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
