package contracttest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"strings"
)

// Docs are the comments of types and of their fields.
type Docs map[string]string

// ReadDocs reads the comments of the Go files in folders, named from the top of the
// module; root is the way there.
func ReadDocs(root string, folders ...string) (Docs, error) {
	d := Docs{}
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("no Go files in %s: %w", folder, err)
		}
		for _, name := range names {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			d.add(f)
		}
	}
	return d, nil
}

func (d Docs) add(f *ast.File) {
	for n := range ast.Preorder(f) {
		decl, ok := n.(*ast.GenDecl)
		if !ok || decl.Tok != token.TYPE {
			continue
		}
		for _, spec := range decl.Specs {
			s := spec.(*ast.TypeSpec)
			name := f.Name.Name + "." + s.Name.Name
			d[name] = sentence(decl.Doc, s.Doc)
			fields, ok := s.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range fields.Fields.List {
				for _, id := range field.Names {
					d[name+"."+id.Name] = sentence(field.Comment, field.Doc)
				}
			}
		}
	}
}

// sentence is the text of the first comment that is there, on one line.
func sentence(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g != nil {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}

// Type is the comment of a type; "" for one that was not read.
func (d Docs) Type(t reflect.Type) string { return d[key(t)] }

// Field is the comment of a field of a struct.
func (d Docs) Field(t reflect.Type, name string) string { return d[key(t)+"."+name] }

func key(t reflect.Type) string { return path.Base(t.PkgPath()) + "." + t.Name() }
