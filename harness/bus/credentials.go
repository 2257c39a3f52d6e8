package bus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"
)

// AccountsFile is the name of the nats-server configuration snippet that
// WriteCredentials writes beside the seeds.
const AccountsFile = "nats-accounts.conf"

// ErrStaleAccounts says that AccountsFile exists and lacks the public key of a
// user. It concerns outside servers only: the embedded server does not read
// the file.
var ErrStaleAccounts = errors.New("does not name every NATS user")

// Identity is one NATS user and its key. Printing it shows the name and the
// public key, never the seed.
type Identity struct {
	name string
	pair nkeys.KeyPair
}

// Name is the name of the user: "service", "replier", "operator" or the name of a
// host.
func (i Identity) Name() string { return i.name }

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

// Credentials are the NATS users of one data directory with their keys.
type Credentials struct {
	service  Identity
	replier  Identity
	operator Identity // zero in a directory that has none yet
	hosts    map[string]Identity
}

// Service is the user that publishes events and speaks to JetStream.
func (c Credentials) Service() Identity { return c.service }

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
	names := []string{serviceUser, replierUser}
	if c.operator.pair != nil {
		names = append(names, operatorUser)
	}
	return "credentials of " + nameList(append(names, c.HostNames()...))
}

// GoString is String.
func (c Credentials) GoString() string { return c.String() }

// WriteCredentials makes the keys and the nats-server configuration of a data
// directory and reports the paths of the files it made, in order. It creates
// what is missing and never touches what exists, so it may be called again,
// also with more hosts. The seeds can be read by their owner only. Each file
// appears whole or not at all, and is durable when WriteCredentials returns; a
// crash can leave a file ending in .tmp, which the next call replaces.
//
// If the configuration exists but lacks a user, everything else is done and
// the error wraps ErrStaleAccounts: it is then for the caller to warn. Two
// calls must not run at once on the same directory.
func WriteCredentials(dir, prefix, logID string, hosts []string) (made []string, err error) {
	if err := errors.Join(CheckSpace(prefix, logID), checkHosts(hosts)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the credentials directory: %w", err)
	}
	names := []string{serviceUser, replierUser, operatorUser}
	for _, host := range hosts {
		names = append(names, "host-"+host)
	}
	for _, name := range names {
		path := filepath.Join(dir, name+".nk")
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

func writeAccounts(made []string, dir, prefix, logID string) ([]string, error) {
	c, err := LoadCredentials(dir)
	if err != nil {
		return made, err
	}
	list := users(prefix, logID, c)
	path := filepath.Join(dir, AccountsFile)
	fresh, err := createFile(path, accountsConfig(list), 0o600)
	if err != nil {
		return made, err
	}
	if fresh {
		return append(made, path), nil
	}
	return made, checkAccounts(path, list)
}

func checkAccounts(path string, list []user) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the NATS configuration: %w", err)
	}
	for _, u := range list {
		if !bytes.Contains(data, []byte(u.public)) {
			return fmt.Errorf("%s %w (%s is missing): move it away and run waybill init to have it written anew",
				path, ErrStaleAccounts, u.name)
		}
	}
	return nil
}

// createSeed makes a key if there is no file for it.
func createSeed(path string) (bool, error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return false, fmt.Errorf("make a NATS key: %w", err)
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return false, fmt.Errorf("make a NATS key: %w", err)
	}
	return createFile(path, append(seed, '\n'), 0o600)
}

// createFile writes a new file, whole and durable, and reports false if the
// path exists. The link is the commit point: it fails if the path exists, and
// a crash before it leaves only the .tmp file.
func createFile(path string, data []byte, mode fs.FileMode) (bool, error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	tmp := path + ".tmp"
	if err := writeSynced(tmp, data, mode); err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	err := os.Link(tmp, path)
	if rest := os.Remove(tmp); err == nil {
		err = rest
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	return true, syncDir(filepath.Dir(path))
}

func writeSynced(path string, data []byte, mode fs.FileMode) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, werr := f.Write(data)
	return errors.Join(werr, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// LoadCredentials reads every key of a data directory. It creates nothing; an
// error names the file and says what to do. A missing key of the operator is no
// error: there is no such user then.
func LoadCredentials(dir string) (Credentials, error) {
	c := Credentials{hosts: map[string]Identity{}}
	var err error
	if c.service, err = loadIdentity(dir, serviceUser, serviceUser); err != nil {
		return Credentials{}, err
	}
	if c.replier, err = loadIdentity(dir, replierUser, replierUser); err != nil {
		return Credentials{}, err
	}
	if c.operator, err = LoadOperator(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	return c, nil
}

// LoadOperator reads the key of the operator and no other.
func LoadOperator(dir string) (Identity, error) { return loadIdentity(dir, operatorUser, operatorUser) }

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
