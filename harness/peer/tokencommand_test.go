package peer

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

// tokenCommand plays a script; $RUN is the number of lines in the notes that it makes.
func tokenCommand(t *testing.T, dir string, limit time.Duration, steps ...string) *TokenCommand {
	spec := actor(t, filepath.Join(dir, "runs"), steps...)
	return &TokenCommand{Path: spec.Path, Env: spec.Env, Limit: limit.Milliseconds()}
}

func withCommand(t *testing.T, s *site, command *TokenCommand) *webBench {
	b := webStarted(t, s, func(w *Web) {
		w.Credentials = map[string]Credential{domain.DefaultContext: {Name: "a", Command: command}}
	})
	b.Do(domain.SelectEra{At: at1, Era: domain.EraModern, Version: "2026-07-28"}, nil)
	return b
}

func runs(dir string) int { return countLines(filepath.Join(dir, "runs")) }

// One run is for everybody; another follows when its token is refused, for those that come later.
func TestATokenCommandIsRunOnceForMany(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t)
	b := withCommand(t, s, tokenCommand(t, dir, time.Minute, "note run", "say token-$RUN"))
	s.on(domain.MethodCall, jsonAnswer(webComplete))
	for range 50 {
		b.simple()
	}
	b.answered(50)
	if n := runs(dir); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	s.on(domain.MethodCall, sends(401, "", ""))
	if f := b.failure(b.simple()); f.Code != domain.CodeUnauthorized || f.Status != 401 || f.Written != writtenMaybe {
		t.Errorf("%+v", f)
	}
	if n := runs(dir); n != 1 {
		t.Errorf("it ran for a request that had failed, %d times", n)
	}
	s.on(domain.MethodCall, jsonAnswer(webComplete))
	b.simple()
	b.answered(51)
	all := s.seen(domain.MethodCall)
	if first, last := all[0].header.Get("Authorization"), all[len(all)-1].header.Get("Authorization"); first != "Bearer token-1" || last != "Bearer token-2" {
		t.Errorf("first %q, then %q", first, last)
	}
}

// A token that is refused again and again, or a command that fails, is no reason to run it all the time.
func TestATokenCommandIsNotRunInALoop(t *testing.T) {
	for _, steps := range [][]string{{"note run", "say token-$RUN"}, {"note run", "say the-same"}, {"note run", "exit 1"}} {
		dir := t.TempDir()
		s := newSite(t)
		b := withCommand(t, s, tokenCommand(t, dir, time.Minute, steps...))
		s.on(domain.MethodCall, sends(401, "", ""))
		began := time.Now()
		for range 30 {
			if f := b.failure(b.simple()); f.Code != domain.CodeUnauthorized {
				t.Errorf("%+v", f)
			}
		}
		if n, most := runs(dir), 2+int(time.Since(began)/time.Second); n > most {
			t.Errorf("%v: it ran %d times, more than %d", steps, n, most)
		}
	}
}

func TestATokenCommandThatGivesNoToken(t *testing.T) {
	for name, c := range map[string]struct {
		steps  []string
		change func(*TokenCommand)
		reason string
	}{
		"a status":            {[]string{"say secret-token-of-0123456789", "exit 3"}, nil, "status 3"},
		"a signal":            {[]string{"say secret-token-of-0123456789", "die 9"}, nil, "SIGKILL"},
		"nothing":             {nil, nil, "no token"},
		"two words":           {[]string{"say secret-token-of-0123456789 x"}, nil, "no token"},
		"two lines":           {[]string{"say secret-token-of-0123456789", "say x"}, nil, "no token"},
		"more than a token":   {[]string{"storm 1000 secret-token-of-0123456789"}, nil, "more than 16384"},
		"output without end":  {[]string{"flood"}, nil, "more than 16384"},
		"words on its stderr": {[]string{"stderr 100000", "exit 1"}, nil, "status 1"},
		"no program":          {nil, func(c *TokenCommand) { c.Path = "/nonexistent" }, "no such file"},
		"no directory":        {nil, func(c *TokenCommand) { c.Dir = "/nonexistent" }, "working directory"},
		"not as pinned": {nil, func(c *TokenCommand) {
			c.Verify = func() (domain.Code, string) { return domain.CodePinMismatch, "it has changed" }
		}, "it has changed"},
	} {
		s := newSite(t)
		command := tokenCommand(t, t.TempDir(), time.Minute, c.steps...)
		if c.change != nil {
			c.change(command)
		}
		b := withCommand(t, s, command)
		if f := b.failure(b.simple()); f.Code != domain.CodeUnauthorized || f.Written != writtenNo || !strings.Contains(f.Reason, c.reason) || strings.Contains(f.Reason, "secret") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// A command that takes too long is killed, and its group with it; so is one that runs when the service ends.
func TestATokenCommandIsEndedWithItsGroup(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, time.Hour} {
		dir := t.TempDir()
		s := newSite(t)
		b := withCommand(t, s, tokenCommand(t, dir, limit, "deafTo 15", "fork", "fork", "hang"))
		id := b.simple()
		child := forked(t, filepath.Join(dir, "runs"))
		if limit == time.Hour {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		} else if f := b.failure(id); !strings.Contains(f.Reason, "timeout") || f.Written != writtenNo {
			t.Errorf("%+v", f)
		}
		dead(t, child...)
	}
}

// A request that ends while it waits for a token leaves the run to the others.
func TestADeadlineDoesNotEndATokenCommand(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t)
	s.on(domain.MethodCall, jsonAnswer(webComplete))
	b := withCommand(t, s, tokenCommand(t, dir, time.Minute, "note run", "awaits", "say token-$RUN"))
	short := b.call("c", domain.EraModern, "{}", func(s *domain.Send, _ *domain.Body) { s.Deadline = 50 })
	long := b.simple()
	gone := b.simple()
	poll(t, "the command", func() bool { return runs(dir) == 1 })
	if d, ok := b.outcome(short).(domain.DeadlinePassed); !ok || d.Written != writtenNo {
		t.Errorf("%+v", b.outcome(short))
	}
	b.withdraw(gone)
	if err := appendLine(filepath.Join(dir, "runs.go"), "on"); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.outcome(long).(domain.CallAnswered); !ok || runs(dir) != 1 {
		t.Errorf("%+v after %d runs", b.outcome(long), runs(dir))
	}
}

// Who waits for a token and for nothing else is told why it ends.
func TestTheWaitForATokenEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	b := withCommand(t, newSite(t), tokenCommand(t, dir, time.Hour, "note run", "hang"))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(http.ErrHandlerTimeout)
	k := b.lane("p").credential("")
	if _, err := k.Header(ctx); err == nil || !strings.Contains(err.Error(), http.ErrHandlerTimeout.Error()) {
		t.Errorf("%v", err)
	}
}
