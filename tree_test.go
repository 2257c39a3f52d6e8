package waybill_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// A tree is the sources as the rules see them, read once.
type tree struct {
	fset    *token.FileSet
	sources []*source // Go files outside testdata, in the order of their paths
	texts   []text    // every file that is text, Go files too
	folders []string
	entries []string // what stands at the top
}

// A source is one Go file.
type source struct {
	path, dir string
	content   []byte
	file      *ast.File
	testFile  bool // its name ends in _test.go
	test      bool // a test file, or any file of a package that helps tests (storetest, peertest)
}

// A text is one file that is not binary.
type text struct {
	path  string
	lines []string
}

// load reads every file that git would track: all but .git itself and what .gitignore names.
func load(fsys fs.FS) (*tree, error) {
	ignored, err := ignores(fsys)
	if err != nil {
		return nil, err
	}
	t := &tree{fset: token.NewFileSet()}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case ignored(name) && d.IsDir():
			return fs.SkipDir
		case ignored(name):
			return nil
		}
		return t.add(fsys, name, d)
	})
	return t, err
}

func (t *tree) add(fsys fs.FS, name string, d fs.DirEntry) error {
	if !strings.Contains(name, "/") {
		t.entries = append(t.entries, name)
	}
	if d.IsDir() {
		t.folders = append(t.folders, name)
		return nil
	}
	if !d.Type().IsRegular() {
		return nil
	}
	content, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	if !bytes.ContainsRune(content, 0) {
		t.texts = append(t.texts, text{name, strings.Split(string(content), "\n")})
	}
	if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
		return nil
	}
	return t.addSource(name, content)
}

func (t *tree) addSource(name string, content []byte) error {
	file, err := parser.ParseFile(t.fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	s := &source{path: name, dir: path.Dir(name), content: content, file: file}
	s.testFile = strings.HasSuffix(name, "_test.go")
	s.test = s.testFile || helpsTests(s.dir)
	t.sources = append(t.sources, s)
	return nil
}

// helpsTests tells a package that exists for tests by its name, as in the standard library (httptest, iotest).
func helpsTests(dir string) bool {
	return strings.HasSuffix(path.Base(dir), "test")
}

// ignores understands the two forms that the project's .gitignore keeps to: a path from the top ("/name" or "/name/"),
// and a pattern for the last element ("*.prof").
func ignores(fsys fs.FS) (func(name string) bool, error) {
	content, err := fs.ReadFile(fsys, ".gitignore")
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{".git": true}
	var patterns []string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "/"):
			paths[strings.Trim(line, "/")] = true
		default:
			patterns = append(patterns, line)
		}
	}
	return func(name string) bool {
		for _, p := range patterns {
			if ok, _ := path.Match(p, path.Base(name)); ok {
				return true
			}
		}
		return paths[name]
	}, nil
}

// breach says that what is at pos breaks a rule.
func (t *tree) breach(pos token.Pos, format string, args ...any) breach {
	at := t.fset.Position(pos)
	return breach{at.Filename, at.Line, fmt.Sprintf(format, args...)}
}

// within reports whether dir is the room or a folder below it.
func within(dir, room string) bool {
	return dir == room || strings.HasPrefix(dir, room+"/")
}

// importPath is the path that an import names.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // the parser has accepted it
	}
	return p
}

// importName is the name that an import has in its file: its own, or else the last element of its path that is not a
// major version.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	p := importPath(spec)
	base := path.Base(p)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(p))
	}
	return base
}

// imported maps the names that a file gives to its imports to their paths.
func imported(file *ast.File) map[string]string {
	names := make(map[string]string)
	for _, spec := range file.Imports {
		names[importName(spec)] = importPath(spec)
	}
	return names
}
