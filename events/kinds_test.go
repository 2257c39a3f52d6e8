package events

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"waybill/domain"
)

// kindsInDomain finds in domain's sources each type with a method Kind, and the
// file it stands in.
func kindsInDomain(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../domain/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Kind" {
				receiver, ok := f.Recv.List[0].Type.(*ast.Ident)
				if !ok {
					t.Fatalf("%s: Kind has a receiver that is no plain type", name)
				}
				found[receiver.Name] = filepath.Base(name)
			}
		}
	}
	return found
}

// zero returns the data of a kind with nothing in it, of its own Go type.
func zero(t *testing.T, kind string) domain.Data {
	t.Helper()
	d, err := kinds[kind].decode([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryTypeOfDomainIsRegisteredAsWhatItIs(t *testing.T) {
	inDomain := kindsInDomain(t)
	if len(inDomain) < 30 {
		t.Fatalf("domain has only %d kinds: %v", len(inDomain), inDomain)
	}
	files := map[bool]string{false: "observations", true: "decisions"} // .go, or _ and what they are about
	for _, kind := range Kinds() {
		name := reflect.TypeOf(zero(t, kind)).Name()
		if want := files[kinds[kind].decision]; !strings.HasPrefix(inDomain[name], want) {
			t.Errorf("%s stands in %q and is registered as one of %s", name, inDomain[name], want)
		}
		delete(inDomain, name)
	}
	for name := range inDomain {
		t.Errorf("%s is not registered: its events could not be read back", name)
	}
}

func TestGoTypeIsNamedAsTheKind(t *testing.T) {
	for _, kind := range Kinds() {
		noun, participle, ok := strings.Cut(kind, ".")
		if !ok || noun == "" || participle == "" || strings.Contains(participle, ".") || kind != strings.ToLower(kind) {
			t.Errorf("%q is not noun.participle", kind)
			continue
		}
		want := strings.ToUpper(noun[:1]) + noun[1:] + strings.ToUpper(participle[:1]) + participle[1:]
		d := zero(t, kind)
		if got := reflect.TypeOf(d).Name(); got != want || d.Kind() != kind {
			t.Errorf("%s is written by %s, want %s", kind, got, want)
		}
	}
}

func TestSamplesAreOfEveryKindOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range samples {
		if seen[d.Kind()] {
			t.Errorf("%s has two samples", d.Kind())
		}
		seen[d.Kind()] = true
	}
	for _, kind := range Kinds() {
		if !seen[kind] {
			t.Errorf("%s has no sample", kind)
		}
	}
}

// TestEvidenceIsOfEveryRef finds a kind whose data cites evidence that
// EvidenceOf does not know: nothing would keep it.
func TestEvidenceIsOfEveryRef(t *testing.T) {
	for _, d := range samples {
		var refs []domain.Ref
		v := reflect.ValueOf(d)
		for i := range v.NumField() {
			if r, ok := v.Field(i).Interface().(domain.Ref); ok {
				refs = append(refs, r)
			}
		}
		got, ok := EvidenceOf(d)
		if ok != (len(refs) == 1) || len(refs) > 1 || ok && got != refs[0] {
			t.Errorf("%s has the references %v, and EvidenceOf gives %v, %t", d.Kind(), refs, got, ok)
		}
	}
}

func TestDigestOfTakesSixtyFourLowerCaseHexDigitsOnly(t *testing.T) {
	d, err := DigestOf(frame)
	if err != nil || d[0] != 0x01 || d[31] != 0xef {
		t.Errorf("%s gives %x, error %v", frame.Digest, d, err)
	}
	for _, bad := range []string{"", "00", strings.Repeat("0", 63), strings.Repeat("0", 66), strings.Repeat("0", 128),
		strings.Repeat("AB", 32), strings.Repeat("0g", 32), " " + frame.Digest} {
		if d, err := DigestOf(domain.Ref{Digest: bad}); err == nil {
			t.Errorf("%q is taken for the digest %x", bad, d)
		}
	}
}
