package pin

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"waybill/domain"
)

// pinned makes a script with an interpreter, an argument file, a data file and
// a folder, and the spec that starts it.
func pinned(t *testing.T) Spec {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	putFile(t, at("bin/run"), "machine code\n", 0o755)
	putFile(t, at("server"), "#!/usr/bin/env run\nbody\n", 0o755)
	putFile(t, at("rules.txt"), "rules\n", 0o644)
	putFile(t, at("more.txt"), "more\n", 0o644)
	putFile(t, at("state.db"), "state\n", 0o644)
	putFile(t, at("tree/x"), "x\n", 0o644)
	return Spec{
		Name: "notes", Command: "./server", Path: at("server"),
		Args:     []string{"rules.txt", "--more=more.txt", "--db=state.db", "tree", "later.txt"},
		EnvNames: []string{"PATH", "HOME"}, Set: map[string]string{"A": "b"}, SecretNames: []string{"TOKEN"},
		Dir: dir, PeerPath: at("bin"), DataFiles: []string{"state.db"},
	}
}

func mustPin(t *testing.T, s Spec) Pin {
	t.Helper()
	pin, err := Make(s)
	if err != nil {
		t.Fatal(err)
	}
	return pin
}

func TestAPinThatHoldsIsEmptyHanded(t *testing.T) {
	s := pinned(t)
	pin := mustPin(t, s)
	if code, reason := pin.Check(s); code != "" || reason != "" {
		t.Errorf("got %q %q", code, reason)
	}
	if len(pin.Interpreters) != 2 || pin.Interpreters[1].Path != filepath.Join(s.Dir, "bin/run") {
		t.Errorf("interpreters: %+v", pin.Interpreters)
	}
	if len(pin.Files) != 2 || pin.Files[0].Argument != 1 || pin.Files[1].Argument != 2 {
		t.Errorf("files: %+v", pin.Files)
	}
}

func TestEachIngredientOfAPinIsChecked(t *testing.T) {
	edit := func(name, content string) func(*testing.T, *Spec) {
		return func(t *testing.T, s *Spec) {
			path := filepath.Join(s.Dir, name)
			info, err := os.Stat(path)
			mode := os.FileMode(0o644)
			if err == nil {
				mode = info.Mode()
			}
			putFile(t, path, content, mode)
		}
	}
	change := func(f func(*Spec)) func(*testing.T, *Spec) {
		return func(_ *testing.T, s *Spec) { f(s) }
	}
	for _, c := range []struct {
		name string
		do   func(*testing.T, *Spec)
		want string // "" is no mismatch
	}{
		{"script", edit("server", "#!/usr/bin/env run\nother\n"), "the program DIR/server has changed"},
		{"interpreter", edit("bin/run", "other\n"), "the interpreter DIR/bin/run has changed"},
		{"another interpreter", edit("server", "#!/bin/sh\n"), "the script is run by /bin/sh, pinned is /usr/bin/env then DIR/bin/run"},
		{"no script any more", edit("server", "binary"), "the script is run by no interpreter"},
		{"argument file", edit("rules.txt", "other"), "the file named by argument 1 has changed"},
		{"argument file after =", edit("more.txt", "other"), "the file named by argument 2 has changed"},
		{"argument file gone", func(t *testing.T, s *Spec) {
			if err := os.Remove(filepath.Join(s.Dir, "rules.txt")); err != nil {
				t.Fatal(err)
			}
		}, "the file named by argument 1 is gone"},
		{"argument file that was not there", edit("later.txt", "x"), "argument 5 names a file that was not pinned"},
		{"data file", edit("state.db", "other"), ""},
		{"in a folder", edit("tree/x", "other"), ""},
		{"data file list", change(func(s *Spec) { s.DataFiles = append(s.DataFiles, "rules.txt") }), "the list under data_files has changed"},
		{"args", change(func(s *Spec) { s.Args = append(s.Args, "-v") }), "the list of arguments has changed"},
		{"args split otherwise", change(func(s *Spec) { s.Args[3], s.Args[4] = "treelater", ".txt" }), "the list of arguments has changed"},
		{"env", change(func(s *Spec) { s.EnvNames = append(s.EnvNames, "LD_PRELOAD") }), "env or secret_env have changed"},
		{"env in another order", change(func(s *Spec) { s.EnvNames[0], s.EnvNames[1] = "HOME", "PATH" }), ""},
		{"a secret made plain", change(func(s *Spec) { s.EnvNames, s.SecretNames = append(s.EnvNames, "TOKEN"), nil }), "env or secret_env have changed"},
		{"set value", change(func(s *Spec) { s.Set = map[string]string{"A": "c"} }), "the values under set have changed"},
		{"set name", change(func(s *Spec) { s.Set = map[string]string{"AB": ""} }), "the values under set have changed"},
		{"directory", change(func(s *Spec) { s.Dir = filepath.Join(s.Dir, "tree") }), "the working directory has changed"},
		{"allow_legacy", change(func(s *Spec) { s.AllowLegacy = true }), "allow_legacy is true, pinned is false"},
		{"command", change(func(s *Spec) { s.Command = "server" }), `the command is "server", pinned is "./server"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pinned(t)
			dir := s.Dir
			pin := mustPin(t, s)
			c.do(t, &s)
			code, reason := pin.Check(s)
			if c.want == "" {
				if code != "" {
					t.Errorf("refused: %s %s", code, reason)
				}
				return
			}
			reason = strings.ReplaceAll(reason, dir, "DIR")
			if code != domain.CodePinMismatch || !strings.Contains(reason, c.want) || !strings.HasSuffix(reason, "run waybill pin") {
				t.Errorf("got %q %q, want %q", code, reason, c.want)
			}
			if again := mustPin(t, s); again.Digest() == pin.Digest() {
				t.Error("the digests are the same")
			}
		})
	}
}

func TestABinaryThatChangedBehindALinkIsFound(t *testing.T) {
	dir := t.TempDir()
	target := putFile(t, filepath.Join(dir, "server-1"), "one", 0o755)
	link := filepath.Join(dir, "server")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	s := Spec{Command: link, Path: link, Dir: dir}
	pin := mustPin(t, s)
	if pin.Path != link {
		t.Errorf("the link was resolved to %s", pin.Path)
	}
	putFile(t, target, "two", 0o755)
	code, reason := pin.Check(s)
	if want := "the program " + link + " has changed: if this is meant, run waybill pin"; code != domain.CodePinMismatch || reason != want {
		t.Errorf("got %q %q", code, reason)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	s := pinned(t)
	pin := mustPin(t, s)
	refused := func(change func(*Spec), want domain.Code, part string) {
		t.Helper()
		spec := s
		change(&spec)
		if code, reason := pin.Check(spec); code != want || !strings.Contains(reason, part) {
			t.Errorf("check: got %q %q, want %q %q", code, reason, want, part)
		}
		if code, _ := spec.Admissible(); code != want {
			t.Errorf("admissible: got %q, want %q", code, want)
		}
		if _, err := Make(spec); err == nil || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "peer notes") {
			t.Errorf("make: got %v", err)
		}
	}
	refused(func(s *Spec) { s.Dir += "/nowhere" }, domain.CodeDirMissing, "nowhere is not there")
	refused(func(s *Spec) { s.Path += ".gone" }, domain.CodeCommandMissing, "there is no file")
	refused(func(s *Spec) { s.Path = filepath.Join(s.Dir, "rules.txt") }, domain.CodeCommandMissing, "is not executable")
	refused(func(s *Spec) { s.PeerPath = "/nowhere" }, domain.CodeCommandMissing, "command run: not found on PATH")
	npx := putFile(t, filepath.Join(s.Dir, "npx"), "x", 0o755)
	refused(func(s *Spec) { s.Path = npx }, domain.CodeUnpinnedCode, "npx runs code that a pin does not cover")
}

func TestAScriptIsFollowedToItsInterpreters(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	run := putFile(t, at("bin/run"), "machine code", 0o755)
	putFile(t, at("bin/uv"), "machine code", 0o755)
	putFile(t, at("bin/inner"), "#!"+run+" -x\n", 0o755)
	for _, c := range []struct{ name, line, want string }{
		{"direct", "#!" + run, "run"},
		{"with an argument", "#! " + run + "  -a -b ", "run"},
		{"carriage return", "#!" + run + "\r", "run"},
		{"relative to the directory", "#!bin/run", "run"},
		{"env", "#!/usr/bin/env run", "env run"},
		{"env -S", "#!/usr/bin/env -S A=b run --flag", "env run"},
		{"env -S without space", "#!/usr/bin/env -Srun --flag", "env run"},
		{"a script run by a script", "#!" + at("bin/inner"), "inner run"},
		{"none", "#!", ""},
		{"no script", "ELF", ""},
		{"env with a word too many", "#!/usr/bin/env run --flag", "error: not found on PATH"},
		{"env with an option", "#!/usr/bin/env -S -i run", "error: which a pin cannot follow"},
		{"env with a PATH", "#!/usr/bin/env -S PATH=/x run", "error: which a pin cannot follow"},
		{"env -S with quotes", "#!/usr/bin/env -S 'run'", "error: quotes"},
		{"env alone", "#!/usr/bin/env", "error: names no program"},
		{"gone", "#!/no/interpreter", "error: its interpreter /no/interpreter"},
		{"itself", "#!" + at("server"), "error: interpreters behind each other"},
		{"launcher", "#!/usr/bin/env -S uv run", "error: uv runs code that a pin does not cover"},
	} {
		server := putFile(t, at("server"), c.line+"\nbody\n", 0o755)
		pin, err := Make(Spec{Command: server, Path: server, Dir: dir, PeerPath: at("bin")})
		var names []string
		for _, by := range pin.Interpreters {
			names = append(names, filepath.Base(by.Path))
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = "error: " + err.Error()
		}
		want, isErr := strings.CutPrefix(c.want, "error: ")
		if isErr && (err == nil || !strings.Contains(got, want)) || !isErr && got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// A virtual environment has a python that is a link, and finds its own folder
// by the path it was started by.
func TestAVirtualEnvironmentKeepsItsPath(t *testing.T) {
	dir := t.TempDir()
	python := putFile(t, filepath.Join(dir, "usr/python"), "#!/bin/sh\necho $0\n", 0o755)
	link := filepath.Join(dir, "venv/bin/python")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(python, link); err != nil {
		t.Fatal(err)
	}
	found, err := Find("venv/bin/python", dir, "")
	if err != nil || found != link {
		t.Fatalf("found %s, %v", found, err)
	}
	script := putFile(t, filepath.Join(dir, "server.py"), "", 0o644)
	s := Spec{Command: "venv/bin/python", Path: found, Args: []string{script}, Dir: dir}
	pin := mustPin(t, s)
	out, err := (&exec.Cmd{Path: pin.Path, Args: append([]string{s.Path}, s.Args...), Dir: dir, Env: []string{}}).Output()
	if err != nil || string(bytes.TrimSpace(out)) != link {
		t.Errorf("it sees itself as %s, %v", out, err)
	}
}

func TestNoTwoListsMeetInADigest(t *testing.T) {
	lists := [][][]string{
		{}, {{}}, {{}, {}}, {{""}}, {{"", ""}}, {{"a"}}, {{"a"}, {}}, {{}, {"a"}}, {{"a", "b"}}, {{"ab"}}, {{"a"}, {"b"}}, {{"a", ""}, {"b"}},
		{{"\x00\x00\x00\x00\x00\x00\x00\x01a"}},
	}
	seen := make(map[string][][]string)
	for _, l := range lists {
		sum := listDigest("x", l...)
		if other, ok := seen[sum]; ok {
			t.Errorf("%q and %q have the same digest", l, other)
		}
		seen[sum] = l
	}
	if listDigest("x", []string{"a"}) == listDigest("y", []string{"a"}) {
		t.Error("the label does not count")
	}
}
