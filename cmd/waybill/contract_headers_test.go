package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
)

// The headers of a message in the stream are those of docs/asyncapi.yaml. What the
// publisher tells the server of its expectations is none of a reader's business.
func TestEventsHaveTheHeadersOfTheDocument(t *testing.T) {
	content, err := os.ReadFile("../../docs/asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
				Required   []string
			}
		}
	}
	if err := yaml.Unmarshal(content, &doc); err != nil {
		t.Fatal(err)
	}
	said := doc.Components.Schemas["EventHeaders"]
	w := newWorld(t, "", peerYAML{name: "one", mode: "modern"}).ready()
	w.serve()
	run := decode[struct{ URL, Log string }](t, w.runFile())
	events, err := w.js(run.URL).OrderedConsumer(t.Context(), bus.StreamName(run.Log), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for seq := range 3 {
		msg, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for name := range msg.Headers() {
			if !strings.HasPrefix(name, "Nats-Expected-") {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		for _, name := range got {
			if said.Properties[name] == nil {
				t.Errorf("event %d has the header %s, which the document does not name", seq+1, name)
			}
		}
		for _, name := range said.Required {
			if !slices.Contains(got, name) {
				t.Errorf("event %d has no header %s, only %v", seq+1, name, got)
			}
		}
	}
	if len(said.Required) == 0 {
		t.Error("the document names no header of events")
	}
}
