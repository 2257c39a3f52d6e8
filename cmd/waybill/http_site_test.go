package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// posted is one request as a scripted endpoint saw it.
type posted struct {
	verb   string // of HTTP
	method string // of JSON-RPC
	tool   string
	header http.Header
	id     json.RawMessage
	args   json.RawMessage
	meta   json.RawMessage
}

// way answers one request of a scripted endpoint; false leaves it to the usual answer.
type way func(w http.ResponseWriter, r *http.Request, p posted) bool

// endpoint is one of many that a row of a table is about. It is a good modern peer with the tools echo and charge, but for its ways.
type endpoint struct {
	ways   []way
	legacy bool // it knows initialize and sessions, and no server/discover
	tools  string

	mu       sync.Mutex
	seen     []posted
	sessions map[string]bool
	ran      int // calls that were carried out
}

// sites serves every endpoint under its name.
type sites struct {
	*httptest.Server
	all map[string]*endpoint
}

func newSites(t *testing.T, all map[string]*endpoint) *sites {
	t.Helper()
	s := &sites{all: all}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	e := s.all[name]
	if e == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
			Meta      json.RawMessage `json:"_meta"`
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) > 0 && json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p := posted{verb: r.Method, method: m.Method, tool: m.Params.Name, header: r.Header.Clone(), id: m.ID, args: m.Params.Arguments, meta: m.Params.Meta}
	e.mu.Lock()
	e.seen = append(e.seen, p)
	e.mu.Unlock()
	for _, f := range e.ways {
		if f(w, r, p) {
			return
		}
	}
	e.answer(w, p)
}

func (e *endpoint) answer(w http.ResponseWriter, p posted) {
	switch {
	case p.verb != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case len(p.id) == 0:
		w.WriteHeader(http.StatusAccepted)
	case p.method == "server/discover" && !e.legacy:
		said(w, p, 200, `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"private"}`)
	case p.method == "initialize" && e.legacy:
		w.Header().Set("Mcp-Session-Id", e.open())
		said(w, p, 200, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
	case p.method == "tools/list":
		said(w, p, 200, `"result":{`+e.hints()+`"tools":[`+orElse(e.tools, `{"name":"echo","inputSchema":{"type":"object"}},{"name":"charge","inputSchema":{"type":"object"}}`)+`]}`)
	case p.method == "tools/call":
		e.carryOut()
		said(w, p, 200, e.called(p))
	default:
		said(w, p, 404, `"error":{"code":-32601,"message":"no such method"}`)
	}
}

func (e *endpoint) hints() string {
	if e.legacy {
		return ""
	}
	return `"resultType":"complete","ttlMs":60000,"cacheScope":"private",`
}

// called is the result of a call.
func (e *endpoint) called(p posted) string {
	return fmt.Sprintf(`"result":{%s"content":[{"type":"text","text":%q}]}`, strings.Replace(e.hints(), `"ttlMs":60000,"cacheScope":"private",`, "", 1), p.tool+" ran")
}

func (e *endpoint) carryOut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ran++
}

// open begins a session.
func (e *endpoint) open() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions == nil {
		e.sessions = map[string]bool{}
	}
	id := fmt.Sprintf("session-%d", len(e.sessions)+1)
	e.sessions[id] = true
	return id
}

// count counts the requests of a method, or of a verb that is none of POST.
func (e *endpoint) count(what string) int {
	return len(e.requests(what))
}

func (e *endpoint) requests(what string) []posted {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.seen), func(p posted) bool { return p.method != what && (p.verb != what || what == http.MethodPost) })
}

func (e *endpoint) runs() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ran
}

// said answers with one message.
func said(w http.ResponseWriter, p posted, status int, members string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, p.id, members)
}

// Ways.

// replies answers a method, "" for everything, with a status, a type and a body in which $ID is the id.
func replies(method string, status int, kind, body string) way {
	return func(w http.ResponseWriter, _ *http.Request, p posted) bool {
		if method != "" && p.method != method {
			return false
		}
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "$ID", string(p.id))) // whoever asked may have gone
		return true
	}
}

// chunks streams the answer of a call in pieces, in which $BODY is the whole message.
func chunks(e *endpoint, kind string, pieces ...string) way {
	return func(w http.ResponseWriter, r *http.Request, p posted) bool {
		if p.method != "tools/call" {
			return false
		}
		e.carryOut()
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(200)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, p.id, e.called(p))
		for _, piece := range pieces {
			if piece == "HANG" {
				<-r.Context().Done()
				return true
			}
			_, _ = io.WriteString(w, strings.NewReplacer("$BODY", body, "$HALF1", body[:20], "$HALF2", body[20:], "$ID", string(p.id)).Replace(piece)) // as above
			w.(http.Flusher).Flush()
		}
		return true
	}
}

// times lets a way be taken so often, and then no more.
func times(n int, f way) way {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, p posted) bool {
		mu.Lock()
		defer mu.Unlock()
		if n == 0 || !f(w, r, p) {
			return false
		}
		n--
		return true
	}
}

// moves answers everything at its first path with a redirect.
func moves(status int, to string) way {
	return func(w http.ResponseWriter, r *http.Request, _ posted) bool {
		if !strings.HasSuffix(r.URL.Path, "/mcp") {
			return false
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
		return true
	}
}

// requires refuses what lacks a value in its header.
func requires(name, value string, status int) way {
	return func(w http.ResponseWriter, r *http.Request, p posted) bool {
		if p.verb != http.MethodPost || r.Header.Get(name) == value {
			return false
		}
		w.WriteHeader(status)
		return true
	}
}

// zipped answers a call compressed, if it may.
func zipped(e *endpoint) way {
	return func(w http.ResponseWriter, r *http.Request, p posted) bool {
		if p.method != "tools/call" || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			return false
		}
		e.carryOut()
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		z := gzip.NewWriter(w)
		fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,%s}`, p.id, e.called(p))
		_ = z.Close() // as above
		return true
	}
}

// forgets ends a session at the second call, and refuses what comes under one that is not there.
func forgets(e *endpoint, status int, kind, body string) way {
	calls := 0
	return func(w http.ResponseWriter, r *http.Request, p posted) bool {
		if p.verb != http.MethodPost || p.method == "initialize" || p.method == "server/discover" {
			return false
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if p.method == "tools/call" {
			if calls++; calls == 2 {
				clear(e.sessions)
				e.sessions["old"] = false
			}
		}
		if e.sessions[r.Header.Get("Mcp-Session-Id")] {
			return false
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // as above
		return true
	}
}
