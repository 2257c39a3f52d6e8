package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waybill/cmd/waybill/config/yamldoc"
	"waybill/domain"
)

// Error is one mistake in one file, with its place and what to do.
type Error = yamldoc.Error

// Errors is every mistake that was found in a file, in the order of its lines;
// never empty when returned as an error.
type Errors = yamldoc.Errors

// ParseDuration is time.ParseDuration that also knows whole days, as 30d.
func ParseDuration(t string) (time.Duration, error) { return yamldoc.ParseDuration(t) }

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
// text and so cannot be redacted. One that an authorization names must be set, and
// hold as much. What ca_file and the files of headers hold is read here.
func Load(path string) (*File, error) { return LoadWith(path, os.LookupEnv) }

// LoadWith is Load with another environment than our own.
func LoadWith(path string, lookup func(string) (string, bool)) (*File, error) {
	data, err := yamldoc.ReadFile(path)
	if err != nil {
		return nil, Errors{yamldoc.Unreadable(path, err, noFile)}
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, Errors{yamldoc.Unreadable(path, err, "")}
	}
	doc := &yamldoc.Document{File: path}
	f := &File{Path: path, Dir: dir}
	root := doc.Parse(data)
	if len(doc.Errs) == 0 || root != nil {
		refuseOAuth(doc, root)
		r := &reader{File: f, lookup: lookup, used: make(map[string][]string)}
		r.read(doc.Section(root, ""))
	}
	if err := doc.Errs.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// A reader is a File that is being read.
type reader struct {
	*File
	lookup func(string) (string, bool)

	// used has an item for each use of an authorization; the first is the origin it
	// goes to, "" while none is known.
	used map[string][]string
}

func (r *reader) read(s *yamldoc.Section) {
	f := r.File
	f.Node = s.Text("node", "local")
	if !domain.ValidName(f.Node) {
		s.Fail("node", "%s", nameRule)
	}
	f.Data = f.beside(s.Path("data", ".waybill"))
	f.Collision = collision(s)
	f.Separator = s.Text("separator", "/")
	if len(f.Separator) < 1 || len(f.Separator) > 3 || strings.Trim(f.Separator, "/_.:-") != "" {
		s.Fail("separator", "must be one to three of the characters / _ . : -")
	}
	f.ManyPeersReason = s.Text("many_peers_reason", "")
	f.readNATS(s.Under("nats"))
	f.readLimits(s.Under("limits"))
	r.readAuthorizations(s)
	f.Payloads = s.OneOf("payloads", payloadsNone, payloadsFull)
	f.Retention = s.DurationOrNone("payload_retention", 30*24*time.Hour, time.Minute, 3650*24*time.Hour)
	f.MovedWindow = s.Duration("moved_window", movedWindow, longest)
	f.IdempotencyWindow = s.Bounded("idempotency_window", domain.IdempotencyWindow*time.Nanosecond, time.Second, 30*24*time.Hour, "")
	r.readPeers(s)
	r.readHosts(s)
	s.End()
}

const nameRule = "a name is 1 to 63 of a-z, 0-9, _ and -, and begins with a letter or digit"

func collision(s *yamldoc.Section) string {
	if n := s.Values["collision"].Value; n != nil && n.Text == "silent-overwrite" {
		s.Ask("collision")
		s.Fail("collision", "silent-overwrite is refused: a call would reach another server than the one that was read about, "+
			"and nobody would be told; use %s, %s or %s", domain.PrefixOnCollision, domain.RejectOnCollision, domain.PrefixAlways)
		return domain.PrefixOnCollision
	}
	return s.OneOf("collision", domain.PrefixOnCollision, domain.RejectOnCollision, domain.PrefixAlways)
}

// beside makes a path of the file absolute.
func (f *File) beside(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(f.Dir, path)
}

func (f *File) readLimits(s *yamldoc.Section) {
	f.Limits.Frame = s.Size("frame", 16<<20, 4<<10, 256<<20)
	f.Limits.Inflight = int(s.Number("inflight", 1024, 1, mostInflight))
	f.Limits.HostInflight = int(s.Number("host_inflight", 256, 1, mostInflight))
	f.Limits.HostRate = s.Rate("host_rate", 1_000_000)
	f.Limits.Drain = s.DurationOrNone("drain", 10*time.Second, time.Millisecond, time.Hour)
	f.Limits.LogSize = s.Size("log_size", 0, 0, 16<<40)
	s.End()
}

func (r *reader) readPeers(s *yamldoc.Section) {
	f := r.File
	peers := s.Typed("peers", yamldoc.Mapping)
	if !s.Has("peers") || peers != nil && len(peers.Entries) == 0 {
		s.Fail("peers", "no peers: name at least one server")
	}
	if peers == nil {
		return
	}
	for _, e := range peers.Entries {
		f.Peers = append(f.Peers, r.readPeer(s.Doc, e))
	}
	slices.SortFunc(f.Peers, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	if len(f.Peers) > mostPeers {
		s.Fail("peers", "%d peers: one node holds at most %d; put the others behind an MCP gateway", len(f.Peers), mostPeers)
	}
	if len(f.Peers) > manyPeers && strings.TrimSpace(f.ManyPeersReason) == "" {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s: %d peers: more than %d are easier to run behind an MCP gateway; "+
			"if there is a reason to hold them here, write it under many_peers_reason", f.Path, len(f.Peers), manyPeers))
	}
	for _, a := range f.Authorizations {
		if len(r.used[a.Name]) == 0 {
			f.Warnings = append(f.Warnings, fmt.Sprintf("%s: authorizations.%s: no peer uses it", f.Path, a.Name))
		}
	}
}
