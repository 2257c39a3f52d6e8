package lockfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/goccy/go-yaml"

	"waybill/cmd/waybill/config/yamldoc"
	"waybill/harness"
	"waybill/harness/peer/pin"
)

// Name is the name of the lock file, which stands beside the configuration.
const Name = "waybill.lock"

const version = 1

const header = "# made by waybill pin; review changes like code\n"

// A Lock holds the pins of one configuration, by name: those of its peers, and those
// of the token commands of its authorizations.
type Lock struct {
	Peers          map[string]pin.Pin
	Authorizations map[string]pin.Pin
}

// content is the form on disk, sorted by name.
type content struct {
	Version        int      `yaml:"version"`
	Peers          []locked `yaml:"peers"`
	Authorizations []locked `yaml:"authorizations,omitempty"`
}

type locked struct {
	Name    string `yaml:"name"`
	pin.Pin `yaml:",inline"`
}

// Read reads a lock file. Where there is none, the Lock is empty, and every
// peer counts as not pinned. A file that is not as Write writes it gives
// yamldoc.Errors.
func Read(path string) (*Lock, error) {
	data, err := yamldoc.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lock{}, nil
	}
	if err != nil {
		return nil, yamldoc.Errors{yamldoc.Unreadable(path, err, "")}
	}
	doc := &yamldoc.Document{File: path}
	doc.Parse(data) // refuses what could make a small file large
	if len(doc.Errs) > 0 {
		return nil, doc.Errs.Err()
	}
	return decode(path, data)
}

func decode(path string, data []byte) (*Lock, error) {
	var file content
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		e := &yamldoc.Error{File: path, Msg: "is not a lock file: " + err.Error()}
		var located yaml.Error
		if errors.As(err, &located) {
			e.Line, e.Column = yamldoc.Position(located.GetToken())
			e.Msg = "is not a lock file: " + located.GetMessage()
		}
		e.Msg += ": run waybill pin to make it anew"
		return nil, yamldoc.Errors{e}
	}
	if file.Version != version {
		return nil, yamldoc.Errors{{File: path, Key: "version", Msg: fmt.Sprintf(
			"is %d, this program knows %d: run waybill pin to make the file anew", file.Version, version)}}
	}
	lock := &Lock{}
	var err error
	if lock.Peers, err = byName(path, "peers", file.Peers); err != nil {
		return nil, err
	}
	if lock.Authorizations, err = byName(path, "authorizations", file.Authorizations); err != nil {
		return nil, err
	}
	return lock, nil
}

func byName(path, key string, list []locked) (map[string]pin.Pin, error) {
	pins := make(map[string]pin.Pin)
	for _, l := range list {
		if _, twice := pins[l.Name]; twice {
			return nil, yamldoc.Errors{{File: path, Key: key, Msg: fmt.Sprintf("%q is there twice: run waybill pin to make the file anew", l.Name)}}
		}
		pins[l.Name] = l.Pin
	}
	return pins, nil
}

// Write writes a lock file: the same Lock gives the same bytes. The file is
// there whole or as it was before, and durable when Write returns. A crash
// can leave a file ending in .new, which the next call replaces. Two calls must
// not run at once on one path.
func Write(path string, lock Lock) error {
	data, err := encode(lock)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return harness.WriteFile(path, data, 0o644)
}

func encode(lock Lock) ([]byte, error) {
	file := content{Version: version, Peers: inOrder(lock.Peers), Authorizations: inOrder(lock.Authorizations)}
	var b bytes.Buffer
	b.WriteString(header)
	if err := yaml.NewEncoder(&b).Encode(file); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func inOrder(pins map[string]pin.Pin) []locked {
	list := []locked{}
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		list = append(list, locked{name, pins[name]})
	}
	return list
}

// Pin returns the entry of a peer or an authorization. It may be called on nil.
func (l *Lock) Pin(spec pin.Spec) (pin.Pin, bool) {
	if l == nil {
		return pin.Pin{}, false
	}
	pins := l.Peers
	if spec.TokenCommand {
		pins = l.Authorizations
	}
	pin, ok := pins[spec.Name]
	return pin, ok
}
