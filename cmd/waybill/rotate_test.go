package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
)

// The log keeps its id, what was signed before still verifies, and the service
// goes on with the new key.
func TestTheKeyOfALogIsRotated(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}).ready()
	w.must(exitDone, "call", "--once", "echo", `{"n":1}`)
	var before, rotated struct {
		Log       string `json:"log"`
		Seq       int64  `json:"seq"`
		PublicKey string `json:"public_key"`
	}
	if err := json.Unmarshal([]byte(w.must(exitDone, "init", "--json")), &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(w.must(exitDone, "rotate-key", "--by", "oncall", "--json")), &rotated); err != nil {
		t.Fatal(err)
	}
	if rotated.Log != before.Log || rotated.PublicKey == before.PublicKey || !strings.HasPrefix(rotated.PublicKey, "waybill/"+before.Log+"+") {
		t.Errorf("%+v after %+v", rotated, before)
	}
	w.must(exitDone, "call", "--once", "echo", `{"n":2}`)
	w.audit()
	w.must(exitConfig, "rotate-key", "--by", "Not A Name")
	w.must(exitConfig, "rotate-key")
	if out := w.must(exitDone, "init"); !strings.Contains(out, rotated.PublicKey) {
		t.Errorf("init again shows\n%s", out)
	}
	s := w.serve()
	if code, _, errs := w.run("rotate-key", "--by", "oncall"); code != exitInternal || !strings.Contains(errs, "pid") {
		t.Errorf("beside a service: exit %d, %s", code, errs)
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve: exit %d", code)
	}
	w.audit()
}
