package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	seedSuffix = ".nk"
	hostFile   = "host-"
)

// WriteCredentials makes the keys and the nats-server configuration of a data
// directory, for the users of the service, the operator, the named hosts, one auditor
// and one dashboard, and reports the paths of the files it made, in order. It creates
// what is missing and never touches a key that exists, so it may be called again,
// also with more hosts. The configuration is made from the keys, and anew when they
// have changed. The seeds can be read by their owner only. Each file appears whole or
// not at all, and is durable when WriteCredentials returns; a crash can leave a file
// ending in .tmp, which the next call replaces.
//
// If somebody has edited the configuration and it lacks a user, everything else is
// done and the error wraps ErrStaleAccounts: it is then for the caller to warn. Calls at once,
// also of other processes, wait for each other.
func WriteCredentials(dir, prefix, logID string, hosts []string) (made []string, err error) {
	if err := errors.Join(CheckSpace(prefix, logID), checkHosts(hosts)); err != nil {
		return nil, err
	}
	files := []string{ServiceUser, ReplierUser, CuratorUser, OperatorUser, string(RoleAuditor), string(RoleDashboard)}
	for _, host := range hosts {
		files = append(files, hostFile+host)
	}
	return writeSeeds(dir, prefix, logID, files)
}

// AddUser makes the key of one more user in a directory of credentials, and the
// configuration anew; see WriteCredentials. For an auditor or a dashboard the name
// stands behind its role. It reports nothing for a user that is there.
func AddUser(dir, prefix, logID string, role Role, name string) (made []string, err error) {
	if err := errors.Join(CheckSpace(prefix, logID), CheckUser(role, name)); err != nil {
		return nil, err
	}
	if _, err := LoadCredentials(dir); err != nil {
		return nil, err
	}
	return writeSeeds(dir, prefix, logID, []string{UserFile(role, name)})
}

// CheckUser says what is wrong with the name of a user.
func CheckUser(role Role, name string) error {
	if role == RoleHost {
		return checkHost(name)
	}
	if !ValidName(name) {
		return fmt.Errorf("name %q of the %s: want %s", name, role, namePattern)
	}
	return nil
}

// UserFile is the name of the file of a user's seed, without its suffix: "host-NAME",
// "auditor-NAME" or "dashboard-NAME". It is the name of the user's NATS context, too.
func UserFile(role Role, name string) string { return string(role) + "-" + name }

func writeSeeds(dir, prefix, logID string, files []string) (made []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the credentials directory: %w", err)
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, name := range files {
		path := filepath.Join(dir, name+seedSuffix)
		fresh, err := createSeed(path)
		if err != nil {
			return made, err
		}
		if fresh {
			made = append(made, path)
		}
	}
	return writeAccounts(made, dir, prefix, logID)
}
