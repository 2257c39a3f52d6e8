package names

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestModelName: the forms are of a program in another language, written from
// the comment of ModelName.
func TestModelName(t *testing.T) {
	for canonical, want := range map[string]string{
		"":                            "_e3b0c44298fc1c14",
		"search":                      "search",
		"Search-All_2":                "Search-All_2",
		"a/b":                         "a_b_c14cddc033f64b9d",
		"github/create.issue":         "github_create_issue_69862702c7f3e3b3",
		"x_0123456789abcdef":          "x_0123456789abcdef_e57bc0d901d09050", // has the shape of a hashed form
		"_0123456789abcdef":           "_0123456789abcdef_a970a83734f3cbea",
		"x_0123456789abcde":           "x_0123456789abcde", // a digit too few
		"x_0123456789ABCDEF":          "x_0123456789ABCDEF",
		"x-0123456789abcdef":          "x-0123456789abcdef",
		"0123456789abcdef":            "0123456789abcdef",
		"é/х":                         "____29c1f4869645f899", // a character is a code point
		strings.Repeat("a", 64):       strings.Repeat("a", 64),
		strings.Repeat("a", 65):       strings.Repeat("a", 47) + "_635361c48bb9eab1",
		strings.Repeat("a", 63) + "/": strings.Repeat("a", 47) + "_6483da767874c467",
	} {
		if got := ModelName(canonical); got != want {
			t.Errorf("%q has the form %q, want %q", canonical, got, want)
		}
	}
}

var (
	fits    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	unfit   = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	hexTail = regexp.MustCompile(`_[0-9a-f]*$`)
)

// plainModel makes a model form again, in the plainest way.
func plainModel(canonical string, digits int) string {
	if fits.MatchString(canonical) && len(hexTail.FindString(canonical)) != 1+digits {
		return canonical
	}
	form := unfit.ReplaceAllString(canonical, "_")
	return form[:min(len(form), 63-digits)] + "_" + fmt.Sprintf("%x", sha256.Sum256([]byte(canonical)))[:digits]
}

// checkModels holds FromModel and ModelCollisions to the forms of all bound
// names. The table of a history has so few digits that forms often meet.
func (h *history) checkModels() {
	h.t.Helper()
	forms := map[string][]string{}
	for _, b := range h.table.Bindings() {
		form := modelForm(b.Canonical, h.table.digits)
		if want := plainModel(b.Canonical, h.table.digits); form != want || !fit(form) {
			h.t.Fatalf("%q has the form %q, want %q", b.Canonical, form, want)
		}
		forms[form] = append(forms[form], b.Canonical)
	}
	var want []ModelCollision
	for _, form := range slices.Sorted(maps.Keys(forms)) {
		got, ok := h.table.FromModel(form)
		if names := forms[form]; len(names) > 1 {
			want = append(want, ModelCollision{Model: form, Names: names})
			if ok || got != "" {
				h.t.Fatalf("%q leads to %q, but is the form of %q", form, got, names)
			}
		} else if !ok || got != names[0] {
			h.t.Fatalf("%q leads to %q (%t), but is the form of %q", form, got, ok, names)
		}
	}
	if got := h.table.ModelCollisions(); !reflect.DeepEqual(got, want) {
		h.t.Fatalf("model collisions are %v, want %v", got, want)
	}
	for _, other := range append(slices.Clone(meetingTools), "x_0", "_", "_0", "a/x_0", "a_x_g", "0", strings.Repeat("a", 65)) {
		if got, ok := h.table.FromModel(other); forms[other] == nil && (ok || got != "") {
			h.t.Fatalf("%q leads to %q, which has another form", other, got)
		}
	}
}

// TestModelCollisionsComeAndGo: with one digit, two names of one shape soon
// meet. Neither is reachable by that form until the other is gone.
func TestModelCollisionsComeAndGo(t *testing.T) {
	byForm := map[string][]string{}
	var form string
	for i := 0; form == ""; i++ {
		for _, name := range []string{strings.Repeat("a.", i) + "b", strings.Repeat("a/", i) + "b"} {
			f := modelForm(name, 1)
			if byForm[f] = append(byForm[f], name); i > 0 && len(byForm[f]) == 2 {
				form = f
			}
		}
	}
	one, two := byForm[form][0], byForm[form][1]
	table := NewTable(PrefixOnCollision, "/")
	table.digits = 1
	table.Set("p", []string{one, "fit"})
	table.Set("q", []string{two})
	slices.Sort(byForm[form])
	if got := table.ModelCollisions(); !reflect.DeepEqual(got, []ModelCollision{{form, byForm[form]}}) {
		t.Errorf("collisions are %v, want %q under %q", got, byForm[form], form)
	}
	if got, ok := table.FromModel(form); ok {
		t.Errorf("%q leads to %q, and is the form of %q and %q", form, got, one, two)
	}
	if table.Len() != 3 || len(table.models.one) != 1 {
		t.Errorf("%d names, %d of them indexed by form; only forms that differ need it", table.Len(), len(table.models.one))
	}
	table.Set("p", nil)
	if got, ok := table.FromModel(form); !ok || got != two || table.ModelCollisions() != nil {
		t.Errorf("%q leads to %q (%t) when %q is gone; collisions %v", form, got, ok, one, table.ModelCollisions())
	}
}

// TestModelNamesOfManyTools: no two of 20,000 names meet, prefixed or not.
func TestModelNamesOfManyTools(t *testing.T) {
	for _, policy := range policies {
		table := tableOf(policy, "/", realistic(200, 100))
		for _, b := range table.Bindings() {
			if got, ok := table.FromModel(ModelName(b.Canonical)); !ok || got != b.Canonical {
				t.Fatalf("%s: %q leads to %q (%t), want %q", policy, ModelName(b.Canonical), got, ok, b.Canonical)
			}
		}
	}
}
