package store_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/store"
)

// TestMain lets the test binary be its own child, in a role that the
// environment names.
func TestMain(m *testing.M) {
	roles := map[string]func(path string) error{
		"append": childAppend, "open": childOpen, "read": childRead, "inspect": childInspect,
	}
	role, ok := roles[os.Getenv("STORE_CHILD")]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(os.Getenv("STORE_PATH")); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// childAppend appends batches of all sizes for ever, and says of each that it
// is durable.
func childAppend(path string) error {
	l, err := store.Open(path)
	if err != nil {
		return err
	}
	fmt.Println("acked", l.Head().Size)
	for n := 1; ; n = n%97 + 1 {
		after := l.Head().Size
		batch := entries(after, n)
		batch[0].Evidence = []store.Evidence{evidenceOf(fmt.Sprint("evidence of ", after+1))}
		h, err := l.Append(context.Background(), after, batch)
		if err != nil {
			return err
		}
		fmt.Println("acked", h.Size)
	}
}

// childOpen opens the log when its standard input ends, and closes it.
func childOpen(path string) error {
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	l, err := store.Open(path)
	if err != nil {
		return err
	}
	fmt.Println("head", l.Head().Size)
	return l.Close()
}

// childRead follows the log until it has the size given on standard input, and
// checks what it reads.
func childRead(path string) error {
	r, err := store.OpenReader(path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var size int64
	if _, err := fmt.Scan(&size); err != nil {
		return err
	}
	if err := follow(r, size); err != nil {
		return err
	}
	fmt.Println("read", size)
	return r.Close()
}

// follow reads until it has seen size events, each in its place.
func follow(r *store.Reader, size int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for after := int64(0); after < size; {
		recs, err := r.Read(ctx, after, 100)
		if err != nil {
			return err
		}
		for _, rec := range recs {
			after++
			if rec.Seq != after || string(rec.Bytes) != string(eventBytes(after)) {
				return fmt.Errorf("event %d is %+v", after, rec)
			}
		}
		head, err := r.Head(ctx)
		if err != nil {
			return err
		}
		if head.Size < after {
			return fmt.Errorf("the head is %d, and event %d was read before", head.Size, after)
		}
	}
	return nil
}

// childInspect gives up every privilege and reads a log.
func childInspect(path string) error {
	if os.Getuid() == 0 {
		if err := syscall.Setgroups(nil); err != nil {
			return err
		}
		if err := syscall.Setgid(65534); err != nil {
			return err
		}
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	if f, err := os.Create(path + ".probe"); err == nil {
		f.Close()
		return fmt.Errorf("the folder can be written")
	}
	r, err := store.OpenReader(path)
	if err != nil {
		return err
	}
	head, err := r.Head(context.Background())
	if err != nil {
		return err
	}
	if err := follow(r, head.Size); err != nil {
		return err
	}
	fmt.Println("head", head.Size)
	return r.Close()
}

type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

func startChild(t *testing.T, role, path string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: exec.Command(exe)}
	c.cmd.Env = append(os.Environ(), "STORE_CHILD="+role, "STORE_PATH="+path)
	c.cmd.Stderr = os.Stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.cmd.Process.Kill(); c.cmd.Wait() })
	return c
}

// line returns what the child says next, which must begin with word.
func (c *child) line(word string) string {
	c.t.Helper()
	s, err := c.out.ReadString('\n')
	s = strings.TrimSuffix(s, "\n")
	if err != nil || !strings.HasPrefix(s, word) {
		c.t.Fatalf("the child said %q, %v, want %q", s, err, word)
	}
	return strings.TrimSpace(strings.TrimPrefix(s, word))
}

func (c *child) number(word string) int64 {
	c.t.Helper()
	n, err := strconv.ParseInt(c.line(word), 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *child) wait() {
	c.t.Helper()
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("child: %v", err)
	}
}

// kill ends the child as kill -9 does, and returns the last number it had said
// with word before it died.
func (c *child) kill(word string, last int64) int64 {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	rest, err := io.ReadAll(c.out)
	if err != nil {
		c.t.Fatal(err)
	}
	c.cmd.Wait()
	for s := range strings.Lines(string(rest)) {
		// A line that was cut off is not an acknowledgement.
		if n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(s, word)), 10, 64); err == nil && strings.HasSuffix(s, "\n") {
			last = n
		}
	}
	return last
}
