package waybill_test

import (
	"slices"
	"strings"
)

// module is the path of this module, which its own imports begin with.
const module = "waybill"

// rooms is the table of ARCHITECTURE.md: what of ours each folder may import. A folder that is not named belongs to the
// nearest one above it that is. "..." is everything.
var rooms = map[string][]string{
	"domain":                {"domain/catalog", "domain/names", "domain/wire"},
	"domain/catalog":        {"domain/schema", "domain/web", "domain/wire"},
	"domain/names":          {},
	"domain/schema":         {},
	"domain/web":            {"domain/wire"},
	"domain/wire":           {},
	"events":                {"domain"},
	"migrations":            {},
	"store":                 {"events", "migrations"},
	"projections":           {"domain", "events", "migrations"},
	"replay":                {"domain", "events"},
	"harness":               {"domain", "events", "store", "projections", "replay"},
	"harness/bench":         {},
	"harness/peer":          {"domain", "domain/catalog", "domain/schema", "domain/web"},
	"harness/bus":           {"domain", "events"},
	"harness/bus/stream":    {"harness/bus"},
	"docs/examples":         {},
	"client":                {},
	"cmd/waybill":           {"..."},
	"cmd/waybill/eventlist": {"events", "store", "harness"},
	"cmd/waybill/doctor":    {"events", "migrations", "store", "projections", "harness", "harness/bus", "cmd/waybill"},
	"cmd/waybill-audit":     {"domain", "events", "store", "projections", "replay"},
}

// pure is what domain may import: packages that compute, and neither act nor ask the machine.
var pure = []string{
	"bytes", "cmp", "crypto/hmac", "crypto/sha256", "crypto/subtle", "encoding", "encoding/base64", "encoding/binary",
	"encoding/hex", "errors", "fmt", "hash", "iter", "maps", "math", "math/bits", "net/netip", "net/url", "path", "regexp",
	"slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf16", "unicode/utf8",
	"github.com/go-json-experiment/json", // of types without maps, which would need its option Deterministic
	"github.com/go-json-experiment/json/jsontext",
}

// pureToo is what one folder of domain may import besides, and why.
var pureToo = map[string]struct {
	packages []string
	reason   string
}{
	"domain/schema": {[]string{"encoding/json", "math/big", "regexp/syntax", "github.com/santhosh-tekuri/jsonschema/v6"},
		"JSON Schema is a library's work; it can open files, but not with the loader it is given, and takes numbers as json.Number"},
}

// roomOf finds the row of the table that a folder belongs to.
func roomOf(dir string) (string, bool) {
	for dir != "" {
		if _, ok := rooms[dir]; ok {
			return dir, true
		}
		dir = dir[:max(strings.LastIndexByte(dir, '/'), 0)]
	}
	return "", false
}

// importTable holds the imports between rooms to the table. Tests may import any room, those of domain excepted.
func importTable(t *tree) []breach {
	var found []breach
	for _, s := range t.sources {
		room, ok := roomOf(s.dir)
		if !ok && s.dir != "." {
			found = append(found, breach{s.path, 1, "the folder " + s.dir + " is in no room of the table"})
			continue
		}
		if s.test && !within(room, "domain") {
			continue
		}
		found = append(found, s.forbidden(t, room)...)
	}
	return found
}

func (s *source) forbidden(t *tree, room string) []breach {
	var found []breach
	for _, spec := range s.file.Imports {
		target, ours := ourImport(importPath(spec))
		if !ours || allowed(room, target) {
			continue
		}
		found = append(found, t.breach(spec.Pos(), "%s imports %s; of ours it may import: %s",
			s.dir, target, strings.Join(rooms[room], ", ")))
	}
	return found
}

// ourImport gives the folder that an import path names, if it is one of this module.
func ourImport(imp string) (folder string, ours bool) {
	if imp == module {
		return ".", true
	}
	return strings.CutPrefix(imp, module+"/")
}

func allowed(from, target string) bool {
	room, ok := roomOf(target)
	if !ok {
		return false
	}
	return room == from || slices.Contains(rooms[from], room) || slices.Contains(rooms[from], "...")
}

// testHelpers keeps package testing, and our packages that help tests, to tests.
func testHelpers(t *tree) []breach {
	var found []breach
	for _, s := range t.sources {
		if s.test {
			continue
		}
		for _, spec := range s.file.Imports {
			imp := importPath(spec)
			if target, ours := ourImport(imp); within(imp, "testing") || ours && helpsTests(target) {
				found = append(found, t.breach(spec.Pos(), "imports %s outside a test", imp))
			}
		}
	}
	return found
}

// domainImports holds the program part of domain to the list of pure packages. What is ours is the import table's.
func domainImports(t *tree) []breach {
	var found []breach
	for _, s := range t.sources {
		if !domainProgram(s) {
			continue
		}
		for _, spec := range s.file.Imports {
			imp := importPath(spec)
			if _, ours := ourImport(imp); !ours && !slices.Contains(pure, imp) && !slices.Contains(pureToo[s.dir].packages, imp) {
				found = append(found, t.breach(spec.Pos(), "imports %s, which is not on the list of pure packages", imp))
			}
		}
	}
	return found
}
