package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// ErrRotation is matched by the error of OpenRotation: the note does not hand a
// log over from this key to another.
var ErrRotation = errors.New("no rotation of the log's key, signed by both keys")

// rotationText is what both keys sign: the log, the key it leaves and the key it
// takes.
func rotationText(log, from, to string) string {
	return Origin(log) + "/key\n" + from + "\n" + to + "\n"
}

// NextKey makes another key pair for a log that exists. The private half must be
// kept secret.
func NextKey(random io.Reader, log string) (private, public string, err error) {
	return note.GenerateKey(random, Origin(log))
}

// SignRotation returns the note by which a log leaves one key for another. It is
// signed by both: by the old one, so that nobody else can hand the log over, and
// by the new one, so that it is known to be held. The private halves are read as
// NewSigner reads them.
func SignRotation(log, from, to string) ([]byte, error) {
	old, oldPublic, err := NewSigner(from, log)
	if err != nil {
		return nil, fmt.Errorf("the key of the log: %w", err)
	}
	next, nextPublic, err := NewSigner(to, log)
	if err != nil {
		return nil, fmt.Errorf("the next key of the log: %w", err)
	}
	return note.Sign(&note.Note{Text: rotationText(log, oldPublic, nextPublic)}, old, next)
}

// OpenRotation returns the key that a log takes, if the note hands this log over
// from the given key and is signed by both keys and nobody else. The key is under
// the origin of the log.
func OpenRotation(b []byte, log, from string) (to string, err error) {
	fail := func(what string) (string, error) { return "", fmt.Errorf("%w: %s", ErrRotation, what) }
	if from, err = PublicKey(from, log); err != nil {
		return "", err
	}
	text, _, signed := bytes.Cut(b, []byte("\n\n"))
	lines := strings.Split(string(text), "\n")
	if !signed || len(lines) != 3 {
		return fail("it has not three lines and signatures")
	}
	to = lines[2]
	if string(text)+"\n" != rotationText(log, from, to) {
		return fail("it is of another log, or leaves another key")
	}
	if again, err := PublicKey(to, log); err != nil || again != to || to == from {
		return fail("what it takes is no other key of this log")
	}
	verifiers, err := verifiersOf(from, to)
	if err != nil {
		return fail(err.Error())
	}
	n, err := note.Open(b, verifiers)
	if err != nil || len(n.Sigs) != 2 || len(n.UnverifiedSigs) != 0 || n.Sigs[0].Hash == n.Sigs[1].Hash {
		return fail("it is not signed by both")
	}
	return to, nil
}

func verifiersOf(keys ...string) (note.Verifiers, error) {
	var list []note.Verifier
	for _, key := range keys {
		v, err := note.NewVerifier(key)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return note.VerifierList(list...), nil
}

// Peek returns what a checkpoint says without looking at its signature: nothing
// in it can be relied on before Open. The error matches ErrMalformed.
func Peek(b []byte) (Head, error) {
	h, err := parse(b)
	if err != nil {
		return Head{}, fmt.Errorf("checkpoint: %w: %w", ErrMalformed, err)
	}
	return h, nil
}
