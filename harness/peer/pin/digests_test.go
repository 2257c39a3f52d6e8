package pin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"waybill/domain"
)

// A file is read once as long as nothing about it says that it has changed. What is
// made without, right before a start, sees every change.
func TestAFileIsReadOnceInOneLook(t *testing.T) {
	path := putFile(t, filepath.Join(t.TempDir(), "server"), "one", 0o755)
	then := time.Unix(1_700_000_000, 0)
	sum := func(d *Digests) string {
		t.Helper()
		s, err := d.of(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write := func(content string, at time.Time) {
		t.Helper()
		putFile(t, path, content, 0o755)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("one", then)
	known := NewDigests()
	one := sum(known)
	if sum(nil) != one {
		t.Error("the two ways differ")
	}
	write("two", then)
	if two := sum(nil); two == one || sum(known) != one || sum(NewDigests()) != two {
		t.Error("a file that says it is the same was read again, or was not where it must be")
	}
	for name, change := range map[string]func(){
		"time":  func() { write("two", then.Add(time.Second)) },
		"size":  func() { write("three", then.Add(time.Second)) },
		"inode": func() { replace(t, path, "seven", then.Add(time.Second)) },
	} {
		known := NewDigests()
		write("three", then.Add(time.Second))
		if name == "size" {
			write("two", then.Add(time.Second))
		}
		if name == "time" {
			write("one", then)
		}
		before := sum(known)
		if change(); sum(known) == before || sum(known) != sum(nil) {
			t.Errorf("%s: a change was not seen", name)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := known.of(path); err == nil {
		t.Error("a file that is gone has a digest")
	}
}

func replace(t *testing.T, path, content string, at time.Time) {
	t.Helper()
	other := putFile(t, path+".new", content, 0o755)
	if err := os.Chtimes(other, at, at); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
}

func TestAnEndpointIsPinnedByItsAddress(t *testing.T) {
	s := Spec{Name: "a", Endpoint: "https://h.example/mcp"}
	made := mustPin(t, s)
	if code, reason := made.Check(s); code != "" || made.Endpoint != s.Endpoint {
		t.Errorf("got %+v, %s %s", made, code, reason)
	}
	if code, _ := s.Admissible(); code != "" || s.Launcher() != "" || s.OnlyInterpreter(made) {
		t.Errorf("an endpoint is looked at like a program: %s", code)
	}
	process := pinned(t)
	for _, c := range []struct {
		name string
		pin  Pin
		spec Spec
		want string
	}{
		{"another", Pin{Endpoint: "https://h.example/"}, s, "the peer is the endpoint https://h.example/mcp, pinned is the endpoint https://h.example/: if this is meant, run waybill pin"},
		{"a process that was", mustPin(t, process), s, `the peer is the endpoint https://h.example/mcp, pinned is the command "./server": if this is meant, run waybill pin`},
		{"a process that is", made, process, `the peer is the command "./server", pinned is the endpoint https://h.example/mcp: if this is meant, run waybill pin`},
		{"legacy", Pin{Endpoint: s.Endpoint, AllowLegacy: true}, s, "allow_legacy is false, pinned is true: if this is meant, run waybill pin"},
	} {
		if code, reason := c.pin.Check(c.spec); code != domain.CodePinMismatch || reason != c.want {
			t.Errorf("%s: %s %s", c.name, code, reason)
		}
	}
	digests := map[string]bool{}
	for _, p := range []Pin{made, {Endpoint: s.Endpoint, AllowLegacy: true}, {Endpoint: "https://h.example/"}, {Command: s.Endpoint}, {}} {
		digests[p.Digest()] = true
	}
	if len(digests) != 5 {
		t.Errorf("five pins have %d digests", len(digests))
	}
}

// What is said of a token command does not advise what its configuration cannot say.
func TestATokenCommandIsNamedInMessages(t *testing.T) {
	dir := t.TempDir()
	npx := putFile(t, filepath.Join(dir, "npx"), "x", 0o755)
	_, err := Make(Spec{Name: "a", TokenCommand: true, Command: npx, Path: npx, Dir: dir})
	if want := "authorization a: npx runs code that a pin does not cover: name the program that it runs, or a script file"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
