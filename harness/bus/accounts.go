package bus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckAccounts reports whether AccountsFile in a directory of credentials is what
// an outside server needs for a log: it names every user and the subjects of the
// log. If it does not, the error wraps ErrStaleAccounts; a directory without the
// file is in order. It changes nothing.
func CheckAccounts(dir, prefix, logID string) error {
	c, err := LoadCredentials(dir)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, AccountsFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read the NATS configuration: %w", err)
	}
	if !bytes.Contains(data, []byte(CheckpointSubject(prefix, logID))) {
		return fmt.Errorf("%s %w: it is for another log than %s", path, ErrStaleAccounts, logID)
	}
	return checkAccounts(path, users(prefix, logID, c))
}
