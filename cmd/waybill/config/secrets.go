package config

import (
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"waybill/harness"
)

// AllSecrets returns every value that may be written nowhere: Secrets, and the
// keys in the data directory, as text and as the bytes they stand for. It reads
// their files; a key that is not there is left out.
func (f *File) AllSecrets(lookup func(string) (string, bool)) ([]string, error) {
	out := f.Secrets(lookup)
	seeds := cmp.Or(f.NATS.Credentials, filepath.Join(f.Data, "nats"))
	files, err := filepath.Glob(filepath.Join(escapeGlob(seeds), "*.nk"))
	if err != nil {
		return nil, err
	}
	if f.NATS.TLS.Key != "" {
		files = append(files, f.NATS.TLS.Key)
	}
	for _, path := range append(files, filepath.Join(f.Data, "keys", "log.key"), filepath.Join(f.Data, "keys", "payload.key")) {
		b, err := harness.ReadSmall(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, keyForms(strings.TrimSpace(string(b)))...)
	}
	return out, nil
}

var escapeGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace

// keyForms lists the text of a key and what it encodes: hexadecimal, the base32
// of a NATS seed, PEM, also without its lines, or the last part of a note's key.
func keyForms(key string) []string {
	out := []string{key}
	if block, _ := pem.Decode([]byte(key)); block != nil {
		return append(out, string(block.Bytes), base64.StdEncoding.EncodeToString(block.Bytes))
	}
	if raw, err := hex.DecodeString(key); err == nil {
		return append(out, string(raw))
	}
	if raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(key); err == nil && len(raw) > 4 {
		return append(out, string(raw[2:len(raw)-2])) // between its kind and its checksum
	}
	parts := strings.SplitN(key, "+", 5) // PRIVATE+KEY+name+hash+data
	data := parts[len(parts)-1]
	if raw, err := base64.StdEncoding.DecodeString(data); err == nil && len(raw) > 1 && len(parts) == 5 {
		return append(out, data, string(raw[1:])) // behind the algorithm
	}
	return out
}
