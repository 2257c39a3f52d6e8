package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the wire transcripts anew; read the difference before you keep it")

// What goes over the pipe in each era, from the first message of a fresh
// process to the last, as the peer saw it: "->" it received, "<-" it said.
func TestWireTranscripts(t *testing.T) {
	for _, c := range []struct {
		name, mode string
		more       []string
		exit       int
	}{
		{"modern", "modern", nil, exitDone},
		{"legacy", "legacy", []string{"allow_legacy: true"}, exitDone},
		{"legacy-after-silence", "mute", []string{"allow_legacy: true", "probe_timeout: 50ms"}, exitDone},
		{"legacy-after-exit", "leaving", []string{"allow_legacy: true"}, exitDone},
		{"refused-not-allowlisted", "legacy", nil, exitRefused},
		{"refused-exit", "leaving", nil, exitRefused},
		{"refused-initialize", "refusing", []string{"allow_legacy: true"}, exitRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "", peerYAML{c.name, c.mode, c.more}).ready()
			w.must(c.exit, "call", "--once", "--json", "echo", `{"n":9007199254740993, "b":"\u00e9","a":[]}`)
			got := w.transcript(c.name)
			file := filepath.Join("testdata", "wire", c.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the transcript is\n%s\nand should be\n%s", got, want)
			}
		})
	}
}

// transcript returns what a scripted peer noted, without what it ran.
func (w *world) transcript(peer string) string {
	w.t.Helper()
	b, err := os.ReadFile(w.record(peer))
	if err != nil {
		w.t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "got":
			out.WriteString("-> " + rest)
		case "said":
			out.WriteString("<- " + rest)
		}
	}
	return out.String()
}
