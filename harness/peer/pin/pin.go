package pin

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"waybill/domain"
)

// A Spec is what a configuration says about the program of one peer, or of one
// authorization, as far as a pin covers it. Of a peer that is an endpoint and no
// process, only Name, Endpoint and AllowLegacy are set.
type Spec struct {
	Name     string // of the peer, for messages
	Endpoint string // of a peer over HTTP, as configured; "" for a process

	Command  string            // as configured
	Path     string            // as Find found it
	Args     []string          // without argv[0]
	EnvNames []string          // variables copied from our environment
	Set      map[string]string // variables with fixed values
	// SecretNames are copied too. Their values are never looked at here.
	SecretNames []string
	Dir         string   // the working directory, absolute
	PeerPath    string   // PATH as the peer will see it, "" for none
	DataFiles   []string // arguments, or the files they name, that may change

	AllowLegacy          bool
	UnpinnedCodeAccepted bool

	// TokenCommand says that Name is that of an authorization, whose token the
	// program prints.
	TokenCommand bool

	// Digests is what is known of files by now; nil reads every file.
	Digests *Digests
}

// A Pin is the entry of one peer in the lock file: what was found when somebody
// said that this is the program they mean. It holds paths and SHA-256 digests
// in hex, and none of the texts of arguments or values. It does not cover what
// the program loads by itself: libraries, modules, files in directories.
//
// Of a peer over HTTP it holds the endpoint, and nothing else but AllowLegacy.
type Pin struct {
	Endpoint     string     `yaml:"endpoint,omitempty"`
	Command      string     `yaml:"command,omitempty"`
	Path         string     `yaml:"path,omitempty"`   // as found, links unresolved
	SHA256       string     `yaml:"sha256,omitempty"` // of the bytes behind Path
	Interpreters []PinnedBy `yaml:"interpreters,omitempty"`
	Files        []PinnedAs `yaml:"files,omitempty"`
	Args         string     `yaml:"args,omitempty"`
	Env          string     `yaml:"env,omitempty"`
	Set          string     `yaml:"set,omitempty"`
	Dir          string     `yaml:"directory,omitempty"`
	DataFiles    string     `yaml:"data_files,omitempty"`
	AllowLegacy  bool       `yaml:"allow_legacy"`
}

// PinnedBy is an interpreter of a script.
type PinnedBy struct {
	Path   string `yaml:"path"`
	SHA256 string `yaml:"sha256"`
}

// PinnedAs is an argument that names a file.
type PinnedAs struct {
	Argument int    `yaml:"argument"` // counted from 1
	SHA256   string `yaml:"sha256"`
}

// A pinError is a reason why a program cannot be pinned or started.
type pinError struct {
	code   domain.Code
	reason string
}

func (e *pinError) Error() string { return e.reason }

// owner names what the program belongs to.
func (s Spec) owner() string {
	if s.TokenCommand {
		return "authorization " + s.Name
	}
	return "peer " + s.Name
}

// Make looks at the program of s and returns its pin. It reads every byte of
// the program, of its interpreters and of the files among its arguments. The
// error says in one sentence what is missing, or that a launcher has not been
// accepted, and what to do.
func Make(s Spec) (Pin, error) {
	pin, err := look(s)
	if err != nil {
		return Pin{}, fmt.Errorf("%s: %w", s.owner(), err)
	}
	return pin, nil
}

// Check compares what is there now with the pin. It returns "" and "" if
// nothing differs, and otherwise the code of the refusal with a sentence that
// names each difference and says what to do. What changes between Check and the
// start of the program is not seen.
func (p Pin) Check(s Spec) (domain.Code, string) {
	now, err := look(s)
	if err != nil {
		return refusal(err)
	}
	differ := p.differences(now)
	if len(differ) == 0 {
		return "", ""
	}
	return domain.CodePinMismatch, strings.Join(differ, "; ") + ": if this is meant, run waybill pin"
}

// Admissible reports what stands against the peer before any pin is looked at:
// a missing directory or command, or a launcher that has not been accepted.
func (s Spec) Admissible() (domain.Code, string) {
	_, err := s.admit()
	return refusal(err)
}

func refusal(err error) (domain.Code, string) {
	var refused *pinError
	switch {
	case err == nil:
		return "", ""
	case errors.As(err, &refused):
		return refused.code, refused.reason
	}
	return domain.CodePinMismatch, err.Error()
}

func look(s Spec) (Pin, error) {
	if s.Endpoint != "" {
		return Pin{Endpoint: s.Endpoint, AllowLegacy: s.AllowLegacy}, nil
	}
	chain, err := s.admit()
	if err != nil {
		return Pin{}, err
	}
	pin := Pin{
		Command:     s.Command,
		Path:        s.Path,
		Args:        listDigest("args", s.Args),
		Env:         listDigest("env", sorted(s.EnvNames), sorted(s.SecretNames)),
		Set:         listDigest("set", pairs(s.Set)),
		Dir:         listDigest("directory", []string{s.Dir}),
		DataFiles:   listDigest("data_files", sorted(s.DataFiles)),
		AllowLegacy: s.AllowLegacy,
	}
	if pin.SHA256, err = s.Digests.of(s.Path); err != nil {
		return Pin{}, fmt.Errorf("the program cannot be pinned: %w", err)
	}
	for _, by := range chain {
		sum, err := s.Digests.of(by.path)
		if err != nil {
			return Pin{}, fmt.Errorf("its interpreter cannot be pinned: %w", err)
		}
		pin.Interpreters = append(pin.Interpreters, PinnedBy{by.path, sum})
	}
	pin.Files, err = s.argumentFiles()
	return pin, err
}

// admit checks what must hold before a pin can mean anything, and returns the
// interpreters of a script.
func (s Spec) admit() ([]interpreter, error) {
	if s.Endpoint != "" {
		return nil, nil // whether anybody is there is seen when it is asked
	}
	if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
		return nil, &pinError{domain.CodeDirMissing,
			fmt.Sprintf("the working directory %s is not there: make it, or correct cwd", s.Dir)}
	}
	if err := findAt(s.Command, s.Path); err != nil {
		return nil, &pinError{domain.CodeCommandMissing, err.Error()}
	}
	chain, err := interpreters(s.Path, s.Dir, s.PeerPath)
	if err != nil {
		return nil, &pinError{domain.CodeCommandMissing, err.Error()}
	}
	if name := s.launcher(chain); name != "" && !s.UnpinnedCodeAccepted {
		return nil, &pinError{domain.CodeUnpinnedCode, fmt.Sprintf("%s runs code that a pin does not cover: %s", name, s.instead())}
	}
	return chain, nil
}

// instead says what to do about a launcher.
func (s Spec) instead() string {
	if s.TokenCommand {
		return "name the program that it runs, or a script file"
	}
	return "install the server and name its own program, or set unpinned_code: accepted for this peer"
}

// Launcher returns the name of the launcher that the peer is started by, or of
// that on the first line of its script, and "" if there is none.
func (s Spec) Launcher() string {
	chain, err := interpreters(s.Path, s.Dir, s.PeerPath)
	if err != nil {
		return ""
	}
	return s.launcher(chain)
}

// launcher does not count the env of "#!/usr/bin/env X": it has been followed.
// An interpreter is given the script as its next argument.
func (s Spec) launcher(chain []interpreter) string {
	if IsLauncher(s.Path, s.Args) {
		return filepath.Base(s.Path)
	}
	for _, by := range chain {
		args := append(slices.Clone(by.args), s.Path)
		if baseName(by.path) != "env" && IsLauncher(by.path, args) {
			return filepath.Base(by.path)
		}
	}
	return ""
}

// argumentFiles hashes the arguments that name a regular file, links followed.
func (s Spec) argumentFiles() ([]PinnedAs, error) {
	var files []PinnedAs
	for i, arg := range s.Args {
		path := s.fileOf(arg)
		if path == "" {
			continue
		}
		sum, err := s.Digests.of(path)
		if err != nil {
			if s.TokenCommand {
				return nil, fmt.Errorf("argument %d cannot be pinned: %w", i+1, err)
			}
			return nil, fmt.Errorf("argument %d cannot be pinned: %w; if it is data, list it under data_files", i+1, err)
		}
		files = append(files, PinnedAs{i + 1, sum})
	}
	return files, nil
}

// fileOf returns the path of the file that an argument names, "" for none and
// for one that may change. In --x=path the path counts too.
func (s Spec) fileOf(arg string) string {
	candidates := []string{arg}
	if _, value, ok := strings.Cut(arg, "="); ok {
		candidates = append(candidates, value)
	}
	for _, name := range candidates {
		path := s.inDir(name)
		info, err := os.Stat(path)
		if name == "" || err != nil || !info.Mode().IsRegular() {
			continue
		}
		isData := func(d string) bool { return d == arg || s.inDir(d) == path }
		if slices.ContainsFunc(s.DataFiles, isData) {
			return ""
		}
		return path
	}
	return ""
}

func (s Spec) inDir(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Dir, path)
}

// differences names what is not as pinned, in the order of the fields.
func (p Pin) differences(now Pin) []string {
	var differ []string
	note := func(same bool, format string, args ...any) {
		if !same {
			differ = append(differ, fmt.Sprintf(format, args...))
		}
	}
	if p.Endpoint != "" || now.Endpoint != "" {
		note(p.Endpoint == now.Endpoint, "the peer is %s, pinned is %s", now.what(), p.what())
		note(p.Endpoint != now.Endpoint || p.AllowLegacy == now.AllowLegacy, allowLegacyDiffers, now.AllowLegacy, p.AllowLegacy)
		return differ
	}
	note(p.Command == now.Command, "the command is %q, pinned is %q", now.Command, p.Command)
	note(p.Path == now.Path, "the command is found at %s, pinned is %s", now.Path, p.Path)
	note(p.Path != now.Path || p.SHA256 == now.SHA256, "the program %s has changed", now.Path)
	differ = append(differ, interpreterDifferences(p.Interpreters, now.Interpreters)...)
	note(p.Args == now.Args, "the list of arguments has changed")
	if p.Args == now.Args {
		differ = append(differ, fileDifferences(p.Files, now.Files)...)
	}
	note(p.Env == now.Env, "the names under env or secret_env have changed")
	note(p.Set == now.Set, "the values under set have changed")
	note(p.Dir == now.Dir, "the working directory has changed")
	note(p.DataFiles == now.DataFiles, "the list under data_files has changed")
	note(p.AllowLegacy == now.AllowLegacy, allowLegacyDiffers, now.AllowLegacy, p.AllowLegacy)
	return differ
}

const allowLegacyDiffers = "allow_legacy is %t, pinned is %t"

// what says in a word what is pinned.
func (p Pin) what() string {
	if p.Endpoint != "" {
		return "the endpoint " + p.Endpoint
	}
	return fmt.Sprintf("the command %q", p.Command)
}

func interpreterDifferences(pinned, now []PinnedBy) []string {
	paths := func(list []PinnedBy) []string {
		var names []string
		for _, by := range list {
			names = append(names, by.Path)
		}
		return names
	}
	if was, is := paths(pinned), paths(now); !slices.Equal(was, is) {
		return []string{fmt.Sprintf("the script is run by %s, pinned is %s", orNone(is), orNone(was))}
	}
	var differ []string
	for i, by := range now {
		if by.SHA256 != pinned[i].SHA256 {
			differ = append(differ, "the interpreter "+by.Path+" has changed")
		}
	}
	return differ
}

func fileDifferences(pinned, now []PinnedAs) []string {
	was, is := make(map[int]string), make(map[int]string)
	for _, f := range pinned {
		was[f.Argument] = f.SHA256
	}
	for _, f := range now {
		is[f.Argument] = f.SHA256
	}
	both := maps.Clone(was)
	maps.Copy(both, is)
	var differ []string
	for _, i := range slices.Sorted(maps.Keys(both)) {
		switch {
		case was[i] == is[i]:
		case is[i] == "":
			differ = append(differ, fmt.Sprintf("the file named by argument %d is gone or has become data", i))
		case was[i] == "":
			differ = append(differ, fmt.Sprintf("argument %d names a file that was not pinned", i))
		default:
			differ = append(differ, fmt.Sprintf("the file named by argument %d has changed", i))
		}
	}
	return differ
}

// Digest identifies the entry: equal pins have equal digests, and no others.
func (p Pin) Digest() string {
	var by, files []string
	for _, i := range p.Interpreters {
		by = append(by, i.Path, i.SHA256)
	}
	for _, f := range p.Files {
		files = append(files, strconv.Itoa(f.Argument), f.SHA256)
	}
	fields := []string{p.Command, p.Path, p.SHA256, p.Args, p.Env, p.Set, p.Dir, p.DataFiles, strconv.FormatBool(p.AllowLegacy)}
	if p.Endpoint != "" {
		return listDigest("endpoint", by, files, fields, []string{p.Endpoint})
	}
	return listDigest("pin", by, files, fields) // as it was before there were endpoints
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no interpreter"
	}
	return strings.Join(names, " then ")
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func pairs(values map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, name, values[name])
	}
	return list
}

// listDigest is the SHA-256 of lists of strings. Each count and length goes
// before what it counts, so that no two different inputs give the same bytes.
func listDigest(label string, lists ...[]string) string {
	b := appendCounted(nil, label)
	for _, list := range lists {
		b = binary.BigEndian.AppendUint64(b, uint64(len(list)))
		for _, s := range list {
			b = appendCounted(b, s)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func appendCounted(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}
