package waybill_test

import (
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"path"
	"strings"
	"sync"
)

// excuse marks a loop over a map whose result does not depend on the order, on its line or right above it, with the
// reason after it.
const excuse = "// order-free:"

// domainOrder finds what makes the order of decisions a matter of chance: a range over a map, the unsorted keys or values
// of one, and select. It fails closed: a range over a value whose type cannot be told counts as a range over a map.
func domainOrder(t *tree) []breach {
	packages := make(map[string][]*source)
	var dirs []string
	for _, s := range t.sources {
		if domainProgram(s) {
			if packages[s.dir] == nil {
				dirs = append(dirs, s.dir)
			}
			packages[s.dir] = append(packages[s.dir], s)
		}
	}
	var found []breach
	for _, dir := range dirs {
		kinds := typesOf(t.fset, dir, packages[dir])
		for _, s := range packages[dir] {
			found = append(found, s.unordered(t, kinds)...)
		}
	}
	return found
}

func (s *source) unordered(t *tree, kinds map[ast.Expr]types.TypeAndValue) []breach {
	excused := excusedLines(t.fset, s.file)
	sorted := sortedCalls(s.file)
	var found []breach
	say := func(n ast.Node, what string) {
		if !excused[t.fset.Position(n.Pos()).Line] {
			found = append(found, t.breach(n.Pos(), "%s; sort first, or say why the order does not matter: %q", what, excuse))
		}
	}
	for n := range ast.Preorder(s.file) {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if what := unorderedRange(kinds[n.X].Type); what != "" {
				say(n, what)
			}
		case *ast.SelectStmt:
			say(n, "selects, which takes any case that is ready")
		}
	}
	for sel, member := range members(s.file) {
		switch member {
		case "maps.Keys", "maps.Values", "maps.All":
			if !sorted[sel] {
				say(sel, "takes "+member+" unsorted")
			}
		}
	}
	return found
}

func unorderedRange(x types.Type) string {
	switch {
	case x == nil || x == types.Typ[types.Invalid]:
		return "ranges over a value whose type cannot be told here"
	case mayBeMap(x):
		return "ranges over a map"
	}
	return ""
}

// mayBeMap looks through type parameters to all the types that they stand for.
func mayBeMap(x types.Type) bool {
	switch x := types.Unalias(x).(type) {
	case *types.TypeParam:
		return mayBeMap(x.Constraint())
	case *types.Union:
		for term := range x.Terms() {
			if mayBeMap(term.Type()) {
				return true
			}
		}
		return false
	}
	switch x := x.Underlying().(type) {
	case *types.Map:
		return true
	case *types.Interface:
		for e := range x.EmbeddedTypes() {
			if mayBeMap(e) {
				return true
			}
		}
	}
	return false
}

// excusedLines gives the lines that an excuse speaks for: those of its comment, and the one below.
func excusedLines(fset *token.FileSet, file *ast.File) map[int]bool {
	lines := make(map[int]bool)
	for _, group := range file.Comments {
		for _, c := range group.List {
			why, ok := strings.CutPrefix(c.Text, excuse)
			if !ok || strings.TrimSpace(why) == "" {
				continue
			}
			for line := fset.Position(c.Pos()).Line; line <= fset.Position(group.End()).Line+1; line++ {
				lines[line] = true
			}
		}
	}
	return lines
}

// sortedCalls finds the functions whose result goes straight into slices.Sorted.
func sortedCalls(file *ast.File) map[ast.Expr]bool {
	inside := make(map[ast.Expr]bool)
	sorters := make(map[ast.Expr]bool)
	for sel, member := range members(file) {
		if member == "slices.Sorted" {
			sorters[sel] = true
		}
	}
	for n := range ast.Preorder(file) {
		call, ok := n.(*ast.CallExpr)
		if !ok || !sorters[call.Fun] || len(call.Args) != 1 {
			continue
		}
		if arg, ok := call.Args[0].(*ast.CallExpr); ok {
			inside[arg.Fun] = true
		}
	}
	return inside
}

// typesOf type-checks one package. Errors are the compiler's to report; here they only leave types unknown.
func typesOf(fset *token.FileSet, dir string, sources []*source) map[ast.Expr]types.TypeAndValue {
	var files []*ast.File
	for _, s := range sources {
		files = append(files, s.file)
	}
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	config := types.Config{Importer: standardOnly{}, Error: func(error) {}}
	_, _ = config.Check(path.Join(module, dir), fset, files, info)
	return info.Types
}

// standardOnly imports the standard library, and an empty package for everything else: types from outside it are unknown.
type standardOnly struct{}

// sourceImporter reads declarations from the sources of the standard library. It keeps what it has read.
var sourceImporter = sync.OnceValue(func() types.Importer {
	return importer.ForCompiler(token.NewFileSet(), "source", nil)
})

func (standardOnly) Import(imp string) (*types.Package, error) {
	first, _, _ := strings.Cut(imp, "/")
	if first != module && !strings.Contains(first, ".") {
		return sourceImporter().Import(imp)
	}
	empty := types.NewPackage(imp, path.Base(imp))
	empty.MarkComplete()
	return empty, nil
}
