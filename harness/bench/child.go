package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/go-json-experiment/json"
)

// Child is the echo server at the end of a pipe, called without any record. Its lock is never held while
// something is written: with many calls parent and child would wait for each other.
type Child struct {
	cmd   *exec.Cmd
	write chan []byte
	ended sync.WaitGroup

	mu   sync.Mutex
	next int64
	wait map[int64]chan struct{}
	dead bool
}

// StartChild starts a program, with arguments, that runs Echo. End it with Close.
func StartChild(command ...string) (*Child, error) {
	c := &Child{cmd: exec.Command(command[0], command[1:]...), write: make(chan []byte, 1024), wait: map[int64]chan struct{}{}}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the echo server: %w", err)
	}
	c.ended.Go(func() { c.writes(in) })
	c.ended.Go(func() { c.reads(out) })
	return c, nil
}

func (c *Child) writes(w io.WriteCloser) {
	defer w.Close()
	buf := bufio.NewWriterSize(w, 1<<16)
	for line := range c.write {
		_, _ = buf.Write(line)
		if len(c.write) == 0 {
			_ = buf.Flush() // a child that is gone ends the reading, which tells the callers
		}
	}
}

func (c *Child) reads(r io.Reader) {
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			c.end()
			return
		}
		var m struct {
			ID int64 `json:"id"`
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		c.mu.Lock()
		if done := c.wait[m.ID]; done != nil {
			close(done)
			delete(c.wait, m.ID)
		}
		c.mu.Unlock()
	}
}

func (c *Child) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	for _, done := range c.wait { // in no order: all at once
		close(done)
	}
	c.wait = map[int64]chan struct{}{}
}

// Call makes one call and waits for its answer. Safe for concurrent use.
func (c *Child) Call() error {
	done := make(chan struct{})
	c.mu.Lock()
	c.next++
	id := c.next
	dead := c.dead
	c.wait[id] = done
	c.mu.Unlock()
	if !dead {
		c.write <- fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s}}`+"\n", id, Tool, Arguments)
		<-done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return errors.New("the echo server has ended")
	}
	return nil
}

// Close ends the program and waits for it. No call may be under way.
func (c *Child) Close() error {
	close(c.write)
	c.ended.Wait()
	return c.cmd.Wait()
}
