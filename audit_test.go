package waybill_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// acts matches the symbols without which a program can neither start another nor open a connection: those of package
// syscall, through which everything in Go goes, and those of the C library, which SQLite is linked to.
var acts = regexp.MustCompile(
	`\bsyscall\.(forkExec|forkAndExecInChild|StartProcess|Exec|socket|connect)\b|` +
		` U (socket|connect|v?fork|clone|exec[a-z]+|posix_spawnp?|system|popen)(@|$)`)

// TestAuditProgramCannotAct shows on the built program that the auditor's tool cannot spawn or dial, whatever its sources
// say. The go command's own answers would be cached; TestRules reads every file that they depend on, so a change to one
// runs both again.
func TestAuditProgramCannotAct(t *testing.T) {
	for _, way := range waysToAct(t, ".", "./cmd/waybill-audit") {
		t.Errorf("the audit program can act: %s", way)
	}
}

// TestProgramThatActsIsFound shows that the test above can fail, with a program that does what it looks for.
func TestProgramThatActsIsFound(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go.mod", "module acting\n\ngo 1.26.0\n")
	write(t, dir, "main.go", `package main

import (
	"net"
	"os/exec"
)

// #include <stdlib.h>
import "C"

func main() {
	C.system(nil)
	net.Dial("tcp", "localhost:1")
	exec.Command("true").Run()
}
`)
	got := strings.Join(waysToAct(t, dir, "."), "\n")
	for _, want := range []string{"imports net\n", "imports os/exec", "has syscall.forkExec", "has syscall.connect", "has system"} {
		if !strings.Contains(got, want) {
			t.Errorf("did not find %q in:\n%s", want, got)
		}
	}
}

// waysToAct builds a program and lists what is in it that could start a process or open a connection.
func waysToAct(t *testing.T, dir, program string) []string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "program")
	goCommand(t, dir, "build", "-o", binary, program)
	var ways []string
	for dep := range strings.Lines(goCommand(t, dir, "list", "-deps", program)) {
		if dep = strings.TrimSpace(dep); dep == "net" || dep == "os/exec" {
			ways = append(ways, "it imports "+dep)
		}
	}
	symbols := goCommand(t, dir, "tool", "nm", binary)
	if !strings.Contains(symbols, " main.main\n") {
		t.Fatalf("%s has no symbols to look at", program)
	}
	for symbol := range strings.Lines(symbols) {
		if acts.MatchString(symbol) {
			ways = append(ways, "it has "+strings.TrimSpace(symbol[strings.LastIndexByte(symbol, ' '):]))
		}
	}
	return ways
}

// goCommand runs the go command as this test's own was run, but without the race detector and the version stamp.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
