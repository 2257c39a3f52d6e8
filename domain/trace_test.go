package domain

import (
	"regexp"
	"strings"
	"testing"
)

func TestParseTraceDropsWhatIsMalformed(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, bad := range []string{
		"", parent[:54], parent + "0", parent + "-00", strings.ToUpper(parent), "01" + parent[2:], "ff" + parent[2:], " " + parent[1:],
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		strings.Replace(parent, "-", "_", 1), parent[:35] + "_" + parent[36:], parent[:52] + "_01", parent[:10] + "g" + parent[11:],
		parent[:40] + "\"" + parent[41:], parent[:53] + "zz",
	} {
		if got := ParseTrace(bad, "a=b"); got != (Trace{}) {
			t.Errorf("%q became %+v", bad, got)
		}
	}
	for state, whole := range map[string]bool{
		"": false, "a=b": true, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE": true, "a=b, c@d=e ,\tf/g*-_9=h i!": true, "1a=b": true,
		"a": false, "=b": false, "a=": false, "a=b,": false, "A=b": false, "a b=c": false, "_a=b": false, "a=b=c": false, "a=\x7f": false, "a=é": false,
		"a=b\n": false, strings.Repeat("k", 256) + "=v": true, strings.Repeat("k", 257) + "=v": false, "k=" + strings.Repeat("v", 256): true,
		"k=" + strings.Repeat("v", 257): false, strings.Repeat("a=b,", 31) + "a=b": true, strings.Repeat("a=b,", 32) + "a=b": false,
		"a=" + strings.Repeat("v", 253) + ",b=" + strings.Repeat("v", 254): true, "a=" + strings.Repeat("v", 253) + ",b=" + strings.Repeat("v", 255): false,
	} {
		want := Trace{Parent: parent}
		if whole {
			want.State = state
		}
		if got := ParseTrace(parent, state); got != want {
			t.Errorf("%.40q (%d bytes) became %.40q", state, len(state), got.State)
		}
	}
}

// FuzzParseTrace: what is taken is in the form of the specification, fits an event and a
// line of JSON as it is, and is taken again.
func FuzzParseTrace(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE")
	f.Add("00-00000000000000000000000000000000-00f067aa0ba902b7-01", "a=b")
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a@b=c,")
	parent := regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
	zero := regexp.MustCompile(`^00-(0{32}|.{32}-0{16})`)
	state := regexp.MustCompile(`^[ \t]*[a-z0-9][a-z0-9_*/@-]*=[ -+\--<>-~]+[ \t]*(,[ \t]*[a-z0-9][a-z0-9_*/@-]*=[ -+\--<>-~]+[ \t]*)*$`)
	f.Fuzz(func(t *testing.T, p, s string) {
		x := ParseTrace(p, s)
		if x.Parent != "" && (x.Parent != p || !parent.MatchString(p) || zero.MatchString(p)) || x.Parent == "" && parent.MatchString(p) && !zero.MatchString(p) {
			t.Errorf("parent %q became %q", p, x.Parent)
		}
		if x.State != "" && (x.State != s || x.Parent == "" || len(s) > 512 || !state.MatchString(s)) {
			t.Errorf("state %q became %q", s, x.State)
		}
		if ParseTrace(x.Parent, x.State) != x {
			t.Errorf("%+v is not taken again", x)
		}
	})
}
