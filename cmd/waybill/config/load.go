package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill/domain"
)

// manyPeers is the number of peers above which a gateway is worth a thought.
const manyPeers = 10

// mostPeers keeps an event that names every peer within its size.
const mostPeers = 128

// movedWindow is what domain takes where nothing is said.
const movedWindow = domain.MovedWindow * time.Nanosecond

// mostInflight bounds every number of calls at once.
const mostInflight = 65536

const noFile = `there is no such file: name another with -c, or write one, for example

  peers:
    notes:
      command: notes-server
`

// Load reads a configuration. It returns Errors with every mistake in it, or
// the File. A variable that secret_env names must hold at least 8 bytes if it
// is set in our environment, since a shorter value cannot be told from other
// text and so cannot be redacted.
func Load(path string) (*File, error) { return LoadWith(path, os.LookupEnv) }

// LoadWith is Load with another environment than our own.
func LoadWith(path string, lookup func(string) (string, bool)) (*File, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, Errors{unreadable(path, err, noFile)}
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, Errors{unreadable(path, err, "")}
	}
	doc := &document{file: path}
	f := &File{Path: path, Dir: dir}
	root := doc.parse(data)
	if len(doc.errs) == 0 || root != nil {
		f.read(doc.section(root, ""), lookup)
	}
	if err := doc.errs.err(); err != nil {
		return nil, err
	}
	return f, nil
}

// readBounded reads one byte more than a file may have, for parse to see.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFileSize+1))
}

func unreadable(path string, err error, missing string) *Error {
	e := &Error{File: path, Msg: "cannot be read: " + err.Error(), cause: err}
	if missing != "" && errors.Is(err, fs.ErrNotExist) {
		e.Msg = missing
	}
	return e
}

func (f *File) read(s *section, lookup func(string) (string, bool)) {
	f.Node = s.text("node", "local")
	if !domain.ValidName(f.Node) {
		s.fail("node", "%s", nameRule)
	}
	f.Data = f.beside(s.path("data", ".waybill"))
	f.Collision = collision(s)
	f.Separator = s.text("separator", "/")
	if len(f.Separator) < 1 || len(f.Separator) > 3 || strings.Trim(f.Separator, "/_.:-") != "" {
		s.fail("separator", "must be one to three of the characters / _ . : -")
	}
	f.ManyPeersReason = s.text("many_peers_reason", "")
	f.readNATS(s.doc.section(s.typed("nats", mapping), "nats"))
	f.readLimits(s.doc.section(s.typed("limits", mapping), "limits"))
	s.reserved("authorizations")
	s.reserved("hosts")
	f.Payloads = s.oneOf("payloads", payloadsNone, payloadsFull)
	f.Retention = s.durationOrNone("payload_retention", 30*24*time.Hour, time.Minute, 3650*24*time.Hour)
	f.MovedWindow = s.duration("moved_window", movedWindow, longest)
	f.readPeers(s, lookup)
	s.refuseOAuth()
	s.end()
}

const nameRule = "a name is 1 to 63 of a-z, 0-9, _ and -, and begins with a letter or digit"

const later = "comes with a later version: take it out"

// reserved accepts a key that has no meaning yet, as long as it says nothing.
func (s *section) reserved(name string) {
	s.asked = append(s.asked, name)
	e, ok := s.values[name]
	if ok && e.value.kind != null && (e.value.kind != mapping || len(e.value.entries) > 0) {
		s.doc.fail(e.line, e.column, join(s.key, name), "%s", later)
	}
}

func collision(s *section) string {
	if n := s.values["collision"].value; n != nil && n.text == "silent-overwrite" {
		s.asked = append(s.asked, "collision")
		s.fail("collision", "silent-overwrite is refused: a call would reach another server than the one that was read about, "+
			"and nobody would be told; use %s, %s or %s", domain.PrefixOnCollision, domain.RejectOnCollision, domain.PrefixAlways)
		return domain.PrefixOnCollision
	}
	return s.oneOf("collision", domain.PrefixOnCollision, domain.RejectOnCollision, domain.PrefixAlways)
}

// path reads the name of a file or folder.
func (s *section) path(name, otherwise string) string {
	value := s.text(name, otherwise)
	if value == "" && otherwise != "" {
		s.fail(name, "is empty: name a path, or take the key out")
	}
	if strings.ContainsRune(value, 0) {
		s.fail(name, "contains a NUL byte, which no path can")
	}
	return value
}

// beside makes a path of the file absolute.
func (f *File) beside(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(f.Dir, path)
}

func (f *File) readNATS(s *section) {
	f.NATS.URL = s.text("url", "")
	if reason := badURL(f.NATS.URL); reason != "" {
		s.fail("url", "%s", reason)
	}
	f.NATS.Listen = s.text("listen", "127.0.0.1:4222")
	if !validListen(f.NATS.Listen) {
		s.fail("listen", "must be HOST:PORT such as 127.0.0.1:4222, with port 0 for any free one")
	}
	if path := s.path("credentials", ""); path != "" {
		f.NATS.Credentials = f.beside(path)
	}
	f.NATS.Replicas = int(s.number("replicas", 1, 1, 5))
	if f.NATS.Replicas > 1 && f.NATS.URL == "" {
		s.fail("replicas", "more than 1 needs a cluster: the embedded server is one, so name another with nats.url")
	}
	if f.NATS.MaxBytes = s.size("max_bytes", 0, 0, 1<<50); f.NATS.MaxBytes != 0 && f.NATS.MaxBytes < 1<<20 {
		s.fail("max_bytes", "must be 0 for no limit, or at least 1MiB")
	}
	f.NATS.MaxAge = s.durationOrNone("max_age", 0, time.Hour, 100_000*time.Hour)
	f.NATS.MaxLag = s.number("max_lag", 100_000, 0, 1_000_000_000)
	s.end()
}

// badURL does not repeat the address, which may hold a password.
func badURL(address string) string {
	if address == "" {
		return ""
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls"}, u.Scheme):
		return "must be like nats://HOST:PORT or tls://HOST:PORT"
	case u.User != nil:
		return "must hold no user or password: use nats.credentials"
	}
	return ""
}

func validListen(address string) bool {
	if ap, err := netip.ParseAddrPort(address); err == nil {
		return ap.IsValid()
	}
	i := strings.LastIndexByte(address, ':')
	if i < 1 {
		return false
	}
	_, err := strconv.ParseUint(address[i+1:], 10, 16)
	return err == nil && validHost(address[:i])
}

// validHost is true of a host name. One that ends in a number is a mistyped
// address.
func validHost(host string) bool {
	labels := strings.Split(host, ".")
	for _, label := range labels {
		plain := strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		if label == "" || len(label) > 63 || !plain {
			return false
		}
	}
	_, err := strconv.Atoi(labels[len(labels)-1])
	return len(host) <= 253 && err != nil
}

func (f *File) readLimits(s *section) {
	f.Limits.Frame = s.size("frame", 16<<20, 4<<10, 256<<20)
	f.Limits.Inflight = int(s.number("inflight", 1024, 1, mostInflight))
	f.Limits.HostInflight = int(s.number("host_inflight", 256, 1, mostInflight))
	f.Limits.HostRate = s.rate("host_rate", 1_000_000)
	f.Limits.Drain = s.durationOrNone("drain", 10*time.Second, time.Millisecond, time.Hour)
	f.Limits.LogSize = s.size("log_size", 0, 0, 16<<40)
	s.end()
}

func (f *File) readPeers(s *section, lookup func(string) (string, bool)) {
	peers := s.typed("peers", mapping)
	if !s.has("peers") || peers != nil && len(peers.entries) == 0 {
		s.fail("peers", "no peers: name at least one server")
	}
	if peers == nil {
		return
	}
	for _, e := range peers.entries {
		f.Peers = append(f.Peers, f.readPeer(s.doc, e, lookup))
	}
	slices.SortFunc(f.Peers, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	if len(f.Peers) > mostPeers {
		s.fail("peers", "%d peers: one node holds at most %d; put the others behind an MCP gateway", len(f.Peers), mostPeers)
	}
	if len(f.Peers) > manyPeers && strings.TrimSpace(f.ManyPeersReason) == "" {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s: %d peers: more than %d are easier to run behind an MCP gateway; "+
			"if there is a reason to hold them here, write it under many_peers_reason", f.Path, len(f.Peers), manyPeers))
	}
}
