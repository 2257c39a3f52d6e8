package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"waybill/events/checkpoint"
)

// KeyFiles are where the keys of a log are kept. Next is there while a rotation
// is under way: a crash leaves it, and what the log says decides what becomes of
// it.
type KeyFiles struct {
	Private, Public         string
	NextPrivate, NextPublic string
	Rotations               string // the notes of all rotations, in order, a blank line after each
}

// KeyFiles names the files.
func (d DataDir) KeyFiles() KeyFiles {
	return KeyFiles{Private: d.file("keys", "log.key"), Public: d.file("keys", "log.pub"),
		NextPrivate: d.file("keys", "next.key"), NextPublic: d.file("keys", "next.pub"), Rotations: d.file("keys", "rotations")}
}

// Keys returns the public keys that a log has had, the present one last. first is
// the one the log was made with. Each but the first was handed over by the one
// before it, as the notes in keys/rotations show.
func (d DataDir) Keys(log, first string) ([]string, error) {
	keys := []string{first}
	b, err := ReadSmall(d.KeyFiles().Rotations)
	if errors.Is(err, fs.ErrNotExist) {
		return keys, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the rotations of the log's key: %w", err)
	}
	for _, note := range splitNotes(string(b)) {
		next, err := checkpoint.OpenRotation([]byte(note), log, keys[len(keys)-1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w: put it back from a backup", d.KeyFiles().Rotations, err)
		}
		keys = append(keys, next)
	}
	return keys, nil
}

// splitNotes parts the notes of a file, each of which is followed by a blank line
// and has one in it.
func splitNotes(s string) []string {
	parts := strings.Split(strings.TrimSuffix(s, "\n"), "\n\n")
	var out []string
	for i := 0; i+1 < len(parts); i += 2 {
		out = append(out, parts[i]+"\n\n"+strings.TrimSuffix(parts[i+1], "\n")+"\n")
	}
	if len(parts)%2 != 0 && strings.TrimSpace(parts[len(parts)-1]) != "" {
		out = append(out, parts[len(parts)-1])
	}
	return out
}
