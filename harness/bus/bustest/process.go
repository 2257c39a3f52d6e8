package bustest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerRole is the first argument with which a test binary is to run ServerMain.
const ServerRole = "nats-server"

// ServerMain is a NATS server, as the program nats-server is one: args is the name
// of its configuration. It ends when its standard input does, so that it does not
// outlive the tests that started it.
func ServerMain(args []string) int {
	opts, err := server.ProcessConfigFile(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	opts.NoSigs = true
	ns, err := server.NewServer(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ns.ConfigureLogger()
	ns.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	ns.Shutdown()
	ns.WaitForShutdown()
	return 0
}

// Process is a NATS server in a process of its own, which can be killed and started
// again where it was.
type Process struct {
	t    testing.TB
	file string
	addr string
	cmd  *exec.Cmd
	stop io.WriteCloser
}

// Port is a free port of this machine, for what must be known before it is used.
func Port(t testing.TB) int {
	t.Helper()
	l := Must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Include is the line of a configuration in the folder dir that includes a file.
func Include(t testing.TB, dir, file string) string {
	t.Helper()
	return fmt.Sprintf("include %q\n", Must[string](t)(filepath.Rel(dir, file)))
}

// StartProcess starts a server on a port of this machine with a configuration, to
// which listen is added. It stores and logs in dir. The test binary must run
// ServerMain for ServerRole.
func StartProcess(t testing.TB, dir string, port int, config string) *Process {
	t.Helper()
	p := &Process{t: t, file: filepath.Join(dir, "nats.conf"), addr: fmt.Sprintf("127.0.0.1:%d", port)}
	config = fmt.Sprintf("listen: %q\nlog_file: %q\n%s", p.addr, filepath.Join(dir, "nats.log"), config)
	if err := os.WriteFile(p.file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Start()
	t.Cleanup(p.Kill)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s:\n%s", p.file, p.Log())
		}
	})
	return p
}

// URL is the address of the server.
func (p *Process) URL() string { return "nats://" + p.addr }

// Port is where the server listens, for another in its place.
func (p *Process) Port() int {
	_, port, _ := strings.Cut(p.addr, ":")
	return Must[int](p.t)(strconv.Atoi(port))
}

// Start starts the server, and returns when it takes connections.
func (p *Process) Start() {
	p.t.Helper()
	p.cmd = exec.Command(Must[string](p.t)(os.Executable()), ServerRole, p.file)
	p.cmd.Stderr = os.Stderr
	p.stop = Must[io.WriteCloser](p.t)(p.cmd.StdinPipe())
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	Eventually(p.t, "a NATS server at "+p.addr, func() bool {
		c, err := net.DialTimeout("tcp", p.addr, time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		hello := make([]byte, 5)
		_, err = io.ReadFull(c, hello)
		return err == nil && string(hello) == "INFO "
	})
}

// Kill ends the server as a crash does. It may be called again.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.stop.Close()
	p.cmd = nil
}

// Log is the end of what the server logged.
func (p *Process) Log() string {
	b, _ := os.ReadFile(filepath.Join(filepath.Dir(p.file), "nats.log"))
	lines := strings.Split(string(b), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
