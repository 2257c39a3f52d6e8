package pin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxInterpreters is how many interpreters may stand behind each other. Linux
// gives up at five; env takes a place here that it does not take there.
const maxInterpreters = 8

// defaultPath is where execvp looks when the environment has no PATH.
const defaultPath = "/bin:/usr/bin"

// An interpreter is a program that runs a script in our stead, and the words
// that follow it on the script's first line.
type interpreter struct {
	path string
	args []string
}

// interpreters lists what runs the program at path: nothing for a binary, and
// for a script the interpreter that its first line names, then that of the
// interpreter if it is a script too. "/usr/bin/env X" gives two: env, and X as
// found on peerPath.
func interpreters(path, dir, peerPath string) ([]interpreter, error) {
	var chain []interpreter
	for {
		line, err := firstLine(path)
		if err != nil {
			return nil, err
		}
		name, arg := splitShebang(line)
		if name == "" {
			return chain, nil
		}
		found, err := follow(path, name, arg, dir, peerPath)
		if err != nil {
			return nil, err
		}
		chain = append(chain, found...)
		if len(chain) > maxInterpreters {
			return nil, fmt.Errorf("script %s: more than %d interpreters behind each other: name the last one as the command",
				path, maxInterpreters)
		}
		path = found[len(found)-1].path
	}
}

// firstLine returns the first line of a script without its "#!", or "".
func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot be pinned: %w", err)
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("cannot be pinned: %w", err)
	}
	rest, script := bytes.CutPrefix(head[:n], []byte("#!"))
	if !script {
		return "", nil
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(line), nil
}

// splitShebang splits as Linux does: the interpreter, and everything after it
// as one argument.
func splitShebang(line string) (name, arg string) {
	line = strings.Trim(line, " \t\r")
	i := strings.IndexAny(line, " \t")
	if i < 0 {
		return line, ""
	}
	return line[:i], strings.Trim(line[i:], " \t")
}

func follow(script, name, arg, dir, peerPath string) ([]interpreter, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, name)
	}
	if err := executable(path); err != nil {
		return nil, fmt.Errorf("script %s: its interpreter %s cannot be run: %w", script, name, err)
	}
	first := interpreter{path: path}
	if baseName(path) != "env" {
		if arg != "" {
			first.args = []string{arg}
		}
		return []interpreter{first}, nil
	}
	words, err := envCommand(arg)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", script, err)
	}
	if peerPath == "" {
		peerPath = defaultPath
	}
	found, err := Find(words[0], dir, peerPath)
	if err != nil {
		return nil, fmt.Errorf("script %s: its interpreter for env, looked up on the peer's own PATH: %w", script, err)
	}
	return []interpreter{first, {path: found, args: words[1:]}}, nil
}

// envCommand finds the program in the argument of env on a script's first
// line. Options that change where env would look are refused, because the pin
// would then speak of another program than the one that runs.
func envCommand(arg string) ([]string, error) {
	split := false
	for _, option := range []string{"-S", "--split-string=", "--split-string ", "-vS"} {
		if rest, ok := strings.CutPrefix(arg, option); ok {
			arg, split = strings.TrimSpace(rest), true
			break
		}
	}
	words := []string{arg}
	if split {
		if strings.ContainsAny(arg, `'"\$`) {
			return nil, errors.New("its first line quotes or expands words for env -S: name the interpreter as the command")
		}
		words = strings.Fields(arg)
	}
	for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "PATH=") {
		words = words[1:]
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("its first line names no program after env")
	}
	if words[0][0] == '-' || strings.HasPrefix(words[0], "PATH=") {
		return nil, fmt.Errorf("its first line gives env %s, which a pin cannot follow: name the interpreter as the command", words[0])
	}
	return words, nil
}
