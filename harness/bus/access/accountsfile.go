package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// AccountsFile is the name of the nats-server configuration snippet that
// WriteCredentials writes beside the seeds.
const AccountsFile = "nats-accounts.conf"

// ErrStaleAccounts says that AccountsFile is not what an outside server needs: it
// lacks a user, or is for another log. It concerns outside servers only: the embedded
// server does not read the file.
var ErrStaleAccounts = errors.New("does not name every NATS user")

const accountsHeader = `# The NATS accounts of this Waybill log, their users, and what each may do.
#
# Written by "waybill init" and "waybill host add", which write it anew where a user
# has come; the embedded server does not read it. To use a NATS server of your own,
# include this file in its configuration, which must also enable JetStream, set
# nats.url, and have it loaded again (nats-server --signal reload) when it has changed.
# The file has public keys only; the seeds stay beside it in *.nk.
`

const digestLine = "# sha256 of what follows, by which an edited file is known and left alone: "

// accountsFile is the whole of AccountsFile.
func accountsFile(prefix, logID string, c Credentials) []byte {
	body := append([]byte(accountsHeader), Config(prefix, logID, c)...)
	return append([]byte(digestLine+digestOf(body)+"\n"), body...)
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// asWritten reports whether nobody has changed the file since it was written.
func asWritten(data []byte) bool {
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	return string(first) == digestLine+digestOf(rest)
}

// writeAccounts makes the file, or makes it anew if it is as it was written and
// should be another.
func writeAccounts(made []string, dir, prefix, logID string) ([]string, error) {
	c, err := LoadCredentials(dir)
	if err != nil {
		return made, err
	}
	path, want := filepath.Join(dir, AccountsFile), accountsFile(prefix, logID, c)
	fresh, err := createFile(path, want, 0o600)
	if err != nil {
		return made, err
	}
	if fresh {
		return append(made, path), nil
	}
	have, err := os.ReadFile(path)
	switch {
	case err != nil:
		return made, fmt.Errorf("read the NATS configuration: %w", err)
	case bytes.Equal(have, want):
		return made, nil
	case !asWritten(have):
		return made, checkEdited(path, have, prefix, logID, c)
	}
	if err := replaceFile(path, want, 0o600); err != nil {
		return made, err
	}
	return append(made, path), nil
}

// CheckAccounts reports whether AccountsFile in a directory of credentials is what
// an outside server needs for a log. One that a person has edited has to name every
// user and account, and the subjects of the log. If it is not, the error wraps
// ErrStaleAccounts; a directory without the file is in order. It changes nothing.
func CheckAccounts(dir, prefix, logID string) error {
	c, err := LoadCredentials(dir)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, AccountsFile)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the NATS configuration: %w", err)
	case bytes.Equal(data, accountsFile(prefix, logID, c)):
		return nil
	}
	if err := checkEdited(path, data, prefix, logID, c); err != nil || !asWritten(data) {
		return err
	}
	return fmt.Errorf("%s %w, or gives one more or less than it should have: run waybill init to have it written anew", path, ErrStaleAccounts)
}

// checkEdited looks for what must be in the file whatever else is.
func checkEdited(path string, data []byte, prefix, logID string, c Credentials) error {
	if !bytes.Contains(data, []byte(CheckpointSubject(prefix, logID))) {
		return fmt.Errorf("%s %w: it is for another log than %s", path, ErrStaleAccounts, logID)
	}
	list, between := layout(prefix, logID, c)
	for _, a := range list {
		if !bytes.Contains(data, []byte(a.name+" {")) {
			return fmt.Errorf("%s %w (the account %s is missing): %s", path, ErrStaleAccounts, a.name, moveAway(data))
		}
	}
	for _, a := range list {
		for _, u := range a.users {
			if !bytes.Contains(data, []byte(u.public)) {
				return fmt.Errorf("%s %w (%s is missing): %s", path, ErrStaleAccounts, u.name, moveAway(data))
			}
		}
	}
	for _, p := range between {
		if strings.HasPrefix(p.subject, readRoot(prefix)) && !bytes.Contains(data, []byte(quoted(p.subject))) {
			return fmt.Errorf("%s %w (what %s asks the keeper of a stream is missing): %s", path, ErrStaleAccounts, p.to, moveAway(data))
		}
	}
	return nil
}

// moveAway says how to have the file written anew.
func moveAway(data []byte) string {
	if asWritten(data) {
		return "run waybill init to have it written anew"
	}
	return "it has been edited, or is of an older version; move it away and run waybill init to have it written anew"
}
