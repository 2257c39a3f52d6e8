package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another origin was asked") }))
	defer elsewhere.Close()
	var at []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		at = append(at, r.Method+" "+r.RequestURI+" "+string(body)+" "+r.Header.Get("Authorization"))
		to := strings.TrimPrefix(r.URL.Query().Get("to"), "-")
		status := map[string]int{"/301": 301, "/302": 302, "/303": 303, "/307": 307, "/308": 308, "/loop": 307}[r.URL.Path]
		if status == 0 {
			io.WriteString(w, "arrived")
			return
		}
		if to != "" {
			w.Header().Set("Location", to)
		}
		w.WriteHeader(status)
	}))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	for _, c := range []struct {
		name, path string
		hops       int
		said       string // in the error, "" for none
	}{
		{"307", "/307?to=/mcp", 2, ""},
		{"308", "/308?to=mcp", 2, ""},
		{"the whole URL", "/307?to=" + s.URL + "/mcp", 2, ""},
		{"a query", "/307?to=/mcp%3Fa=1", 2, ""},
		{"three of them", "/307?to=/307%3Fto=/308%253Fto=/mcp", 4, ""},
		{"without end", "/loop?to=/loop%3Fto=/loop%253Fto=/loop%25253Fto=/mcp", 4, "more than 3 times"},
		{"301", "/301?to=/mcp", 1, "change the method"},
		{"302", "/302?to=/mcp", 1, "change the method"},
		{"303", "/303?to=/mcp", 1, "change the method"},
		{"another port", "/307?to=" + elsewhere.URL + "/secret%3Fsecret", 1, "to another origin"},
		{"another scheme", "/308?to=https://" + host + "/secret", 1, "to another origin"},
		{"another host", "/307?to=//localhost:1/secret", 1, "to another origin"},
		{"another host, 302", "/302?to=//localhost:1/secret", 1, "to another origin"},
		{"a user", "/307?to=http://secret:secret@" + host + "/mcp", 1, "a user in it"},
		{"no target", "/307", 1, "without a target"},
		{"a target that is none", "/307?to=http://%255B/secret", 1, "without a target"},
	} {
		at = nil
		r := post("message")
		r.Header = append(r.Header, Header{"Authorization", "Bearer key"})
		began := 0
		r.Began, r.Follow = func() { began++ }, true
		a, err := client(t, settings(t, s.URL+c.path)).Do(t.Context(), r)
		if c.said == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			if body, _ := a.Body(); string(body) != "arrived" {
				t.Errorf("%s: %q", c.name, body)
			}
			a.Close()
		} else if f := wantFailure(t, err, KindRedirect, true); !strings.Contains(f.Error(), c.said) || strings.Contains(f.Error(), "secret") {
			t.Errorf("%s: %v, want it to say %q", c.name, f, c.said)
		}
		if len(at) != c.hops || began != 1 {
			t.Errorf("%s: %d requests, began %d times: %q", c.name, len(at), began, at)
		}
		for _, request := range at {
			if !strings.HasPrefix(request, "POST ") || !strings.HasSuffix(request, " message Bearer key") {
				t.Errorf("%s: %s", c.name, request)
			}
		}
	}
}

func TestOrigin(t *testing.T) {
	for _, c := range [][2]string{
		{"https://a.example/x?y", "https://a.example"}, {"https://A.example:443", "https://a.example"}, {"http://a:80/", "http://a"},
		{"http://a:443/", "http://a:443"}, {"https://u:p@[::1]:8443/", "https://[::1]:8443"}, {"http://[::1]/", "http://[::1]"},
	} {
		if got := origin(settings(t, c[0]).Endpoint); got != c[1] {
			t.Errorf("%s has the origin %s, want %s", c[0], got, c[1])
		}
	}
}

// Only what asks for it is redirected: whoever redirects has had the request.
func TestARedirectIsFollowedWhereThatIsAskedForAlone(t *testing.T) {
	met := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		met++
		if r.URL.Path == "/mcp" {
			w.Header().Set("Location", "/there")
			w.WriteHeader(http.StatusTemporaryRedirect)
			io.WriteString(w, "evidence on the way")
			return
		}
		io.WriteString(w, "arrived")
	}))
	defer s.Close()
	c := client(t, settings(t, s.URL+"/mcp"))
	_, err := c.Do(t.Context(), post("x"))
	if f := wantFailure(t, err, KindRedirect, true); met != 1 || string(f.Passed) != "evidence on the way" {
		t.Errorf("%d requests, %q", met, f.Passed)
	}
	r := post("x")
	r.Follow = true
	a, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	if string(a.Passed) != "evidence on the way" || a.URL.Path != "/there" {
		t.Errorf("%q, %s", a.Passed, a.URL)
	}
	met, r = 0, post("y")
	r.To = a.URL
	if _, body := exchange(t, c, r); body != "arrived" || met != 1 {
		t.Errorf("%q after %d requests", body, met)
	}
	r.To, err = url.Parse("http://localhost:1/there")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), r)
	wantFailure(t, err, KindRequest, false)
}

// Where a redirect leads is the peer's word, which may be what it was sent.
func TestARedirectElsewhereIsNotRepeated(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+r.Header.Get("Authorization")+"/x")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	r := post("x")
	r.Header, r.Follow = append(r.Header, Header{"Authorization", "MyToken"}), true
	_, err := client(t, settings(t, s.URL)).Do(t.Context(), r)
	if f := wantFailure(t, err, KindRedirect, true); strings.Contains(strings.ToLower(f.Error()), "mytoken") {
		t.Errorf("%v", f)
	}
}
