package secure

import "testing"

func TestOnlyThisMachineIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.255.255.254": true, "::1": true, "::ffff:127.0.0.1": true,
		"localhost.": false, "localhost.example": false, "0.0.0.0": false, "::": false, "128.0.0.1": false, "10.0.0.1": false, "127.1": false, "": false} {
		if Loopback(host) != want {
			t.Errorf("%q: %t", host, !want)
		}
	}
}
