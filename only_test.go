package waybill_test

import (
	"go/ast"
	"slices"
	"strings"
)

// only keeps imports and uses of package members to some rooms.
type only struct {
	look    func(*source) bool // the files it looks at
	in      []string           // the rooms, with what is below them, where it is allowed; none is nowhere
	imports []string           // import paths; "net/..." is net and all below it
	but     []string           // import paths that are allowed all the same
	uses    []string           // members as "time.Now", called or only named: a function passed on is called elsewhere
}

// The files that a rule may look at.
func everything(*source) bool      { return true }
func program(s *source) bool       { return !s.test }
func tests(s *source) bool         { return s.test }
func domainProgram(s *source) bool { return !s.test && within(s.dir, "domain") }
func domainTests(s *source) bool   { return s.test && within(s.dir, "domain") }

func (o only) check(t *tree) []breach {
	var found []breach
	for _, s := range t.sources {
		if !o.look(s) || slices.ContainsFunc(o.in, func(room string) bool { return within(s.dir, room) }) {
			continue
		}
		found = append(found, o.badImports(t, s)...)
		found = append(found, o.badUses(t, s)...)
	}
	return found
}

func (o only) badImports(t *tree, s *source) []breach {
	var found []breach
	for _, spec := range s.file.Imports {
		imp := importPath(spec)
		switch {
		case o.bars(imp):
			found = append(found, t.breach(spec.Pos(), "imports %s; %s", imp, o.where()))
		case importName(spec) == "." && o.watches(imp):
			found = append(found, t.breach(spec.Pos(), "imports %s under no name, which hides what it uses", imp))
		}
	}
	return found
}

func (o only) bars(imp string) bool {
	return !slices.Contains(o.but, imp) && slices.ContainsFunc(o.imports, func(pattern string) bool {
		root, below := strings.CutSuffix(pattern, "/...")
		return imp == root || below && within(imp, root)
	})
}

// watches reports whether a member of the package is one of the uses.
func (o only) watches(imp string) bool {
	return slices.ContainsFunc(o.uses, func(use string) bool { return use[:strings.LastIndexByte(use, '.')] == imp })
}

func (o only) badUses(t *tree, s *source) []breach {
	if len(o.uses) == 0 {
		return nil
	}
	var found []breach
	for sel, member := range members(s.file) {
		if slices.Contains(o.uses, member) {
			found = append(found, t.breach(sel.Pos(), "uses %s; %s", member, o.where()))
		}
	}
	return found
}

func (o only) where() string {
	if len(o.in) == 0 {
		return "it has no place here"
	}
	return "its place is " + strings.Join(o.in, ", ")
}

// members yields, in the order of the file, every use of a member of an imported package, as "path.Member". A local
// variable with the name of an import is taken for the import: rename it.
func members(file *ast.File) func(yield func(*ast.SelectorExpr, string) bool) {
	names := imported(file)
	return func(yield func(*ast.SelectorExpr, string) bool) {
		for n := range ast.Preorder(file) {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || names[x.Name] == "" {
				continue
			}
			if !yield(sel, names[x.Name]+"."+sel.Sel.Name) {
				return
			}
		}
	}
}

// goroutines keeps all that starts a goroutine to harness: the statement, a method named Go (errgroup.Group,
// sync.WaitGroup), and functions that call back from a goroutine of their own.
func goroutines(t *tree) []breach {
	callbacks := only{look: program, in: []string{"harness"}, uses: []string{"time.AfterFunc", "context.AfterFunc"}}
	found := callbacks.check(t)
	for _, s := range t.sources {
		if s.test || within(s.dir, "harness") {
			continue
		}
		for n := range ast.Preorder(s.file) {
			if what := starts(n); what != "" {
				found = append(found, t.breach(n.Pos(), "%s; its place is harness", what))
			}
		}
	}
	return found
}

func starts(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.SelectorExpr:
		if n.Sel.Name == "Go" {
			return "starts a goroutine with a method named Go"
		}
	}
	return ""
}

// skippedTests finds the ways in which a test leaves itself out.
func skippedTests(t *tree) []breach {
	short := only{look: tests, uses: []string{"testing.Short"}}
	found := short.check(t)
	for _, s := range t.sources {
		if !s.test {
			continue
		}
		names := imported(s.file)
		for n := range ast.Preorder(s.file) {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				continue
			}
			if x, ok := sel.X.(*ast.Ident); !ok || names[x.Name] == "" {
				found = append(found, t.breach(sel.Pos(), "calls %s", sel.Sel.Name))
			}
		}
	}
	return found
}
