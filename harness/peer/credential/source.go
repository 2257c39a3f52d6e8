package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"waybill/harness/peer/watchdog"
	"waybill/harness/peer/web"
)

// Bounds of tokens.
const (
	maxToken   = 16 << 10 // bytes
	leastPause = time.Second
	mostPause  = time.Minute
)

// Source gives what the requests of one authorization context are made with. Its methods may be used by several goroutines at once.
type Source struct {
	spec   Spec
	keeper *watchdog.Keeper
	learn  func(token string) error // nil accepts
	fixed  []web.Header

	ctx    context.Context // ends the command
	cancel context.CancelFunc
	runs   sync.WaitGroup

	mu      sync.Mutex
	token   string // the last that was found
	refused bool   // it was, by the peer
	failed  error  // why the last run of the command gave none
	paced   renewals
	running chan struct{} // closed when the command that runs has ended; nil for none
}

// renewals spaces the runs of a token command.
type renewals struct {
	pause time.Duration
	after time.Time // none is begun before
}

// ran counts a run that is over. The second may follow at once, if what the first one gave is refused; then each waits twice as long as
// the one before. After one that failed there is always a pause.
func (p *renewals) ran(now time.Time, failed bool) {
	if failed && p.pause == 0 {
		p.pause = leastPause
	}
	p.after = now.Add(p.pause)
	p.pause = min(max(leastPause, 2*p.pause), mostPause)
}

// accepted says that what the last run gave is good.
func (p *renewals) accepted() { p.pause = min(p.pause, leastPause) }

// New prepares a source; nothing is read or run yet. Learn is told of every token before it is used, and nothing is used that it refuses;
// nil accepts. It may be called by several goroutines at once. Close must be called, also where nothing was asked for.
func New(spec Spec, keeper *watchdog.Keeper, learn func(token string) error) *Source {
	k := &Source{spec: spec, keeper: keeper, learn: learn}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	names := make([]string, 0, len(spec.Fixed))
	for name := range spec.Fixed {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		k.fixed = append(k.fixed, web.Header{Name: name, Value: spec.Fixed[name]})
	}
	return k
}

// Close ends a command that runs, and returns when it is gone. Nothing may be asked for any more.
func (k *Source) Close() {
	k.cancel()
	k.runs.Wait()
}

// Header returns what authorizes a request. It waits for the command, where there is one to wait for, until the context ends. The error says which authorization fails, and why.
func (k *Source) Header(ctx context.Context) ([]web.Header, error) {
	h := slices.Clone(k.fixed)
	if k.spec.Token == "" && k.spec.File == "" && k.spec.Command == nil {
		return h, nil
	}
	token, err := k.current(ctx)
	if err != nil {
		return nil, fmt.Errorf("no token of authorization %s%s: %w", k.spec.Name, k.where(), err)
	}
	scheme := k.spec.Scheme
	if scheme == "" {
		scheme = "Bearer"
	}
	return append(h, web.Header{Name: "Authorization", Value: scheme + " " + token}), nil
}

// where says where its token comes from.
func (k *Source) where() string {
	switch {
	case k.spec.File != "":
		return " in " + k.spec.File
	case k.spec.Command != nil:
		return " from " + k.spec.Command.Path
	}
	return ""
}

func (k *Source) current(ctx context.Context) (string, error) {
	switch {
	case k.spec.File != "":
		return k.fromFile()
	case k.spec.Command != nil:
		return k.fromCommand(ctx)
	}
	return k.take([]byte(k.spec.Token))
}

// fromFile reads the file for every request: it is small, and whoever renews it expects that it counts. Nothing else is opened as if it
// were one: a pipe would wait for its other end.
func (k *Source) fromFile() (string, error) {
	f, err := os.OpenFile(k.spec.File, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(fmt.Errorf("%s is no regular file", k.spec.File), err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", err
	}
	return k.take(b)
}

// take takes a token as it was found: what is written nowhere must be known before it is used.
func (k *Source) take(found []byte) (string, error) {
	token := string(bytes.TrimSpace(found))
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return "", errors.New("what is there is no token: one line of visible ASCII without spaces (the word Bearer is put before it), 16 KiB at most")
	}
	k.mu.Lock()
	known := token == k.token
	k.mu.Unlock()
	if known {
		return token, nil
	}
	if k.learn != nil {
		if err := k.learn(token); err != nil {
			return "", err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.token, k.refused = token, false
	return token, nil
}

// fromCommand returns the last token that the command gave, or another where that was refused. One run is for everybody who waits, and ends
// with none of them.
func (k *Source) fromCommand(ctx context.Context) (string, error) {
	for {
		token, running, err := k.demand()
		if running == nil {
			return token, err
		}
		select {
		case <-running:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// demand returns the token that may be used now, or the run to wait for, or why there is neither. A token that was refused is used again
// until it is time for another.
func (k *Source) demand() (token string, running <-chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.token != "" && !k.refused:
		return k.token, nil, nil
	case k.running != nil:
		return "", k.running, nil
	case time.Now().Before(k.paced.after):
		return k.token, nil, k.failed
	}
	k.running = make(chan struct{})
	k.runs.Go(k.renew)
	return "", k.running, nil
}

// renew runs the command. It may print what it printed before.
func (k *Source) renew() {
	out, err := k.run(k.ctx, k.spec.Command)
	if err == nil {
		_, err = k.take(out)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = err
	if err == nil {
		k.refused = false
	}
	k.paced.ran(time.Now(), err != nil)
	close(k.running)
	k.running = nil
}

// Judge notes what a peer made of what was sent: where it was refused, another token is asked for by later requests.
func (k *Source) Judge(sent []web.Header, status int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range sent {
		if h.Name != "Authorization" || k.token == "" || !strings.HasSuffix(h.Value, " "+k.token) {
			continue
		}
		switch {
		case status == http.StatusUnauthorized:
			k.refused = true
		case status/100 == 2:
			k.paced.accepted()
		}
	}
}
