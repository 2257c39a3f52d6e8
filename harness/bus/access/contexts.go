package access

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
)

// ContextDir is the folder of the contexts in a directory of credentials. Where that
// directory is called "nats", the nats command line finds them if XDG_CONFIG_HOME
// names the folder that it is in; else they have to be copied to
// ~/.config/nats/context.
const ContextDir = "context"

// Reach says how clients reach the server, as far as that is known.
type Reach struct {
	URL       string // of one server or several joined by commas; empty where the port is not known
	CA        string // file of the authority of its certificate, or the certificate itself; empty for the authorities of the system
	Cert, Key string // files of the client's certificate and its key, where the server wants one
}

// ReachOf is where clients on this machine reach the embedded server that listens
// there, with a certificate or without (""). They take that certificate and no other.
func ReachOf(listen, certificate string) Reach {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return Reach{}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "nats://"
	if certificate != "" {
		scheme = "tls://"
	}
	return Reach{URL: scheme + net.JoinHostPort(host, port), CA: certificate}
}

// WriteContexts makes a context of the nats command line for each user that a person
// may be, and reports the paths of the files it made. It creates what is missing, and
// writes anew what is as it was written but says another place than at; what a person
// has edited stays. The files have no secrets: they name those of the seeds. Calls at
// once, also of other processes, wait for each other.
func WriteContexts(dir string, at Reach) (made []string, err error) {
	c, err := LoadCredentials(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("write the NATS contexts: %w", err)
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := os.MkdirAll(filepath.Join(dir, ContextDir), 0o700); err != nil {
		return nil, fmt.Errorf("write the NATS contexts: %w", err)
	}
	for _, f := range c.people() {
		path := filepath.Join(dir, ContextDir, f.file+".json")
		fresh, err := putContext(path, contextOf(filepath.Join(dir, f.file+seedSuffix), f.user, at), at)
		if err != nil {
			return made, err
		}
		if fresh {
			made = append(made, path)
		}
	}
	return made, nil
}

// putContext makes one context, or writes it anew.
func putContext(path string, want []byte, at Reach) (bool, error) {
	have, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createFile(path, want, 0o600)
	case err != nil:
		return false, fmt.Errorf("read the NATS context: %w", err)
	case at.URL == "" || bytes.Equal(have, want) || !contextAsWritten(have):
		return false, nil
	}
	return true, replaceFile(path, want, 0o600)
}

// contextAsWritten reports whether a context is in the very form that contextOf gives it.
func contextAsWritten(b []byte) bool {
	var c natsContext
	return json.Unmarshal(b, &c) == nil && bytes.Equal(c.bytes(), b)
}

// natsContext is the file of a context, in the form of the nats command line.
type natsContext struct {
	Description string `json:"description"`
	URL         string `json:"url,omitempty"`
	NKey        string `json:"nkey"`
	CA          string `json:"ca,omitempty"`
	Cert        string `json:"cert,omitempty"`
	Key         string `json:"key,omitempty"`
	InboxPrefix string `json:"inbox_prefix"`
}

func (c natsContext) bytes() []byte {
	b, _ := json.MarshalIndent(c, "", "  ") // cannot fail: strings
	return append(b, '\n')
}

// person is a user with the name of its files.
type person struct {
	file string
	user Identity
}

// people are the users that are not the service's own.
func (c Credentials) people() []person {
	var list []person
	if c.operator.pair != nil {
		list = append(list, person{OperatorUser, c.operator})
	}
	for _, name := range c.HostNames() {
		list = append(list, person{hostFile + name, c.hosts[name]})
	}
	for _, r := range c.readers {
		list = append(list, person{r.name, r.Identity})
	}
	return list
}

// contextOf is the context of one user.
func contextOf(seed string, id Identity, at Reach) []byte {
	return natsContext{"Waybill: " + id.name, at.URL, seed, at.CA, at.Cert, at.Key, InboxPrefix(id.name)}.bytes()
}

// UserInfo says where what belongs to a user is. Its JSON form is a contract.
type UserInfo struct {
	Role      Role   `json:"role"`
	Name      string `json:"name"` // for a host, the last token of its subjects
	PublicKey string `json:"public_key"`
	Seed      string `json:"seed"`    // file
	Context   string `json:"context"` // file, and without its folder and suffix the name of the context
	Inbox     string `json:"inbox_prefix"`
}

// ListUsers lists the users of a role, sorted by name.
func ListUsers(dir string, role Role) ([]UserInfo, error) {
	c, err := LoadCredentials(dir)
	if err != nil {
		return nil, err
	}
	list := []UserInfo{}
	for _, f := range c.people() {
		of, isReader := readerFile(f.file + seedSuffix)
		switch {
		case f.file == OperatorUser:
			continue
		case !isReader:
			of = RoleHost
		}
		if of == role {
			list = append(list, UserInfo{role, f.user.name, f.user.Public(), filepath.Join(dir, f.file+seedSuffix),
				filepath.Join(dir, ContextDir, f.file+".json"), InboxPrefix(f.user.name)})
		}
	}
	slices.SortFunc(list, func(a, b UserInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}
