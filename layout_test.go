package waybill_test

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// atTop is all that may stand at the top, besides test files.
var atTop = []string{
	"cmd", "client", "docs", "domain", "events", "harness", "migrations", "projections", "replay", "store",
	"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "doc.go", "go.mod", "go.sum",
	".ci", ".golangci.yml", ".gitattributes", ".gitignore",
}

func topLevel(t *tree) []breach {
	var found []breach
	for _, name := range t.entries {
		if !slices.Contains(atTop, name) && !strings.HasSuffix(name, "_test.go") {
			found = append(found, breach{name, 0, "is not one of the entries the layout names"})
		}
	}
	return found
}

func folderNames(t *tree) []breach {
	var found []breach
	for _, dir := range t.folders {
		switch path.Base(dir) {
		case "pkg", "util", "utils", "common", "types", "helper", "helpers":
			found = append(found, breach{dir, 0, "is named for nothing in particular"})
		}
	}
	return found
}

// roomDocs asks each folder with Go files for a doc.go with a package comment.
func roomDocs(t *tree) []breach {
	documented := make(map[string]bool)
	var dirs []string
	for _, s := range t.sources {
		if !slices.Contains(dirs, s.dir) {
			dirs = append(dirs, s.dir)
		}
		if path.Base(s.path) == "doc.go" && s.file.Doc != nil {
			documented[s.dir] = true
		}
	}
	var found []breach
	for _, dir := range dirs {
		if !documented[dir] {
			found = append(found, breach{path.Join(dir, "doc.go"), 0, "is missing, or has no package comment"})
		}
	}
	return found
}

// docComments asks every exported name at the top of a package, every method of an exported type or interface, for a
// comment. One comment may stand for a group of constants or variables. Fields are left to their struct's comment.
func docComments(t *tree) []breach {
	var found []breach
	for _, s := range t.sources {
		if s.testFile {
			continue
		}
		for _, decl := range s.file.Decls {
			for _, name := range undocumented(decl) {
				found = append(found, t.breach(name.Pos(), "%s has no doc comment", name.Name))
			}
		}
	}
	return found
}

func undocumented(decl ast.Decl) []*ast.Ident {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Name.Name == "Error" {
			return nil // what it says is for people to read, not to call
		}
		if decl.Doc == nil && decl.Name.IsExported() && receiverExported(decl) {
			return []*ast.Ident{decl.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, spec := range decl.Specs {
			names = append(names, undocumentedSpec(decl, spec)...)
		}
		return names
	}
	return nil
}

func undocumentedSpec(decl *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		if decl.Doc == nil && spec.Doc == nil && spec.Comment == nil {
			names = spec.Names
		}
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return nil
		}
		own := spec.Doc != nil || decl.Lparen == token.NoPos && decl.Doc != nil
		if !own {
			names = append(names, spec.Name)
		}
		names = append(names, undocumentedMethods(spec.Type)...)
	}
	return slices.DeleteFunc(slices.Clone(names), func(n *ast.Ident) bool { return !n.IsExported() })
}

func undocumentedMethods(x ast.Expr) []*ast.Ident {
	iface, ok := x.(*ast.InterfaceType)
	if !ok {
		return nil
	}
	var names []*ast.Ident
	for _, m := range iface.Methods.List {
		if m.Doc == nil && m.Comment == nil {
			names = append(names, m.Names...)
		}
	}
	return names
}

// receiverExported is also true of a function, which has none.
func receiverExported(decl *ast.FuncDecl) bool {
	if decl.Recv == nil {
		return true
	}
	x := decl.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.IsExported()
		default:
			return true
		}
	}
}

// textRule finds a pattern in every text but go.sum, and .ci, which is about one machine and one registry by its nature.
func textRule(pattern string) func(*tree) []breach {
	re := regexp.MustCompile(pattern)
	return func(t *tree) []breach {
		var found []breach
		for _, file := range t.texts {
			if file.path == "go.sum" || within(file.path, ".ci") {
				continue
			}
			for i, line := range file.lines {
				if match := re.FindString(line); match != "" {
					found = append(found, breach{file.path, i + 1, "says " + match})
				}
			}
		}
		return found
	}
}
