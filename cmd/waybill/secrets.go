package main

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/config/redact"
)

// secretsOf lists every value that may be written nowhere: those of secret_env,
// and the keys in the data directory, as text and as the bytes they stand for. A
// key that is not there is left out.
func secretsOf(f *config.File) ([]string, error) {
	out := f.Secrets(os.LookupEnv)
	keys := dataDir(f).KeysDir()
	files := []string{filepath.Join(keys, "log.key"), filepath.Join(keys, "payload.key")}
	seeds, err := filepath.Glob(filepath.Join(escapeGlob(credentialsDir(f)), "*.nk"))
	if err != nil {
		return nil, err
	}
	for _, path := range append(files, seeds...) {
		b, err := os.ReadFile(path)
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
// of a NATS seed, or the last part of a note's key.
func keyForms(key string) []string {
	out := []string{key}
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

// cleaning keeps secrets out of what commands say of themselves. What is a secret
// is found out when something is said; where no configuration can be read, none
// is known. Each Write must hold a whole message.
type cleaning struct {
	to   io.Writer
	file string // of the configuration
	once sync.Once
	r    *redact.Redactor
}

func (c *cleaning) clean(b []byte) []byte {
	c.once.Do(func() {
		f, err := config.Load(c.file)
		if err != nil {
			return
		}
		if secrets, err := secretsOf(f); err == nil {
			c.r = redact.New(secrets)
		}
	})
	return c.r.Redact(b)
}

// Write implements io.Writer.
func (c *cleaning) Write(b []byte) (int, error) {
	if _, err := c.to.Write(c.clean(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// configIn finds the configuration that a command line names, also where the
// command line has mistakes.
func configIn(args []string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--config="); ok {
			return value
		}
		if (arg == "-c" || arg == "--config") && i+1 < len(args) {
			return args[i+1]
		}
		if value, ok := strings.CutPrefix(arg, "-c"); ok && value != "" {
			return strings.TrimPrefix(value, "=")
		}
	}
	return "waybill.yaml"
}
