package config

import (
	"slices"
	"testing"
	"time"
)

// badPayloads are the mistakes about payloads.
var badPayloads = []mistake{
	{"payloads", "payloads: some\n" + peers, 1, "payloads", `"some" is not one of none, full`},
	{"payload_retention", "payload_retention: 30 days\n" + peers, 1, "payload_retention", "must be a duration"},
	{"payload_retention is short", "payload_retention: 1s\n" + peers, 1, "payload_retention", "must be from 1m to "},
	{"payload_retention of no days", "payload_retention: d\n" + peers, 1, "payload_retention", "must be a duration"},
}

func TestAPeerSaysWhetherItsPayloadsAreKeptOrTheFileDoes(t *testing.T) {
	const two = "peers:\n  a: {command: x}\n  b: {command: x, payloads: "
	for text, want := range map[string][]bool{
		two + "none}\n":                      {false, false},
		two + "full}\n":                      {false, true},
		"payloads: none\n" + two + "full}\n": {false, true},
		"payloads: full\n" + two + "none}\n": {true, false},
		"payloads: full\n" + two + "full}\n": {true, true},
	} {
		f := mustLoad(t, text)
		c := f.Domain(nil, environment(nil))
		got := []bool{c.Peers[0].Keep, c.Peers[1].Keep}
		if !slices.Equal(got, want) || f.Keeps() != slices.Contains(want, true) {
			t.Errorf("%q: kept %v, any %t", text, got, f.Keeps())
		}
	}
}

func TestThePayloadRetention(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"": 30 * day, "payload_retention: 7d\n": 7 * day, "payload_retention: 90m\n": 90 * time.Minute, "payload_retention: 0\n": 0,
		"payload_retention: 0d\n": 0,
	} {
		f := mustLoad(t, text+peers)
		if f.Retention != want || f.Domain(nil, environment(nil)).Retention != want.Milliseconds() {
			t.Errorf("%q: %s", text, f.Retention)
		}
	}
}
