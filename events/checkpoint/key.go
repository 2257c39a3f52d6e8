package checkpoint

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

const space = "waybill/"

// Origin is the first line of a log's checkpoints, and the name on their
// signature.
func Origin(log string) string { return space + log }

// errKey says what a public key has to look like.
var errKey = errors.New("no public key of the form name+hash+key, with an Ed25519 key")

// raw returns the Ed25519 key inside a public key.
func raw(public string) (ed25519.PublicKey, error) {
	if _, err := note.NewVerifier(public); err != nil {
		return nil, errKey
	}
	fields := strings.SplitN(public, "+", 3)
	key, err := base64.StdEncoding.DecodeString(fields[2])
	if err != nil {
		return nil, errKey
	}
	return key[1:], nil // the first byte is the algorithm, which NewVerifier has checked
}

func named(public, name string) (string, error) {
	key, err := raw(public)
	if err != nil {
		return "", err
	}
	return note.NewEd25519VerifierKey(name, key)
}

// PublicKey returns a public key under the origin of a log: what any C2SP tool
// verifies the log's checkpoints with. public may have been made under another
// name.
func PublicKey(public, log string) (string, error) { return named(public, Origin(log)) }

// SameKey reports whether two public keys are one key, whatever their names.
func SameKey(a, b string) bool {
	x, errX := raw(a)
	y, errY := raw(b)
	return errX == nil && errY == nil && x.Equal(y)
}

// LogID returns the id of the log that a node keeps under a public key: the
// node's name and 8 hex digits of a hash of the key, so that two nodes of one
// name have different logs.
func LogID(node, public string) (string, error) {
	key, err := named(public, space+node)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(key))
	return node + "-" + hex.EncodeToString(sum[:4]), nil
}

// GenerateKey makes the key pair of a new log of a node, under the origin of
// the log. The private half must be kept secret.
func GenerateKey(random io.Reader, node string) (private, public string, err error) {
	private, public, err = note.GenerateKey(random, space+node)
	if err != nil {
		return "", "", err
	}
	id, err := LogID(node, public)
	if err != nil {
		return "", "", err
	}
	if public, err = PublicKey(public, id); err != nil {
		return "", "", err
	}
	return "PRIVATE+KEY+" + nameAndHash(public) + "+" + strings.SplitN(private, "+", 5)[4], public, nil
}

// nameAndHash is a public key without the key itself.
func nameAndHash(public string) string {
	fields := strings.SplitN(public, "+", 3)
	return fields[0] + "+" + fields[1]
}

// signer signs with a key under another name than it was made with.
type signer struct {
	note.Signer
	name string
	hash uint32
}

// Name implements note.Signer.
func (s signer) Name() string { return s.name }

// KeyHash implements note.Signer.
func (s signer) KeyHash() uint32 { return s.hash }

// errPrivate does not wrap what the parser says: nothing of a private key may be
// printed.
var errPrivate = errors.New("no private key of the form PRIVATE+KEY+name+hash+key, with an Ed25519 key")

// NewSigner returns a signer for the checkpoints of a log, and the public key
// that they verify with. private may have been made under another name. No error
// holds any of it.
func NewSigner(private, log string) (s note.Signer, public string, err error) {
	inner, err := note.NewSigner(private)
	if err != nil {
		return nil, "", errPrivate
	}
	key, err := base64.StdEncoding.DecodeString(strings.SplitN(private, "+", 5)[4])
	if err != nil {
		return nil, "", errPrivate
	}
	half, _ := ed25519.NewKeyFromSeed(key[1:]).Public().(ed25519.PublicKey)
	public, err = note.NewEd25519VerifierKey(Origin(log), half)
	if err != nil {
		return nil, "", err
	}
	v, err := note.NewVerifier(public)
	if err != nil {
		return nil, "", fmt.Errorf("a log named %q can have no key: %w", log, err)
	}
	return signer{Signer: inner, name: v.Name(), hash: v.KeyHash()}, public, nil
}
