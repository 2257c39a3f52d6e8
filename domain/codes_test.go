package domain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// TestCodesListsEveryConstant reads the declarations themselves, so that a code
// cannot be declared and left out.
func TestCodesListsEveryConstant(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	listed := Codes()
	word := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	var declared []Code
	for n := range ast.Preorder(file) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			continue
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			continue
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		declared = append(declared, Code(value))
		if !slices.Contains(listed, Code(value)) || !word.MatchString(value) {
			t.Errorf("%s = %q is not listed by Codes, or is no word", spec.Names[0].Name, value)
		}
	}
	if len(declared) != len(listed) || len(declared) < 50 {
		t.Errorf("%d codes are declared, %d are listed", len(declared), len(listed))
	}
	slices.Sort(listed)
	if len(slices.Compact(listed)) != len(declared) {
		t.Errorf("a code is listed twice")
	}
}

// TestConfigEvidenceRoundTrips: the same configuration gives the same bytes, and
// reading them gives it back.
func TestConfigEvidenceRoundTrips(t *testing.T) {
	c := testConfig(PrefixOnCollision, "a", "b")
	c.Peers[0].Warnings, c.Peers[1].Repeatable = []string{"w"}, []string{"x"}
	first, err := EncodeConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeConfig(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := EncodeConfig(back)
	if err != nil || string(first) != string(second) || RefTo(first) != RefTo(second) || RefTo(first).Size != int64(len(first)) {
		t.Errorf("%s became %s (%v)", first, second, err)
	}
	if _, err := DecodeConfig([]byte(`{"node":"a","unheard":1}`)); err == nil {
		t.Errorf("a member nobody knows was read")
	}
}
