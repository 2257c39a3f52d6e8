package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill/config"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/bus/secure"
)

// askPatience is longer than the service takes for any read: it answers with what
// it has after 10 seconds.
const askPatience = 15 * time.Second

// remote is a running service, reached over NATS.
type remote struct {
	run    harness.Run
	client *bus.Client
}

// target is where a running service is, as it said.
func target(run harness.Run) bus.Target {
	return bus.Target{URL: run.URL, TLS: secure.TLS(run.TLS)}
}

// running connects to the service that holds the data directory, as a host. It
// returns nil where none runs.
func (a *app) running(f *config.File, host string) (*remote, error) {
	return a.runningFor(f, func(ctx context.Context, run harness.Run) (*bus.Client, error) {
		id, err := bus.LoadHost(run.Credentials, host)
		if err != nil {
			return nil, err
		}
		return bus.DialAs(ctx, id, target(run), run.Prefix)
	})
}

// runningFor is running for who dials otherwise.
func (a *app) runningFor(f *config.File, dial func(context.Context, harness.Run) (*bus.Client, error)) (*remote, error) {
	run, err := dataDir(f).Running()
	if err != nil || run == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(a.ctx, askPatience)
	defer cancel()
	c, err := dial(ctx, *run)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &exitError{exit: exitConfig, code: "credentials", err: err}
	}
	if errors.Is(err, bus.ErrUnreachable) {
		return nil, fmt.Errorf("the service (pid %d) runs and is asked over NATS, but %w; see that a server runs where nats.url says", run.PID, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the service (pid %d) cannot be asked at %s: %w", run.PID, run.URL, err)
	}
	return &remote{*run, c}, nil
}

// ask sends a read-only verb and decodes the answer.
func (r *remote) ask(ctx context.Context, verb string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	b, code, err := r.client.Request(ctx, verb, body)
	if err != nil {
		return fmt.Errorf("ask the service (pid %d) for %s: %w", r.run.PID, verb, err)
	}
	if code != "" {
		return fmt.Errorf("the service (pid %d) answered %s with %s: %s", r.run.PID, verb, code, b)
	}
	return json.Unmarshal(b, into)
}
