package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Role is what a user may do, for those of which there can be any number.
type Role string

// The roles. A host submits calls. An auditor reads everything, and a dashboard what
// is public; neither can write or call.
const (
	RoleHost      Role = "host"
	RoleAuditor   Role = "auditor"
	RoleDashboard Role = "dashboard"
)

// readerRoles are the roles of who only reads.
var readerRoles = []Role{RoleAuditor, RoleDashboard}

// Reader is an auditor or a dashboard. The first of each is named as its role,
// others "auditor-NAME" and "dashboard-NAME".
type Reader struct {
	Identity
	Role Role
}

// account is the NATS account of the reader alone.
func (r Reader) account() string {
	return callAccount + "_" + strings.ToUpper(string(r.Role)) + strings.Replace(strings.TrimPrefix(r.name, string(r.Role)), "-", "_", 1)
}

// LoadReader reads the key of one auditor or dashboard and no other.
func LoadReader(dir, name string) (Identity, error) {
	if _, ok := readerFile(name + seedSuffix); !ok {
		return Identity{}, fmt.Errorf("reader %q: want auditor or dashboard, perhaps with - and a name behind it", name)
	}
	return loadIdentity(dir, name, name)
}

// loadReaders reads the keys of all auditors and dashboards, sorted by file.
func loadReaders(dir string) ([]Reader, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("NATS credentials: %w: run waybill init", err)
	}
	var list []Reader
	for _, e := range entries {
		role, ok := readerFile(e.Name())
		if !ok {
			continue
		}
		name := strings.TrimSuffix(e.Name(), seedSuffix)
		id, err := loadIdentity(dir, name, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		list = append(list, Reader{id, role})
	}
	return list, nil
}

// readerFile reports whose seed is in a file of this name, if it is a reader's.
func readerFile(name string) (Role, bool) {
	name, isSeed := strings.CutSuffix(name, seedSuffix)
	for _, role := range readerRoles {
		if name == string(role) {
			return role, isSeed
		}
		if rest, ok := strings.CutPrefix(name, string(role)+"-"); ok {
			return role, isSeed && ValidName(rest)
		}
	}
	return "", false
}
