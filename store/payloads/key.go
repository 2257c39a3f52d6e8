package payloads

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A Key is the one secret of a call whose payloads are kept. Without it nobody can
// tell which bytes an event names, or read those that were kept. It is drawn at
// random.
type Key [32]byte

// Name returns the keyed digest by which events name bytes: HMAC-SHA-256, in hex.
func (k Key) Name(b []byte) string {
	m := hmac.New(sha256.New, k.sub("name"))
	m.Write(b)
	return hex.EncodeToString(m.Sum(nil))
}

// sub is the key for one purpose: what events publish under one must not help with
// another.
func (k Key) sub(purpose string) []byte {
	b, err := hkdf.Expand(sha256.New, k[:], "waybill payloads: "+purpose, 32)
	if err != nil {
		panic("a key cannot be derived: " + err.Error()) // its length is a constant
	}
	return b
}

func (k Key) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.sub("seal"))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// place is what bytes are sealed together with, so that they are not taken for
// those of another event.
func (x Payload) place() []byte { return fmt.Appendf(nil, "%d %s", x.Seq, x.Role) }

func (x Payload) seal() ([]byte, error) {
	c, err := x.Key.cipher()
	if err != nil {
		return nil, err
	}
	return c.Seal(make([]byte, 0, len(x.Bytes)+c.Overhead()), nil, x.Bytes, x.place()), nil
}

func (x Payload) open(sealed []byte) ([]byte, error) {
	c, err := x.Key.cipher()
	if err != nil {
		return nil, err
	}
	b, err := c.Open(nil, nil, sealed, x.place())
	if err != nil {
		return nil, fmt.Errorf("what is kept of event %d is damaged: %w", x.Seq, err)
	}
	return b, nil
}
