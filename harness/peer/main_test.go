package peer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
	"waybill/harness/peer/watchdog"
)

// The test binary plays all parts: it is run again as the watchdog, as the peers, and as a service that is killed.
const (
	roleVar   = "WAYBILL_TEST_ROLE"
	scriptVar = "WAYBILL_TEST_SCRIPT"
	fileVar   = "WAYBILL_TEST_FILE" // what a peer writes down
	loseVar   = "WAYBILL_TEST_LOSE" // a service loses its first watchdog

	// Under the race detector a watchdog takes a second to exit, unless it is told not to.
	raceVar = "GORACE=atexit_sleep_ms=0"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "watchdog":
		watchdog.Main()
	case "peer":
		playScript(os.Getenv(scriptVar), os.Getenv(fileVar))
	case "service":
		playService()
	}
	os.Exit(m.Run())
}

// script is a peer's part: one step a line, a word and what follows it. It exits past the hooks of coverage and race detection, which
// write to standard error and take their time. $ID stands for the id of the last request read.
type script struct {
	in   *bufio.Reader
	id   string
	file string
}

func playScript(steps, file string) {
	s := &script{in: bufio.NewReader(os.Stdin), file: file}
	for step := range strings.Lines(steps) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(step, "\n"), " ")
		if err := s.play(word, rest); err != nil {
			fmt.Fprintln(os.Stderr, "script:", step, err)
			syscall.Exit(3)
		}
	}
	syscall.Exit(0)
}

func (s *script) play(word, rest string) error {
	n, _ := strconv.Atoi(rest)
	rest = strings.ReplaceAll(rest, "$ID", s.id)
	rest = strings.ReplaceAll(rest, "$RUN", strconv.Itoa(countLines(s.file)))
	switch word {
	case "read":
		return s.read()
	case "skip": // requests without an answer
		for range n {
			if err := s.read(); err != nil {
				return err
			}
		}
	case "say":
		fmt.Println(rest)
	case "raw":
		text, err := strconv.Unquote(rest)
		if err != nil {
			return err
		}
		_, err = os.Stdout.WriteString(text)
		return err
	case "bytewise":
		for i := range len(rest) {
			fmt.Print(rest[i : i+1])
		}
		fmt.Println()
	case "big":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"x":"%s"}}`+"\n", s.id, strings.Repeat("x", n))
	case "storm": // many lines, and $N counts them
		return storm(rest)
	case "flood": // one line without an end
		for {
			if _, err := os.Stdout.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
				return err
			}
		}
	case "stderr":
		_, err := os.Stderr.WriteString(strings.Repeat("e", n) + " the end")
		return err
	case "serve":
		for {
			if err := s.read(); errors.Is(err, io.EOF) {
				syscall.Exit(0)
			}
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", s.id, rest)
		}
	case "untilEOF":
		_, err := io.Copy(io.Discard, s.in)
		return err
	case "taste": // a little of what is there
		_, err := s.in.ReadByte()
		return err
	case "note":
		return s.write(rest)
	case "awaits": // a file beside the notes
		for range time.Tick(time.Millisecond) {
			if _, err := os.Stat(s.file + ".go"); err == nil {
				return nil
			}
		}
	case "environ":
		b, _ := json.Marshal(surroundings{os.Args, os.Environ(), workingDir()})
		return s.write(string(b))
	case "closeout":
		return syscall.Close(1)
	case "closein":
		return syscall.Close(0)
	case "deafTo":
		signal.Ignore(syscall.Signal(n))
	case "fork":
		return fork(rest == "setsid", s.file)
	case "die":
		return syscall.Kill(os.Getpid(), syscall.Signal(n))
	case "hang":
		select {}
	case "exit":
		syscall.Exit(n)
	default:
		return errors.New("no such step")
	}
	return nil
}

func storm(rest string) error {
	times, line, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(times)
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	before, after, counted := strings.Cut(line, "$N")
	for i := range n {
		_, _ = out.WriteString(before)
		if counted {
			_, _ = out.WriteString(strconv.Itoa(i))
		}
		_, _ = out.WriteString(after + "\n")
	}
	return out.Flush()
}

func (s *script) read() error {
	line, err := s.in.ReadString('\n')
	if err != nil {
		return err
	}
	if m, err := domain.ParseMessage([]byte(line)); err == nil {
		s.id = string(m.ID)
	}
	if s.file == "" {
		return nil
	}
	return s.write(strings.TrimSuffix(line, "\n"))
}

func (s *script) write(line string) error { return appendLine(s.file, line) }

// countLines is 0 for a file that is not there.
func countLines(file string) int {
	content, _ := os.ReadFile(file)
	return bytes.Count(content, []byte("\n"))
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

type surroundings struct {
	Args, Env []string
	Dir       string
}

func workingDir() string {
	d, _ := os.Getwd()
	return d
}

// fork leaves a grandchild that hears nothing and holds no pipe of the peer's, and writes its number down.
func fork(ownSession bool, file string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = []string{roleVar + "=peer", scriptVar + "=deafTo 15\ndeafTo 1\nnote up\nhang", fileVar + "=" + file + ".up"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: ownSession}
	if err := cmd.Start(); err != nil {
		return err
	}
	return appendLine(file, strconv.Itoa(cmd.Process.Pid))
}
