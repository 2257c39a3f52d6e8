package doctor

import (
	"bytes"
	"errors"
	"io/fs"

	"waybill/harness"
)

// tokens looks at the files of tokens, which another program writes. What a token is
// worth only its peer knows, and nobody is asked.
func (c *checkup) tokens() {
	for _, a := range c.File.Authorizations {
		if a.TokenFile != "" {
			c.token(a.Name, a.TokenFile)
		}
	}
}

func (c *checkup) token(name, path string) {
	const write = "have the program that obtains the token write it there, or name another file under authorizations"
	b, err := harness.ReadSmall(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.add(Warning, "token_missing", path, write, "there is no file: peers with the authorization %s are unauthorized", name)
		return
	case err != nil:
		c.add(Error, "unreadable", path, "run as the user that the service runs as, or give that user the file", "it cannot be read: %v", err)
		return
	case len(bytes.TrimSpace(b)) == 0:
		c.add(Warning, "token_missing", path, write, "the file is empty: peers with the authorization %s are unauthorized", name)
	}
	if mode, ok := modeOf(path); ok && mode&0o077 != 0 {
		c.add(Warning, "permissions", path, "chmod 600 "+path+"; if somebody may have read the token, have a new one made", "other users may read this token (mode %04o)", mode)
	}
}
