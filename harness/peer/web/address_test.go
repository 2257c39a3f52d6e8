package web

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestPublicAddresses(t *testing.T) {
	for _, c := range []struct {
		want      bool
		addresses string
	}{
		{true, "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0"},
		{true, "172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255"},
		{true, "2606:4700::1111 2001:200:: 2a00::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8"},
		{false, "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255"},
		{false, "192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1"},
		{false, "224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255"},
		{false, ":: ::1 fe80::1 fe80::1%eth0 2606:4700::1%eth0 fec0::1 fc00::1 fd00:ec2::254 ff02::1 100::1 5f00::1"},
		{false, "2001::1 2001:2::1 2001:20::1 2001:db8::1 2002:a00:1::1 2002:808:808::1 3fff::1 64:ff9b:1::8.8.8.8"},
		{false, "::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:127.0.0.1 ::10.0.0.1 64:ff9b::10.0.0.1 64:ff9b::127.0.0.1 64:ff9b::169.254.169.254"},
	} {
		for text := range strings.FieldsSeq(c.addresses) {
			if got := public(netip.MustParseAddr(text)); got != c.want {
				t.Errorf("%s is public: %v", text, got)
			}
		}
	}
}

func TestTheGuardJudgesWhatIsDialled(t *testing.T) {
	for _, c := range []struct {
		endpoint       string
		plain, private bool // allowed, refused
		address        string
		ok             bool
	}{
		{"http://a.example/", false, false, "127.0.0.1:80", true},
		{"http://a.example/", false, false, "[::1]:80", true},
		{"http://a.example/", false, false, "[::ffff:127.0.0.1]:80", true},
		{"http://a.example/", false, false, "10.0.0.1:80", false},
		{"http://a.example/", false, false, "8.8.8.8:80", false},
		{"http://a.example/", true, false, "8.8.8.8:80", true},
		{"http://a.example/", true, false, "10.0.0.1:80", true},
		{"http://a.example/", true, true, "10.0.0.1:80", false},
		{"http://a.example/", true, true, "8.8.8.8:80", true},
		{"https://a.example/", false, false, "10.0.0.1:443", true},
		{"https://a.example/", false, true, "10.0.0.1:443", false},
		{"https://a.example/", false, true, "127.0.0.1:443", false},
		{"https://a.example/", false, true, "[fe80::1%lo]:443", false},
		{"https://a.example/", false, true, "8.8.8.8:443", true},
		{"https://a.example/", false, false, "nonsense", false},
	} {
		o := settings(t, c.endpoint)
		o.AllowPlain, o.RefusePrivate = c.plain, c.private
		err := o.guard(t.Context(), "tcp", c.address, nil)
		if (err == nil) != c.ok {
			t.Errorf("%s, plain %v, public only %v, at %s: %v", c.endpoint, c.plain, c.private, c.address, err)
		}
	}
}

func TestAPrivateAddressIsRefusedAfterResolution(t *testing.T) {
	reached := make(chan struct{}, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(net.Conn, http.ConnState) { reached <- struct{}{} }
	s.StartTLS()
	defer s.Close()
	o := settings(t, strings.Replace(s.URL, "127.0.0.1", "localhost", 1))
	o.RefusePrivate = true
	_, err := client(t, o).Do(t.Context(), post("{}"))
	wantFailure(t, err, KindAddress, false)
	if len(reached) > 0 {
		t.Error("a connection was made")
	}
}

func TestLocalhostIsReachedWhereOnlyIPv4Listens(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("here")) }))
	defer s.Close()
	_, body := exchange(t, client(t, settings(t, strings.Replace(s.URL, "127.0.0.1", "localhost", 1))), post("{}"))
	if body != "here" {
		t.Errorf("got %q", body)
	}
}
