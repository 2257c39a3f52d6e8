package events

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

var update = flag.Bool("update", false, "write the golden envelopes that are missing; none is ever written again")

// goldens are the exact bytes of an envelope of each kind, for ever: logs hold
// such bytes. Their folder is named for the version of the data.
const goldens = "testdata/v" + dataVersion

func golden(t testing.TB, kind string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(goldens, kind+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s has no golden envelope: add a sample and run this test with -update", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEnvelopesAreTheGoldenOnes(t *testing.T) {
	if *update {
		addGoldens(t)
	}
	for _, d := range samples {
		b, err := Seal(logID, event(d))
		if err != nil {
			t.Fatal(err)
		}
		if want := golden(t, d.Kind()); !bytes.Equal(b, want) {
			t.Errorf("%s is now written as\n%s\nand logs have it as\n%s", d.Kind(), b, want)
		}
	}
}

func addGoldens(t *testing.T) {
	if err := os.MkdirAll(goldens, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range samples {
		b, err := Seal(logID, event(d))
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(goldens, d.Kind()+".json"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(b)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		t.Logf("wrote %s", f.Name())
	}
}

// TestEveryKindHasOneGolden also keeps a kind that was written once from being
// dropped: its golden would be left over.
func TestEveryKindHasOneGolden(t *testing.T) {
	files, err := filepath.Glob(goldens + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range files {
		have = append(have, strings.TrimSuffix(filepath.Base(f), ".json"))
	}
	slices.Sort(have)
	if want := Kinds(); !slices.Equal(have, want) {
		t.Errorf("there are golden envelopes of %q\nand the kinds are %q", have, want)
	}
}

func TestGoldensOpenAndSealToTheSameBytes(t *testing.T) {
	for _, kind := range Kinds() {
		b := golden(t, kind)
		log, e, err := Open(b)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		again, err := Seal(log, e)
		if log != logID || e.Data.Kind() != kind || err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s of log %s: opened as %#v and sealed again as %s, error %v", kind, log, e, again, err)
		}
	}
}

// TestEnvelopesAreCloudEvents checks an envelope as a reader of CloudEvents 1.0
// would, who knows nothing of this package.
func TestEnvelopesAreCloudEvents(t *testing.T) {
	for _, kind := range Kinds() {
		var attributes map[string]jsontext.Value
		if err := json.Unmarshal(golden(t, kind), &attributes); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"specversion": `"1.0"`, "id": `"24"`, "source": `"` + logID + `"`, "type": `"` + kind + `"`}
		for name, value := range want {
			if string(attributes[name]) != value {
				t.Errorf("%s: %s is %s, want %s", kind, name, attributes[name], value)
			}
		}
		for name, value := range attributes {
			if name == "data" {
				continue
			}
			plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == "" && len(name) <= 20
			if !plain || value.Kind() != '"' || len(value) == len(`""`) {
				t.Errorf("%s: %s: %s is no CloudEvents attribute of type String", kind, name, value)
			}
		}
		decision := kinds[kind].decision
		if (attributes["cause"] != nil) != decision || (attributes["rules"] != nil) != decision {
			t.Errorf("%s: cause is %s and rules is %s, decision %t", kind, attributes["cause"], attributes["rules"], decision)
		}
	}
}

func TestPeerAndCallAreAttributes(t *testing.T) {
	var v envelope
	if err := json.Unmarshal(golden(t, "call.routed"), &v); err != nil {
		t.Fatal(err)
	}
	if v.Subject != "notes" || v.Call != "local/first" || v.Cause != "23" || v.Rules != "1" {
		t.Errorf("call.routed has %+v", v)
	}
	var none envelope
	if err := json.Unmarshal(golden(t, "service.started"), &none); err != nil {
		t.Fatal(err)
	}
	if none.Subject != "" || none.Call != "" || bytes.Contains(golden(t, "service.started"), []byte(`""`)) {
		t.Errorf("service.started has %+v", none)
	}
}

func TestSubjectLayout(t *testing.T) {
	for _, c := range []struct{ prefix, kind, peer, want string }{
		{"waybill", "era.determined", "notes", "waybill.v1.events." + logID + ".era.determined.notes"},
		{"waybill", "namespace.merged", "", "waybill.v1.events." + logID + ".namespace.merged.-"},
		{"audit.eu", "call.settled", "", "audit.eu.v1.events." + logID + ".call.settled.-"},
	} {
		if got := Subject(c.prefix, logID, c.kind, c.peer); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestSubjectsOfAllKindsHaveSevenTokens holds for whatever a peer may be named.
func TestSubjectsOfAllKindsHaveSevenTokens(t *testing.T) {
	for _, kind := range Kinds() {
		for _, peer := range []string{"", "notes", "a-b_c9"} {
			if peer != "" && !domain.ValidName(peer) {
				t.Fatalf("%q cannot name a peer", peer)
			}
			tokens := strings.Split(Subject("waybill", logID, kind, peer), ".")
			if len(tokens) != 7 || slices.Contains(tokens, "") || strings.ContainsAny(strings.Join(tokens, ""), " *>") {
				t.Errorf("%s of %q is published on %q", kind, peer, tokens)
			}
		}
	}
}
