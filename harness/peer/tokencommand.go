package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// runToken has a token command run to its end and returns what it printed. It is a process like those of peers: started without a shell, in a
// group of its own that ends with it, or with us. What it says on its standard error is thrown away: it may be anything.
func (l *lane) runToken(ctx context.Context, t *TokenCommand) ([]byte, error) {
	if t.Verify != nil {
		if code, reason := t.Verify(); code != "" {
			return nil, fmt.Errorf("the token command is not run (%s): %s", code, reason)
		}
	}
	if err := searchable(t.Dir); err != nil {
		return nil, fmt.Errorf("working directory of the token command: %w", err)
	}
	var theirs [3]int
	var ours [3]*os.File
	for i := range theirs {
		var err error
		if theirs[i], ours[i], err = pipe(i == 0); err != nil {
			closePipes(theirs[:i], ours[:i])
			return nil, err
		}
	}
	defer closePipes(nil, ours[:])
	argv0 := t.Argv0
	if argv0 == "" {
		argv0 = t.Path
	}
	child, err := l.m.spawner.start(program{Path: t.Path, Argv: append([]string{argv0}, t.Args...), Env: t.Env, Dir: t.Dir}, theirs)
	closePipes(theirs[:], nil)
	if err != nil {
		return nil, fmt.Errorf("start the token command %s: %w", t.Path, err)
	}
	_ = ours[0].Close() // it is told nothing
	return l.attend(ctx, child, ours[1], ours[2], milliseconds(t.Limit))
}

// attend reads what a token command prints until it is gone, which it is when this returns.
func (l *lane) attend(ctx context.Context, child *child, stdout, stderr *os.File, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("the token command took longer than its timeout and was ended"))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { child.tell(unix.SIGKILL) })
	defer stop()
	var readers sync.WaitGroup
	var out []byte
	readers.Go(func() {
		out, _ = io.ReadAll(io.LimitReader(stdout, maxToken+1)) // what is there when it is gone is all
		_, _ = io.Copy(io.Discard, stdout)
	})
	readers.Go(func() { _, _ = io.Copy(io.Discard, stderr) })
	<-child.exited
	end := time.Now().Add(drainWait)
	_ = stdout.SetReadDeadline(end)
	_ = stderr.SetReadDeadline(end)
	readers.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case child.status != 0:
		return nil, fmt.Errorf("the token command ended with status %d", child.status)
	case len(out) > maxToken:
		return nil, fmt.Errorf("the token command printed more than %d bytes", maxToken)
	}
	return out, nil
}
