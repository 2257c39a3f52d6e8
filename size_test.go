package waybill_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"strings"
)

// The sizes, in lines. Those of functions and files count every line, that of packages only lines with code.
const (
	maxFunction     = 70
	maxTestFunction = 120 // room for a table of cases
	maxFile         = 500
	maxPackage      = 1500
)

// large lists the packages that may be over maxPackage: how far, and why.
var large = map[string]struct {
	lines  int
	reason string
}{
	"cmd/waybill":       {3900, "the commands and what wires them: flags, exit codes and JSON are one contract"},
	"cmd/waybill-audit": {1800, "the auditor's commands: exit codes and JSON are one contract"},
	"domain":            {6100, "one state machine and the vocabulary of its events: each part is read with the others"},
	"domain/schema":     {2100, "what a schema is and what a value is to it, by a library within bounds and without one: both rest on the same survey"},
	"harness":           {3500, "the loop and what it holds of calls, their bytes, commands, alarms and intake answer to one goroutine"},
	"harness/peer":      {2600, "one connection, a process or an endpoint: its messages and pending requests answer to the same incarnation"},
	"replay/explain":    {2400, "one sentence for each thing that can have become of a call: they share the notes that a fold leaves, and the words"},
	"store":             {1750, "one file and its promises: writer, readers, tree and backup share the statements and the schema"},
}

func functionSizes(t *tree) []breach {
	var found []breach
	for _, s := range t.sources {
		limit := maxFunction
		if s.test {
			limit = maxTestFunction
		}
		for n := range ast.Preorder(s.file) {
			name := functionName(n)
			if name == "" {
				continue
			}
			lines := t.fset.Position(n.End()).Line - t.fset.Position(n.Pos()).Line + 1
			if lines > limit {
				found = append(found, t.breach(n.Pos(), "%s has %d lines, more than %d", name, lines, limit))
			}
		}
	}
	return found
}

func functionName(n ast.Node) string {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Name.Name
	case *ast.FuncLit:
		return "a function literal"
	}
	return ""
}

func fileSizes(t *tree) []breach {
	var found []breach
	for _, s := range t.sources {
		if lines := bytes.Count(s.content, []byte("\n")); lines > maxFile {
			found = append(found, breach{s.path, 0, fmt.Sprintf("has %d lines, more than %d", lines, maxFile)})
		}
	}
	return found
}

func packageSizes(t *tree) []breach {
	lines := make(map[string]int)
	for _, s := range t.sources {
		if !s.test {
			lines[s.dir] += codeLines(s.content)
		}
	}
	var found []breach
	for _, dir := range append([]string{"."}, t.folders...) {
		limit := max(maxPackage, large[dir].lines)
		if lines[dir] > limit {
			found = append(found, breach{dir, 0, fmt.Sprintf("has %d lines of code, more than %d", lines[dir], limit)})
		}
	}
	return found
}

// codeLines counts the lines that hold a part of a token, which blank lines and comments do not.
func codeLines(content []byte) int {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(content))
	s.Init(file, content, nil, 0)
	lines := make(map[int]bool)
	for {
		pos, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return len(lines)
		case tok == token.SEMICOLON && literal == "\n":
			continue // the scanner's own
		}
		first := file.Line(pos)
		for i := range strings.Count(literal, "\n") + 1 {
			lines[first+i] = true
		}
	}
}
