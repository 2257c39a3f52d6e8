package web

import (
	"encoding/pem"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestOptionsThatCannotBeKeptAreRefusedByName(t *testing.T) {
	ca, _ := authority(t, "localhost")
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})
	damaged := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})
	at := func(text string) func(*Options) {
		return func(o *Options) { o.Endpoint, _ = url.Parse(text) }
	}
	through := func(text string) func(*Options) {
		return func(o *Options) { o.Proxy, _ = url.Parse(text) }
	}
	for _, c := range []struct {
		name   string
		change func(*Options)
		option string // that the error begins with; "" for none
	}{
		{"as they are", func(*Options) {}, ""},
		{"no endpoint", func(o *Options) { o.Endpoint = nil }, "Endpoint"},
		{"another scheme", at("ftp://127.0.0.1/"), "Endpoint"},
		{"no host", at("https:///mcp"), "Endpoint"},
		{"opaque", at("https:mcp"), "Endpoint"},
		{"a user", at("https://u:secret@example.com/"), "Endpoint"},
		{"a fragment", at("https://example.com/#x"), "Endpoint"},
		{"port 0", at("https://example.com:0/"), "Endpoint"},
		{"port 65536", at("https://example.com:65536/"), "Endpoint"},
		{"plain to an address", at("http://192.0.2.1/"), "Endpoint"},
		{"plain to loopback", at("http://127.5.5.5/"), ""},
		{"plain to loopback of IPv6", at("http://[::1]:80/"), ""},
		{"plain to a name, which is resolved later", at("http://example.com/"), ""},
		{"plain to an address, allowed", func(o *Options) { at("http://192.0.2.1/")(o); o.AllowPlain = true }, ""},
		{"plain and no private address", func(o *Options) { at("http://localhost/")(o); o.RefusePrivate = true }, "RefusePrivate"},
		{"a proxy", through("http://u:secret@proxy.example:3128"), ""},
		{"a proxy that is none", through("ftp://proxy.example"), "Proxy"},
		{"a proxy without a host", through("http://"), "Proxy"},
		{"a proxy and no private address", func(o *Options) { through("http://proxy.example")(o); o.RefusePrivate = true }, "RefusePrivate"},
		{"a proxy and plain", func(o *Options) { through("http://proxy.example")(o); at("http://127.0.0.1/")(o) }, "Proxy"},
		{"an authority", func(o *Options) { o.RootCAs = ca }, ""},
		{"no PEM", func(o *Options) { o.RootCAs = []byte("x") }, "RootCAs"},
		{"an empty file", func(o *Options) { o.RootCAs = []byte{} }, "RootCAs"},
		{"a key", func(o *Options) { o.RootCAs = append(append([]byte{}, ca...), key...) }, "RootCAs"},
		{"a damaged certificate after a good one", func(o *Options) { o.RootCAs = append(append([]byte{}, ca...), damaged...) }, "RootCAs"},
		{"no connections", func(o *Options) { o.Connections = 0 }, "Connections"},
		{"no time to connect", func(o *Options) { o.Connect = 0 }, "Connect"},
		{"negative idle time", func(o *Options) { o.Idle = -time.Second }, "Idle"},
		{"no header", func(o *Options) { o.MaxHeader = 0 }, "MaxHeader"},
		{"no body", func(o *Options) { o.MaxBody = 0 }, "MaxBody"},
		{"negative stream", func(o *Options) { o.MaxStream = -1 }, "MaxStream"},
	} {
		o := settings(t, "https://example.com/mcp")
		c.change(&o)
		got, err := New(o)
		switch {
		case c.option == "" && (err != nil || got == nil):
			t.Errorf("%s: %v", c.name, err)
		case c.option != "" && (err == nil || !strings.HasPrefix(err.Error(), c.option+": ")):
			t.Errorf("%s: %v, want an error about %s", c.name, err, c.option)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: %v shows a password", c.name, err)
		}
	}
}

func TestRequestsThatSayWhatTheConnectionSaysAreRefused(t *testing.T) {
	c := client(t, settings(t, "http://127.0.0.1:1/"))
	for _, r := range []Request{
		{Method: "PUT", Body: []byte("x")},
		{Method: "POST"},
		{Method: "GET", Body: []byte("x")},
		{Method: "GET", Header: []Header{{"host", "elsewhere"}}},
		{Method: "GET", Header: []Header{{"ACCEPT-ENCODING", "gzip"}}},
		{Method: "GET", Header: []Header{{"Expect", "100-continue"}}},
		{Method: "GET", Header: []Header{{"", "x"}}},
		{Method: "GET", Header: []Header{{"A B", "x"}}},
		{Method: "GET", Header: []Header{{"Näme", "x"}}},
		{Method: "GET", Header: []Header{{"Authorization", "secret\r\nX: y"}}},
		{Method: "GET", Header: []Header{{"Authorization", "secret\x00"}}},
	} {
		_, err := c.Do(t.Context(), r)
		if f := wantFailure(t, err, KindRequest, false); strings.Contains(f.Error(), "secret") {
			t.Errorf("%v shows the value of a header", f)
		}
	}
}
