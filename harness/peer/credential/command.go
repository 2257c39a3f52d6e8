package credential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"waybill/harness/peer/watchdog"
)

// run has a token command run to its end and returns what it printed. It is a process like those of peers: started without a shell, in a
// group of its own that ends with it, or with us. What it says on its standard error is thrown away: it may be anything.
func (k *Source) run(ctx context.Context, t *Command) ([]byte, error) {
	if t.Verify != nil {
		if code, reason := t.Verify(); code != "" {
			return nil, fmt.Errorf("the token command is not run (%s): %s", code, reason)
		}
	}
	if err := watchdog.Searchable(t.Dir); err != nil {
		return nil, fmt.Errorf("working directory of the token command: %w", err)
	}
	child, err := k.keeper.Start(watchdog.Program{Path: t.Path, Argv: append([]string{cmp.Or(t.Argv0, t.Path)}, t.Args...), Env: t.Env, Dir: t.Dir})
	if err != nil {
		return nil, fmt.Errorf("start the token command %s: %w", t.Path, err)
	}
	_ = child.Stdin.Close() // it is told nothing
	defer child.Stdout.Close()
	defer child.Stderr.Close()
	return attend(ctx, child, time.Duration(t.Limit)*time.Millisecond)
}

// drainWait is how long the pipes of a command that is gone may stay open, by something that left its group.
const drainWait = time.Second

var errTokenTooLate = errors.New("the token command took longer than its timeout and was ended")

// attend reads what a token command prints until it is gone, which it is when this returns.
func attend(ctx context.Context, child *watchdog.Child, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTokenTooLate)
	defer cancel()
	var readers sync.WaitGroup
	var out []byte
	full := make(chan struct{})
	readers.Go(func() {
		out, _ = io.ReadAll(io.LimitReader(child.Stdout, maxToken+1)) // what is there when it is gone is all
		if len(out) > maxToken {
			close(full)
		}
		_, _ = io.Copy(io.Discard, child.Stdout)
	})
	readers.Go(func() { _, _ = io.Copy(io.Discard, child.Stderr) })
	select {
	case <-child.Exited:
	case <-ctx.Done():
		child.Finish()
	case <-full:
		child.Finish()
	}
	end := time.Now().Add(drainWait)
	_ = child.Stdout.SetReadDeadline(end)
	_ = child.Stderr.SetReadDeadline(end)
	readers.Wait()
	switch {
	case len(out) > maxToken:
		return nil, fmt.Errorf("the token command printed more than %d bytes", maxToken)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case child.Signal != "":
		return nil, fmt.Errorf("the token command was ended by %s", child.Signal)
	case child.Status != 0:
		return nil, fmt.Errorf("the token command ended with status %d", child.Status)
	}
	return out, nil
}
