package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"waybill/domain"
	"waybill/harness/peer/web"
)

// Bounds of tokens.
const (
	maxToken     = 16 << 10 // bytes
	firstRefresh = time.Second
	lastRefresh  = time.Minute
)

// credential is what the requests of one authorization context are made with. It may be used by several goroutines at once.
type credential struct {
	spec  Credential
	lane  *lane
	fixed []web.Header

	turn chan struct{} // one token: whoever holds it may ask for another

	mu      sync.Mutex
	token   string
	refused bool // the token was: another is asked for when one is needed next
	pause   time.Duration
	after   time.Time // no other is asked for before
}

func newCredential(l *lane, spec Credential) *credential {
	k := &credential{spec: spec, lane: l, token: spec.Token, turn: make(chan struct{}, 1)}
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

// header returns what authorizes a request. The error says which authorization fails, and why.
func (k *credential) header(ctx context.Context) ([]web.Header, error) {
	h := slices.Clone(k.fixed)
	if k.spec.Token == "" && k.spec.File == "" && k.spec.Command == nil {
		return h, nil
	}
	token, err := k.current(ctx)
	if err != nil {
		return nil, fmt.Errorf("no token of authorization %s: %w", k.spec.Name, err)
	}
	scheme := k.spec.Scheme
	if scheme == "" {
		scheme = "Bearer"
	}
	return append(h, web.Header{Name: "Authorization", Value: scheme + " " + token}), nil
}

func (k *credential) current(ctx context.Context) (string, error) {
	switch {
	case k.spec.File != "":
		return k.fromFile()
	case k.spec.Command != nil:
		return k.fromCommand(ctx)
	}
	return k.token, nil
}

// fromFile reads the file for every request: it is small, and whoever renews it expects that it counts.
func (k *credential) fromFile() (string, error) {
	f, err := os.Open(k.spec.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", err
	}
	return k.learn(b)
}

// learn takes a token as it was found: what is written nowhere must be known before it is used.
func (k *credential) learn(found []byte) (string, error) {
	token := string(bytes.TrimSpace(found))
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return "", errors.New("what is there is no token: one line of visible ASCII, 16 KiB at most")
	}
	k.mu.Lock()
	known := token == k.token
	k.mu.Unlock()
	if known {
		return token, nil
	}
	if learn := k.lane.spec.Web.Learn; learn != nil {
		if err := learn(token); err != nil {
			return "", err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.token, k.refused = token, false
	return token, nil
}

// fromCommand returns the last token the command gave, or another where that was refused. One that runs is waited for; it runs no more
// often than once a second, and less often while what it gives is refused.
func (k *credential) fromCommand(ctx context.Context) (string, error) {
	if token, ok := k.good(); ok {
		return token, nil
	}
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if token, ok := k.good(); ok {
		return token, nil
	}
	k.count()
	out, err := k.lane.runToken(ctx, k.spec.Command)
	if err != nil {
		return "", err
	}
	return k.renewed(out)
}

// renewed takes what the command printed, which may be what it printed before.
func (k *credential) renewed(out []byte) (string, error) {
	token, err := k.learn(out)
	if err == nil {
		k.mu.Lock()
		k.refused = false
		k.mu.Unlock()
	}
	return token, err
}

// good returns the token if it may be used as it is.
func (k *credential) good() (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.token, k.token != "" && (!k.refused || time.Now().Before(k.after))
}

// count puts off the next run.
func (k *credential) count() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pause = min(max(firstRefresh, 2*k.pause), lastRefresh); !k.refused {
		k.pause = firstRefresh
	}
	k.after = time.Now().Add(k.pause)
}

// refuse notes that a peer refused what was sent: for later requests another token is asked for.
func (k *credential) refuse(sent []web.Header) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range sent {
		if h.Name == "Authorization" && k.token != "" && strings.HasSuffix(h.Value, " "+k.token) {
			k.refused = true
		}
	}
}

// credentials are the headers that authorize a request of a context, "" for the default one.
func (c *endpoint) credentials(ctx context.Context, authorization string) ([]web.Header, error) {
	k := c.lane.credential(authorization)
	if k == nil {
		return nil, nil
	}
	return k.header(ctx)
}

// credential returns that of a context; nil for none. What it knows lasts as long as the lane.
func (l *lane) credential(authorization string) *credential {
	if authorization == "" {
		authorization = domain.DefaultContext
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.credentials[authorization]
}

func (l *lane) refusedCredential(authorization string, sent []web.Header) {
	if k := l.credential(authorization); k != nil {
		k.refuse(sent)
	}
}
