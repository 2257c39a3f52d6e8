package checkpoint

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"
)

// A Head is what a checkpoint says: a log had this root at this size.
type Head struct {
	Log  string
	Size int64
	Root [32]byte // RFC 6962
}

var (
	// ErrMalformed is matched by the error of Open for bytes that no key of ours
	// would have signed: they are no checkpoint, or more than one signature on it.
	ErrMalformed = errors.New("not a checkpoint of a waybill log")

	// ErrSignature is matched by the error of Open for a checkpoint whose
	// signature is not by the key, or not over this text.
	ErrSignature = errors.New("not signed by the key of the log")
)

func (h Head) text() string {
	return string(log.Checkpoint{Origin: Origin(h.Log), Size: uint64(h.Size), Hash: h.Root[:]}.Marshal())
}

// Sign returns the signed checkpoint. The same head gives the same bytes. It
// fails for a head of another log than the signer was made for.
func Sign(s note.Signer, h Head) ([]byte, error) {
	if h.Size < 0 || s.Name() != Origin(h.Log) {
		return nil, fmt.Errorf("sign size %d of log %q as %s: not a head of its log", h.Size, h.Log, s.Name())
	}
	b, err := note.Sign(&note.Note{Text: h.text()}, s)
	if err != nil {
		return nil, fmt.Errorf("sign size %d of log %q: %w", h.Size, h.Log, err)
	}
	return b, nil
}

// Open returns what a checkpoint says, if it has the one signature of the key
// and is, byte for byte, what Sign returns. Which log it is of is for the caller
// to compare. public may have been made under another name.
func Open(b []byte, public string) (Head, error) {
	if _, err := raw(public); err != nil {
		return Head{}, fmt.Errorf("checkpoint: public key: %w", err)
	}
	h, err := parse(b)
	if err != nil {
		return Head{}, fmt.Errorf("checkpoint: %w: %w", ErrMalformed, err)
	}
	if err := verify(b, public, h); err != nil {
		return Head{}, fmt.Errorf("checkpoint of log %s with %d events: %w", h.Log, h.Size, err)
	}
	return h, nil
}

// parse reads the text; nothing in it can be relied on yet.
func parse(b []byte) (Head, error) {
	text, _, signed := bytes.Cut(b, []byte("\n\n"))
	if !signed {
		return Head{}, errors.New("it has no signature")
	}
	text = append(bytes.Clone(text), '\n')
	var c log.Checkpoint
	rest, err := c.Unmarshal(text)
	if err != nil {
		return Head{}, err
	}
	name, ours := strings.CutPrefix(c.Origin, space)
	h := Head{Log: name, Size: int64(c.Size)}
	switch {
	case !ours || name == "":
		return Head{}, fmt.Errorf("its origin is %.80q", c.Origin)
	case c.Size > math.MaxInt64:
		return Head{}, fmt.Errorf("its size is %d", c.Size)
	case copy(h.Root[:], c.Hash) != len(c.Hash) || len(c.Hash) != len(h.Root):
		return Head{}, fmt.Errorf("its root has %d bytes", len(c.Hash))
	case len(rest) > 0:
		return Head{}, errors.New("it has more than three lines")
	case h.text() != string(text):
		return Head{}, errors.New("its text is not in the one encoding of its head")
	}
	return h, nil
}

func verify(b []byte, public string, h Head) error {
	key, err := PublicKey(public, h.Log)
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return fmt.Errorf("%w: its log can have no key: %w", ErrMalformed, err)
	}
	n, err := note.Open(b, note.VerifierList(verifier))
	var other *note.UnverifiedNoteError
	var bad *note.InvalidSignatureError
	switch {
	case errors.As(err, &other) || errors.As(err, &bad):
		return fmt.Errorf("%w, %s", ErrSignature, key)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return sole(b, h, n.Sigs[0])
}

// sole refuses whatever stands beside the three lines and the one signature.
func sole(b []byte, h Head, sig note.Signature) error {
	bits, err := base64.StdEncoding.DecodeString(sig.Base64)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	want := h.text() + "\n\u2014 " + sig.Name + " " + base64.StdEncoding.EncodeToString(bits) + "\n"
	if string(b) != want {
		return fmt.Errorf("%w: there is more to it than one signature in the one encoding", ErrMalformed)
	}
	return nil
}
