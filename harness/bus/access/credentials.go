package access

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Credentials are the NATS users of one data directory with their keys.
type Credentials struct {
	service  Identity
	replier  Identity
	curator  Identity // zero in a directory that has none yet
	operator Identity // zero in a directory that has none yet
	hosts    map[string]Identity
	readers  []Reader // by file
}

// Service is the user that publishes events and speaks to JetStream.
func (c Credentials) Service() Identity { return c.service }

// Curator is the user that makes the stream which dashboards read. It is the zero
// Identity, with which nobody can connect, in a directory that was made without one
// and to which WriteCredentials has not been applied since.
func (c Credentials) Curator() Identity { return c.curator }

// Readers lists the auditors and the dashboards, sorted by name.
func (c Credentials) Readers() []Reader { return slices.Clone(c.readers) }

// Reader is the auditor or the dashboard with the name of its identity.
func (c Credentials) Reader(name string) (Identity, error) {
	var names []string
	for _, r := range c.readers {
		if r.name == name {
			return r.Identity, nil
		}
		names = append(names, r.name)
	}
	return Identity{}, fmt.Errorf("no credentials for the reader %q: there are some for %s", name, nameList(names))
}

// Replier is the user that receives requests and answers them.
func (c Credentials) Replier() Identity { return c.replier }

// Operator is the user that orders what operators may. It is the zero Identity,
// with which nobody can connect, in a directory that was made without one and to
// which WriteCredentials has not been applied since.
func (c Credentials) Operator() Identity { return c.operator }

// HostNames lists the hosts, sorted.
func (c Credentials) HostNames() []string {
	return slices.Sorted(maps.Keys(c.hosts))
}

// Host is the user of the named host.
func (c Credentials) Host(name string) (Identity, error) {
	id, ok := c.hosts[name]
	if !ok {
		return Identity{}, fmt.Errorf("no credentials for host %q: there are some for %s",
			name, nameList(c.HostNames()))
	}
	return id, nil
}

// String names the users and shows no key.
func (c Credentials) String() string {
	names := []string{ServiceUser, ReplierUser}
	for _, id := range []Identity{c.curator, c.operator} {
		if id.pair != nil {
			names = append(names, id.name)
		}
	}
	names = append(names, c.HostNames()...)
	for _, r := range c.readers {
		names = append(names, r.name)
	}
	return "credentials of " + nameList(names)
}

// GoString is String.
func (c Credentials) GoString() string { return c.String() }

// LoadCredentials reads every key of a data directory. It creates nothing; an
// error names the file and says what to do. No two users may have one key. A missing key of the operator, the
// curator or a reader is no error: there is no such user then.
func LoadCredentials(dir string) (Credentials, error) {
	c := Credentials{hosts: map[string]Identity{}}
	var err error
	if c.service, err = loadIdentity(dir, ServiceUser, ServiceUser); err != nil {
		return Credentials{}, err
	}
	if c.replier, err = loadIdentity(dir, ReplierUser, ReplierUser); err != nil {
		return Credentials{}, err
	}
	if c.operator, err = LoadOperator(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Credentials{}, err
	}
	if c.curator, err = loadIdentity(dir, CuratorUser, CuratorUser); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Credentials{}, err
	}
	if c.readers, err = loadReaders(dir); err != nil {
		return Credentials{}, err
	}
	names, err := hostFiles(dir)
	if err != nil {
		return Credentials{}, err
	}
	for _, name := range names {
		if c.hosts[name], err = loadIdentity(dir, name, "host-"+name); err != nil {
			return Credentials{}, err
		}
	}
	if err := c.checkKeys(dir); err != nil {
		return Credentials{}, err
	}
	return c, nil
}

// checkKeys refuses a key that two users have: to a server they would be one, and
// which of the two is not said.
func (c Credentials) checkKeys(dir string) error {
	all := append(c.people(), person{ServiceUser, c.service}, person{ReplierUser, c.replier})
	if c.curator.pair != nil {
		all = append(all, person{CuratorUser, c.curator})
	}
	had := map[string]string{}
	for _, p := range all {
		path := filepath.Join(dir, p.file+seedSuffix)
		if other, twice := had[p.user.Public()]; twice {
			return fmt.Errorf("NATS credentials: %s and %s hold the same key: move the copy away and run waybill init", other, path)
		}
		had[p.user.Public()] = path
	}
	return nil
}

// LoadOperator reads the key of the operator and no other.
func LoadOperator(dir string) (Identity, error) { return loadIdentity(dir, OperatorUser, OperatorUser) }

// LoadHost reads the key of one host and no other, for programs that have been
// given nothing else.
func LoadHost(dir, host string) (Identity, error) {
	if err := checkHost(host); err != nil {
		return Identity{}, err
	}
	id, err := loadIdentity(dir, host, "host-"+host)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	names, listErr := hostFiles(dir)
	if listErr != nil || len(names) == 0 {
		return Identity{}, err
	}
	return Identity{}, fmt.Errorf("no credentials for host %q in %s: use --host with a name whose credentials exist (%s): %w",
		host, dir, strings.Join(names, ", "), fs.ErrNotExist)
}

// hostFiles lists the hosts that have a seed in dir, sorted.
func hostFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("NATS credentials: %w: run waybill init", err)
	}
	var names []string
	for _, e := range entries {
		name, isHost := strings.CutPrefix(e.Name(), "host-")
		name, isSeed := strings.CutSuffix(name, ".nk")
		if isHost && isSeed && checkHost(name) == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

func nameList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
