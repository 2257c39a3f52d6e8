package access

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"
)

// Identity is one NATS user and its key. Printing it shows the name and the
// public key, never the seed.
type Identity struct {
	name string
	pair nkeys.KeyPair
}

// Name is the name of the user: "service", "replier", "curator", "operator", the name
// of a host, or that of a reader, such as "auditor" or "dashboard-hall".
func (i Identity) Name() string { return i.name }

// Valid reports whether somebody can connect with it. The zero Identity is not.
func (i Identity) Valid() bool { return i.pair != nil }

// Sign signs what the server asks to have signed.
func (i Identity) Sign(nonce []byte) ([]byte, error) { return i.pair.Sign(nonce) }

// Public is the public key, beginning with U; empty for the zero Identity.
func (i Identity) Public() string {
	if i.pair == nil {
		return ""
	}
	public, err := i.pair.PublicKey()
	if err != nil {
		return ""
	}
	return public
}

// String shows the name and the public key.
func (i Identity) String() string { return i.name + " (" + i.Public() + ")" }

// GoString is String, so that %#v does not walk into the key.
func (i Identity) GoString() string { return i.String() }

func loadIdentity(dir, name, file string) (Identity, error) {
	path := filepath.Join(dir, file+".nk")
	data, err := os.ReadFile(path)
	if err != nil {
		return Identity{}, fmt.Errorf("NATS credentials of %s: %w: run waybill init", name, err)
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(data))
	if err == nil {
		err = checkUserKey(pair)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("NATS credentials of %s: %s: %w: move the file away and run waybill init", name, path, err)
	}
	return Identity{name: name, pair: pair}, nil
}

func checkUserKey(pair nkeys.KeyPair) error {
	public, err := pair.PublicKey()
	if err != nil {
		return err
	}
	if !nkeys.IsValidPublicUserKey(public) {
		return errors.New("not the key of a NATS user")
	}
	return nil
}
