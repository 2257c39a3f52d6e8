package pin

import (
	"path/filepath"
	"slices"
	"strings"
)

// A Launcher is a program, by base name, that a pin says little about, because
// the code it runs is fetched, or is found in another place than its arguments.
type Launcher struct {
	Name string // without a version: python is python3.12 too
	When string // "always", or the arguments with which it counts
}

// What Launcher.When says.
const (
	always      = "always"
	whenInline  = "with code or a module name as an argument (-c, -e, -m and the like)"
	whenShell   = "with -c, or without a script file"
	whenProject = "unless its first argument is a .dll or .exe file"
)

// fetchers run what a package registry, an image, a project or another machine
// gives them; wrappers run what stands in their arguments, found on PATH.
const fetchers = `
	npx npx-cli.js npm npm-cli.js pnpm.cjs pnpx.cjs yarn.js corepack.js pnpm pnpx yarn yarnpkg corepack bun bunx deno nodemon pm2 volta volta-shim fnm nvm
	uv uvx pipx pip poetry pdm hatch rye pixi pipenv conda mamba micromamba pyenv
	docker docker-compose podman podman-compose nerdctl ctr buildah kubectl oc helm runc crun lxc incus apptainer
	singularity distrobox toolbox machinectl flatpak snap nix nix-shell guix devbox devenv brew asdf mise rtx direnv
	go cargo rustup rust-script dnx mvn gradle gradlew sbt jbang lein clj clojure erl swift zig dart flutter mix stack
	cabal bundle bundler gem rbenv composer make just task
	ssh mosh socat nc ncat netcat telnet curl wget wsl mcp-remote mcp-proxy supergateway`

const wrappers = `
	env sudo doas su runuser setpriv nohup xargs parallel nsenter unshare chroot bwrap firejail systemd-run setsid setarch
	timeout time nice ionice chrt taskset stdbuf script expect strace ltrace gdb lldb valgrind watch watchexec entr
	dbus-run-session xvfb-run proxychains proxychains4 tini dumb-init gosu su-exec busybox toybox cmd ld-linux`

const shells = `sh bash dash zsh ksh mksh ash fish csh tcsh nu elvish xonsh pwsh powershell`

const languages = `python pypy node nodejs ruby perl php lua luajit java rscript julia groovy tclsh guile racket elixir`

// launcherNames says of each name when it counts.
var launcherNames = func() map[string]string {
	names := make(map[string]string)
	for list, when := range map[string]string{
		fetchers: always, wrappers: always, shells: whenShell, languages: whenInline, "dotnet": whenProject,
	} {
		for _, name := range strings.Fields(list) {
			names[name] = when
		}
	}
	return names
}()

// Launchers lists, sorted by name, what needs "unpinned_code: accepted".
func Launchers() []Launcher {
	list := make([]Launcher, 0, len(launcherNames))
	for name, when := range launcherNames {
		list = append(list, Launcher{name, when})
	}
	slices.SortFunc(list, func(a, b Launcher) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// IsLauncher reports whether the program at path, with these arguments, runs
// code that a pin of the program and of its file arguments does not cover. It
// goes by the base name, and by that of the file behind a symbolic link.
// Everything in a folder named shims counts, as pyenv and others have them.
func IsLauncher(path string, args []string) bool {
	if launches(baseName(path), args) {
		return true
	}
	// A shim is a script, or a link to the tool that picks the real program.
	if filepath.Base(filepath.Dir(path)) == "shims" {
		return true
	}
	// The boxes are behind links too, but what they run is themselves.
	target, err := filepath.EvalSymlinks(path)
	name := baseName(target)
	return err == nil && name != "busybox" && name != "toybox" && launcherNames[name] == always
}

// OnlyInterpreter reports that the peer is run by an interpreter whose
// arguments name no file of the pin: the code must then be in a directory.
func (s Spec) OnlyInterpreter(p Pin) bool {
	when := launcherNames[baseName(s.Path)]
	return when != "" && when != always && len(p.Files) == 0
}

func launches(name string, args []string) bool {
	switch launcherNames[name] {
	case always:
		return true
	case whenShell:
		return shellHides(args)
	case whenInline:
		return languageHides(name, args)
	case whenProject:
		return len(args) == 0 || !hasSuffix(args[0], ".dll", ".exe")
	}
	return false
}

// shellHides is true unless the first operand can be a script file.
func shellHides(args []string) bool {
	for i, arg := range args {
		switch {
		case arg == "--":
			return i+1 == len(args)
		case len(arg) < 2 || arg[0] != '-' && arg[0] != '+':
			return arg == "" || arg == "-"
		case strings.HasPrefix(arg, "--c"), strings.HasPrefix(arg, "--init-c"):
			return true // --command, --commands, --init-command
		case !strings.HasPrefix(arg, "--") && strings.ContainsAny(strings.ToLower(arg), "cs"):
			return true
		}
	}
	return true
}

// A language says how an interpreter reads its options: which take code or a
// module name, and which take the next argument as their value. A letter may
// stand in a group: -Im is -I -m.
type language struct {
	letters string
	words   []string
	values  []string
}

var languageOptions = map[string]language{
	"python": {letters: "cm", values: []string{"-W", "-X"}},
	"pypy":   {letters: "cm", values: []string{"-W", "-X"}},
	"node":   nodeOptions,
	"nodejs": nodeOptions,
	"perl":   {letters: "eE", values: []string{"-I"}},
	"ruby":   {letters: "eS", values: []string{"-r", "-I", "-C"}},
	"php":    {letters: "rBRES", words: []string{"--run", "--server"}, values: []string{"-d", "-c", "-z"}},
	"java":   {words: []string{"-cp", "-classpath", "--class-path", "-m", "--module", "-p", "--module-path"}},
	"guile":  {letters: "c", values: []string{"-L", "-l"}},
	"lua":    {letters: "el"},
	"luajit": {letters: "el"},
}

var nodeOptions = language{
	letters: "ep",
	words:   []string{"--eval", "--print", "--run", "--test"},
	values:  []string{"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"},
}

// languageHides looks at the options before the first operand, which is the
// script, and at the script's own name: node .../npx-cli.js is npx.
func languageHides(name string, args []string) bool {
	known, ok := languageOptions[name]
	if !ok {
		known.letters = "e"
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return len(args) > i+1 && launcherNames[baseName(args[i+1])] == always
		case arg == "" || arg[0] != '-':
			return launcherNames[baseName(arg)] == always
		case name == "java" && arg == "-jar":
			return false
		case slices.Contains(known.values, arg):
			i++
		case slices.ContainsFunc(known.words, func(w string) bool { return arg == w || strings.HasPrefix(arg, w+"=") }):
			return true
		case !strings.HasPrefix(arg, "--") && name != "java" && groupHas(arg[1:], known.letters):
			return true
		}
	}
	return false
}

// groupHas looks for a letter in a group of short options. A group ends where
// something else than a letter follows: -W=once and -I/usr/lib hold values.
func groupHas(group, letters string) bool {
	for i := range len(group) {
		c := group[i]
		if strings.IndexByte(letters, c) >= 0 {
			return true
		}
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return false
}

// baseName is the last element of path in lower case, without what a platform
// or a version adds: NPX.cmd is npx, and python3.12 is python.
func baseName(path string) string {
	name := strings.ToLower(filepath.Base(path))
	for _, ext := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ext)
	}
	if _, known := launcherNames[name]; known {
		return name
	}
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") {
		return "ld-linux" // the loader runs the program that it is given
	}
	if bare := strings.TrimRight(name, "0123456789.-_"); bare != "" {
		return bare
	}
	return name
}

func hasSuffix(s string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(strings.ToLower(s), suffix) })
}
