package pin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestIsLauncher(t *testing.T) {
	for _, c := range []struct {
		command string
		want    bool
	}{
		{"npx -y server", true}, {"/usr/bin/npx", true}, {"NPX.cmd x", true}, {"npm exec x", true}, {"pnpm dlx x", true},
		{"yarn x", true}, {"bunx x", true}, {"bun x y", true}, {"uvx x", true}, {"uv run x.py", true}, {"pipx run x", true},
		{"docker run x", true}, {"podman run x", true}, {"deno run x.ts", true}, {"nix run x", true}, {"go run .", true},
		{"go1.26 run .", true}, {"cargo run", true}, {"ssh host server", true}, {"env server", true}, {"sudo server", true},
		{"nohup server", true}, {"xargs server", true}, {"nsenter server", true}, {"flatpak run x", true}, {"snap run x", true},
		{"busybox sh x", true}, {"/lib64/ld-linux-x86-64.so.2 /bin/server", true}, {"/home/x/.pyenv/shims/python3 x.py", true},

		{"sh -c server", true}, {"bash -lc server", true}, {"zsh -ec server", true}, {"bash --norc -c server", true},
		{"bash", true}, {"bash -", true}, {"bash -s", true}, {"fish --command=x", true}, {"pwsh -Command x", true},
		{"sh server.sh", false}, {"bash -eu server.sh -c", false}, {"bash --norc server.sh", false}, {"sh -- server.sh", false},

		{"python3 -m server", true}, {"python -Im server", true}, {"python3.12 -c code", true}, {"python -W error -m server", true},
		{"python3 server.py -m x", false}, {"python3 -u server.py", false}, {"pypy3 server.py", false},
		{"node -e code", true}, {"node --eval=code", true}, {"node -pe code", true}, {"node -r hook.js -e code", true},
		{"node /usr/lib/node_modules/npm/bin/npx-cli.js x", true}, {"node -- npx", true},
		{"node server.js -e", false}, {"node --import hook.mjs server.js", false}, {"nodejs make.js", false},
		{"perl -E code", true}, {"perl -w server.pl", false}, {"ruby -e code", true}, {"php -r code", true}, {"php -d a=1 s.php", false},
		{"java -cp x Main", true}, {"java -Xmx1g -jar server.jar", false}, {"java -jar server.jar -cp x", false},
		{"dotnet run", true}, {"dotnet", true}, {"dotnet server.dll", false},

		{"notes-server --run", false}, {"/opt/time.js", false}, {"./bin/github-mcp-server stdio", false}, {"mcp-server-2", false},
	} {
		words := strings.Fields(c.command)
		if got := IsLauncher(words[0], words[1:]); got != c.want {
			t.Errorf("%s: got %v", c.command, got)
		}
	}
}

func TestALinkToALauncherIsALauncher(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		target string
		want   bool
	}{{"volta-shim", true}, {"npx-cli.js", true}, {"busybox", false}, {"server-1.2", false}} {
		link := filepath.Join(dir, "to-"+c.target)
		putFile(t, filepath.Join(dir, c.target), "", 0o755)
		if err := os.Symlink(c.target, link); err != nil {
			t.Fatal(err)
		}
		if got := IsLauncher(link, nil); got != c.want {
			t.Errorf("a link to %s: got %v", c.target, got)
		}
	}
}

func TestTheListOfLaunchersIsTheOneThatIsUsed(t *testing.T) {
	list := Launchers()
	if !slices.IsSortedFunc(list, func(a, b Launcher) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the list is not sorted")
	}
	for _, l := range list {
		args := []string{}
		switch l.When {
		case always, whenShell, whenProject:
		case whenInline:
			option := "-e"
			for _, letters := range languageOptions[l.Name].letters {
				option = "-" + string(letters)
			}
			if words := languageOptions[l.Name].words; option == "-e" && len(words) > 0 {
				option = words[0]
			}
			args = []string{option, "x"}
		default:
			t.Errorf("%s: nobody knows %q", l.Name, l.When)
		}
		if !IsLauncher("/opt/bin/"+l.Name, args) {
			t.Errorf("%s %v is not taken for a launcher", l.Name, args)
		}
	}
}
