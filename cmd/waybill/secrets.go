package main

import (
	"io"
	"os"
	"strings"
	"sync"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/config/redact"
)

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
		if secrets, err := f.AllSecrets(os.LookupEnv); err == nil {
			c.r = redact.New(secrets)
		}
	})
	return c.r.Redact(b)
}

// clean returns what may be shown of a text.
func (a *app) clean(s string) string { return string(a.err.clean([]byte(s))) }

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
