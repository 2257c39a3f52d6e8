package domain

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// frameSeeds are the frames of the probe table, with an id put in.
func frameSeeds() [][]byte {
	var out [][]byte
	for _, x := range driveFrames() {
		out = append(out, []byte(`{"jsonrpc":"2.0","id":1,`+x.members+`}`))
	}
	for _, s := range []string{discoverResult, legacyResult, notFound, toolList("a", "b"), listPage(next(`""`), "a", "a", "bad name"), "\xef\xbb\xbf{}",
		`[{"jsonrpc":"2.0"}]`, `{"id":1e0}`, `{"id":"1","id":1}`, `{"result":{"a":{"b":[1,2,{"c":null}]}}}`, "{\"a\":\"\xff\"}", `{"a":"\ud83d"}`} {
		out = append(out, []byte(strings.ReplaceAll(s, "$ID", "1")))
	}
	return out
}

// FuzzClassify: what an answer means never panics, follows from its bytes alone,
// and the classes keep apart what must be kept apart.
func FuzzClassify(f *testing.F) {
	for _, s := range frameSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		d, i := ClassifyDiscover(frame), ClassifyInitialize(frame, LegacyRevisions)
		if !reflect.DeepEqual(d, ClassifyDiscover(frame)) || i != ClassifyInitialize(frame, LegacyRevisions) {
			t.Fatalf("classified twice, it came out differently: %+v %+v", d, i)
		}
		modern := ModernEvidence(frame)
		switch d.Kind {
		case DiscoverValid, DiscoverVersionRefused, DiscoverCapabilityMissing, DiscoverHeaderMismatch:
			if !modern {
				t.Errorf("%q is modern as an answer, but no evidence", frame)
			}
		case DiscoverAmbiguousError, DiscoverAmbiguousEmpty:
			if modern {
				t.Errorf("%q is ambiguous and evidence at once", frame)
			}
		}
		if i.Code == "" && (modern || !contains(LegacyRevisions, i.Revision)) {
			t.Errorf("%q selects legacy %q; modern evidence %t", frame, i.Revision, modern)
		}
		if ClassifyInitialize(frame, nil).Code == "" {
			t.Errorf("%q selects a revision that is not configured", frame)
		}
		if len(d.Signal) > 120 || len(i.Signal) > 300 || strings.ContainsAny(d.Signal+i.Signal, "\n\r\x00") {
			t.Errorf("signals %q and %q do not fit a sentence", d.Signal, i.Signal)
		}
		settleAnswer(t, frame)
	})
}

func settleAnswer(t *testing.T, frame []byte) {
	if m, err := ParseMessage(frame); err == nil {
		a := ReadAnswer(m)
		f, value := a.Facts, a.Value
		if status, _, ran := f.settle(EraModern); status == "" || ran == "" || (f.Kind == FactBroken) != (value == nil) {
			t.Errorf("%q settles as %q, %q with %q", frame, status, ran, value)
		}
	}
}

// FuzzParseCall: what a host sends is read or refused, and arguments are bytes
// of it.
func FuzzParseCall(f *testing.F) {
	f.Add([]byte(`{"tool":"t","arguments":{"n":9007199254740993},"call_id":"c","generation":1,"timeout_ms":5}`))
	f.Add([]byte(`{"tool":"t","tool":"u"}`))
	f.Add([]byte(`{"tool":"","arguments":null}`))
	f.Add([]byte(`{"tool":"t","call_id":"c","limit_ms":9,"wait_ms":1,"progress":true,"capabilities":{"roots":{}},"inputResponses":{"a":{}},"requestState":"s"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, problem := ParseCall(b)
		if problem == "" && (r.Tool == "" || len(r.Tool) > 256 || r.Timeout < 0 || r.Timeout > MaxTimeout || r.Generation < 0) {
			t.Errorf("%q was read as %+v", b, r)
		}
		if !isObject(r.Arguments) || string(r.Arguments) != "{}" && !bytes.Contains(b, r.Arguments) {
			t.Errorf("arguments %q of %q", r.Arguments, b)
		}
		if problem == "" && (r.Wait < 0 || r.Wait > MaxTimeout || r.Limit > MaxTimeout || r.Limit != 0 && r.Limit < r.Timeout ||
			r.Continues() && r.CallID == "" || len(r.Capabilities) > maxCapabilities) {
			t.Errorf("%q was read as %+v", b, r)
		}
		for _, v := range [][]byte{r.Capabilities, r.InputResponses, r.RequestState} {
			if !bytes.Contains(b, v) {
				t.Errorf("%q is no part of %q", v, b)
			}
		}
		if strings.ContainsAny(problem, "\n\r\x00") || len(problem) > 200 {
			t.Errorf("problem %q does not fit a sentence", problem)
		}
	})
}
