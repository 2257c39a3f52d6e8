package peer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
)

// vault redacts what it has learnt.
type vault struct {
	mu    sync.Mutex
	known []string
}

func (v *vault) learn(token string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = append(v.known, token)
	return nil
}

func (v *vault) redact(b []byte) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, k := range v.known {
		b = bytes.ReplaceAll(b, []byte(k), []byte("[secret]"))
	}
	return b
}

// heldBack checks that nothing of a secret, 16 bytes or more, is in any report or in the log. The result of a call is the host's.
func heldBack(t *testing.T, l *ledger, log *bytes.Buffer, secret string) {
	t.Helper()
	reports, _ := l.all()
	for _, r := range reports {
		said, err := json.Marshal(r.data)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, r.evidence...)
		if _, answer := r.data.(domain.CallAnswered); !answer {
			said = append(said, r.payload...)
		}
		for i := 0; i+16 <= len(secret); i += 8 {
			if bytes.Contains(said, []byte(secret[i:i+16])) {
				t.Errorf("%s shows a secret: %.200q", r.data.Kind(), said)
				break
			}
		}
	}
	if strings.Contains(log.String(), secret[:16]) {
		t.Errorf("the log shows a secret: %q", log)
	}
}

// A peer may repeat what it was sent wherever it likes.
func TestATokenIsNowhereThoughThePeerRepeatsIt(t *testing.T) {
	var long strings.Builder
	for i := range 400 {
		fmt.Fprintf(&long, "%04d.", i*7919%10000)
	}
	for _, secret := range []string{"token-of-thirty-two-bytes-0123456", long.String()} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, v, log := newSite(t), &vault{}, &bytes.Buffer{}
		b := webWith(t, s, func(c *Config, p *Spec) {
			c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			p.Web.Credentials = map[string]Credential{domain.DefaultContext: {Name: "a", File: file}}
			p.Web.Learn, p.Redact = v.learn, v.redact
		})
		b.modern()
		for _, before := range []int{0, 490, 511, 600, 1000} {
			ways := []http.HandlerFunc{
				echoes(401, "text/html", before), echoes(500, "application/json", before), echoes(200, "text/plain", before), echoes(404, "text/event-stream", before),
				echoes(200, "application/json", before), echoes(503, "application/json", before),
				func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Location", "https://elsewhere.example/"+r.Header.Get("Authorization"))
					w.WriteHeader(307)
				},
				func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", r.Header.Get("Authorization"))
					w.Header().Set("Content-Encoding", r.Header.Get("Authorization"))
				},
				func(w http.ResponseWriter, r *http.Request) {
					c, _, err := w.(http.Hijacker).Hijack()
					if err == nil {
						_, _ = io.WriteString(c, r.Header.Get("Authorization")+"\r\n\r\n") // the client may have gone
						c.Close()
					}
				},
				func(w http.ResponseWriter, r *http.Request) {
					jsonAnswer(`"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"x","description":"`+
						r.Header.Get("Authorization")+`","inputSchema":{"type":"object"}}]}`)(w, r)
				},
			}
			if before == 511 {
				ways = append(ways, func(w http.ResponseWriter, r *http.Request) { // a page that is not there soon
					w.Header().Set("Content-Type", "text/html")
					_, _ = io.WriteString(w, strings.Repeat(" ", before)+r.Header.Get("Authorization")) // likewise
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				})
			}
			for _, way := range ways {
				s.on(domain.MethodCall, way)
				s.on(domain.MethodList, way)
				call, list := b.simple(), b.list()
				b.outcome(call)
				b.outcome(list)
			}
			if before == 0 {
				continue
			}
			s.on(domain.MethodDiscover, echoes(400, "text/plain", before))
			b.outcome(b.probe())
			s.on(domain.MethodDiscover, echoes(401, "application/json", before))
			b.outcome(b.probe())
		}
		if got := s.seen(domain.MethodCall)[0].header.Get("Authorization"); got != "Bearer "+secret {
			t.Fatalf("sent %q", got)
		}
		heldBack(t, b.ledger, log, secret)
	}
}

// echoes answers with the credential after some bytes.
func echoes(status int, kind string, before int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.Repeat("x", before)+r.Header.Get("Authorization")+" -32022") // the client may have gone
	}
}

func TestATokenFileIsReadAgainWhenItHasChanged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	s, v := newSite(t), &vault{}
	b := webStarted(t, s, func(w *Web) {
		w.Credentials = map[string]Credential{domain.DefaultContext: {Name: "a", File: file, Scheme: "Token"}}
		w.Learn = v.learn
	})
	s.on(domain.MethodCall, jsonAnswer(webComplete))
	b.Do(domain.SelectEra{At: at1, Era: domain.EraModern, Version: "2026-07-28"}, nil)
	for i, content := range []string{"one", "one", " two \r\n", "three\n\n", "", "a b", "a\nb", "tö", strings.Repeat("x", 16<<10+1), "four"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		id := b.simple()
		if i >= 4 && i < 9 {
			if f := b.failure(id); f.Code != domain.CodeUnauthorized || f.Written != writtenNo || !strings.Contains(f.Reason, "authorization a") {
				t.Errorf("%q: %+v", content, f)
			}
			continue
		}
		b.outcome(id)
		all := s.seen(domain.MethodCall)
		if got := all[len(all)-1].header.Get("Authorization"); got != "Token "+strings.TrimSpace(content) {
			t.Errorf("%q was sent as %q", content, got)
		}
	}
	if fmt.Sprint(v.known) != "[one two three four]" {
		t.Errorf("learnt %v", v.known)
	}
	// What is no file is not waited for.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if f := b.failure(b.simple()); f.Code != domain.CodeUnauthorized {
		t.Errorf("%+v", f)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := b.failure(b.simple()); f.Code != domain.CodeUnauthorized || !strings.Contains(f.Reason, "no regular file") {
		t.Errorf("%+v", f)
	}
}

// A token that nobody can redact is not used, nor is one that was given as it is.
func TestATokenThatCannotBeRedactedIsNotUsed(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) {
		w.Credentials = map[string]Credential{domain.DefaultContext: {Name: "a", Token: "x"}}
		w.Learn = func(string) error { return fmt.Errorf("too short") }
	})
	if d, ok := b.outcome(b.probe()).(domain.ProbeFailed); !ok || d.Class != domain.ClassUnauthorized || !strings.Contains(d.Reason, "too short") {
		t.Errorf("%+v", d)
	}
	if len(s.seen(domain.MethodDiscover)) > 0 {
		t.Error("it was sent")
	}
}

// Each context has its own credential, whatever else is under way.
func TestCredentialsOfContextsAreNotMixedUp(t *testing.T) {
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) {
		w.Options.Connections = 20
		w.Credentials = map[string]Credential{"a": {Name: "a", Token: "token-a", Fixed: map[string]string{"X-Who": "a"}}, "b": {Name: "b", Token: "token-b"}}
	})
	s.on(domain.MethodCall, func(w http.ResponseWriter, r *http.Request) {
		jsonAnswer(`"result":{"resultType":"complete","content":[],"who":"`+r.Header.Get("Authorization")+"|"+r.Header.Get("X-Who")+`"}`)(w, r)
	})
	b.Do(domain.SelectEra{At: at1, Era: domain.EraModern, Version: "2026-07-28"}, nil)
	want := map[string]string{"a": "Bearer token-a|a", "b": "Bearer token-b|", "": "|", "c": "|"}
	asked := map[int64]string{}
	for range 50 {
		for context := range want {
			asked[b.call("c", domain.EraModern, "{}", func(s *domain.Send, _ *domain.Body) { s.Context = context })] = context
		}
	}
	answers, full := await[domain.CallAnswered](t, b.ledger, 200)
	for i, a := range answers {
		if context := asked[a.RequestID]; !bytes.Contains(full[i].payload, []byte(`"`+want[context]+`"`)) {
			t.Errorf("context %q was asked for with %s", context, full[i].payload)
		}
	}
}

// A GET of a legacy peer that is refused is tried with another token.
func TestTheStreamOfAGETHasANewToken(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t)
	b := webStarted(t, s, func(w *Web) {
		w.Credentials = map[string]Credential{domain.DefaultContext: {Name: "a", Command: tokenCommand(t, dir, time.Minute, "note run", "say token-$RUN")}}
	})
	s.on("GET", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer token-1" {
			w.WriteHeader(401)
			return
		}
		streams("wait")(w, r)
	})
	b.legacy("s-1")
	if got := s.sees(t, "GET", 2)[1].header.Get("Authorization"); got != "Bearer token-2" {
		t.Errorf("sent %q", got)
	}
}
