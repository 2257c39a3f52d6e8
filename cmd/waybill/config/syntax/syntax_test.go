package syntax

import (
	"net/url"
	"strings"
	"testing"
)

func TestWhoReachesAnAddress(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:4222": true, "localhost:0": true, "[::1]:0": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:4222": false, "[::]:4222": false, "10.0.0.1:4222": false, "localhost.example:1": false, ":4222": false, "": false} {
		if ListensHere(listen) != want {
			t.Errorf("%q: %t", listen, !want)
		}
	}
}

func TestServers(t *testing.T) {
	for address, want := range map[string]string{
		"nats://h": "", "nats://h:4222": "", "tls://[::1]:1": "", "tls://h:1/": "", "NATS://h": "",
		"ws://h": "must be like nats://HOST:PORT or tls://HOST:PORT", "h:4222": "must be like", "": "must be like", "nats://h:1,nats://i:1": "must be like",
		"nats://a,b": "must be like", "nats://u@h": "must hold no user or password: use nats.credentials", "nats://u:p@h": "use nats.credentials",
		"nats://h/a": "must end after the port", "nats://h?": "must end after the port", "nats://h?a=,": "must end after the port", "nats://h#": "no fragment",
	} {
		if got := Server(address); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", address, got)
		}
	}
}

func TestOrigins(t *testing.T) {
	for address, want := range map[string]string{
		"https://H.example/a": "https://h.example:443", "https://h.example:443": "https://h.example:443", "http://h.example": "http://h.example:80",
		"https://h.example:8443/": "https://h.example:8443", "https://[::1]:1/": "https://::1:1", "HTTPS://h.example": "https://h.example:443",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := Origin(u); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

func TestFields(t *testing.T) {
	for value, want := range map[string]bool{"a": true, "a b": true, "a\tb": true, "\u00e9": true, "": false, " a": false, "a ": false, "a\tb\t": false,
		"a\nb": false, "a\r": false, "a\x00b": false, "a\x7fb": false} {
		if FieldValue(value) != want {
			t.Errorf("%q: %t", value, !want)
		}
	}
	for name, want := range map[string]bool{"Bearer": true, "x-1_!#$%&'*+.^`|~": true, "": false, "a b": false, "a:b": false, "\u00e9": false, "a/b": false} {
		if Token(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}

// What is accepted can be asked, and what is wrong is said without the address.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"https://h.example/mcp?x=1", "http://[::1]:80/", "https://u:p@h/", "https://h#", "https://h:0/", "https:h", "//h", "https://%68/", "https://a_b."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, reason := Address(address, "https", "http")
		if (u == nil) == (reason == "") {
			t.Fatalf("%v and %q", u, reason)
		}
		if u == nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || u.Hostname() == "" || u.User != nil || strings.ContainsAny(u.String(), "# \n") || Origin(again) != Origin(u) {
			t.Fatalf("%q was accepted: %v, %v", address, u, err)
		}
	})
}
