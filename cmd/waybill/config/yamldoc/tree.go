package yamldoc

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

// MaxFile is the most bytes of a file.
const MaxFile = 1 << 20

// Bounds of a file. They keep a hostile or a wrong file from costing anything.
const (
	maxTokens = 40_000 // words and marks; the parser takes time in the square of them
	maxDepth  = 32     // of lists and mappings inside each other
)

// Kind is what a YAML value is. Its text is used in messages.
type Kind string

// The kinds. A value that is Broken has been reported already.
const (
	Null    Kind = "nothing"
	Boolean Kind = "true or false"
	Integer Kind = "a whole number"
	Decimal Kind = "a number"
	Text    Kind = "text"
	List    Kind = "a list"
	Mapping Kind = "a mapping"
	Broken  Kind = "unusable"
)

// A Node is one value of a file. A scalar keeps its text as written, quotes and
// escapes resolved. Line and column are those of a scalar, and of the key that
// a list or mapping stands under.
type Node struct {
	Kind    Kind
	Line    int
	Column  int
	Text    string
	Items   []*Node
	Entries []Entry
}

// An Entry is a key of a mapping with its value.
type Entry struct {
	Key    string
	Line   int
	Column int
	Value  *Node
}

// A Document turns YAML into nodes and gathers what is wrong with it.
type Document struct {
	File  string
	Errs  Errors
	depth int
}

// Fail notes a mistake. The message never holds the value of a secret.
func (d *Document) Fail(line, column int, key, format string, args ...any) {
	d.Errs = append(d.Errs, &Error{File: d.File, Line: line, Column: column, Key: key, Msg: fmt.Sprintf(format, args...)})
}

// Parse returns the value of the only document in data, nil if it is empty or
// no YAML. Anchors, aliases, merge keys and tags are refused: a configuration
// says each thing where it stands.
func (d *Document) Parse(data []byte) *Node {
	if len(data) > MaxFile {
		d.Fail(0, 0, "", "the file is larger than %d bytes", MaxFile)
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
	if body == nil || len(d.Errs) > 0 {
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

func (d *Document) failSyntax(err error) {
	var located yaml.Error
	if !errors.As(err, &located) {
		d.Fail(0, 0, "", "%s", err)
		return
	}
	line, column := Position(located.GetToken())
	d.Fail(line, column, "", "cannot be read as YAML: %s", located.GetMessage())
}

func (d *Document) failAt(n ast.Node, key, format string, args ...any) {
	line, column := Position(n.GetToken())
	d.Fail(line, column, key, format, args...)
}

// Position is where a token stands; 0 and 0 where that is not known.
func Position(tk *token.Token) (line, column int) {
	if tk == nil || tk.Position == nil {
		return 0, 0
	}
	return tk.Position.Line, tk.Position.Column
}

// node converts one value; under is the entry it stands in, nil at the top.
func (d *Document) node(n ast.Node, key string, under *Entry) *Node {
	out := &Node{Kind: Null}
	if n != nil {
		out.Line, out.Column = Position(n.GetToken())
	}
	switch n := n.(type) {
	case nil, *ast.NullNode:
	case *ast.BoolNode:
		out.Kind, out.Text = Boolean, n.GetToken().Value
	case *ast.IntegerNode:
		out.Kind, out.Text = Integer, n.GetToken().Value
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.Kind, out.Text = Decimal, n.GetToken().Value
	case *ast.StringNode:
		out.Kind, out.Text = Text, n.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = Text, n.Value.Value
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
		out.Kind = Broken
	}
	return out
}

const plainOnly = "anchors, aliases, merge keys and tags are not used here: write the value out"

func (d *Document) items(out *Node, n *ast.SequenceNode, key string, under *Entry) {
	out.Kind = List
	out.at(under)
	if d.deep(out) {
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	for i, item := range n.Values {
		out.Items = append(out.Items, d.node(item, fmt.Sprintf("%s[%d]", key, i), nil))
	}
}

func (d *Document) entries(out *Node, values []*ast.MappingValueNode, key string, under *Entry) {
	out.Kind = Mapping
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
		if line := seen[e.Key]; line > 0 {
			d.Fail(e.Line, e.Column, Join(key, e.Key), "given twice, first in line %d: keep one", line)
			continue
		}
		seen[e.Key] = max(e.Line, 1)
		e.Value = d.node(v.Value, Join(key, e.Key), &e)
		out.Entries = append(out.Entries, e)
	}
}

// entry reads a key. Its text is the name, whatever YAML makes of it: the key
// 1 is "1".
func (d *Document) entry(v *ast.MappingValueNode, key string) (Entry, bool) {
	line, column := Position(v.Key.GetToken())
	e := Entry{Line: line, Column: column}
	switch k := v.Key.(type) {
	case *ast.StringNode:
		e.Key = k.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		e.Key = k.GetToken().Value
	default:
		d.Fail(line, column, key, "a key here is no plain text: merge keys, anchors and lists as keys are not used")
		return e, false
	}
	return e, true
}

// deep refuses a value that stands too deep.
func (d *Document) deep(n *Node) bool {
	if d.depth < maxDepth {
		return false
	}
	d.Fail(n.Line, n.Column, "", "more than %d lists or mappings inside each other", maxDepth)
	return true
}

func (n *Node) at(under *Entry) {
	if under != nil {
		n.Line, n.Column = under.Line, under.Column
	}
}

// Join is the key of what stands under name in what has this key.
func Join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
