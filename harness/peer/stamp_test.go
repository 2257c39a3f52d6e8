package peer

import (
	"encoding/json"
	"reflect"
	"testing"

	"waybill/domain"
)

// The peer writes down what it read: these are the bytes on the pipe, not those of a function.
func TestThePeerReadsAStampOnEveryModernRequestAndNoneOnALegacyOne(t *testing.T) {
	b := started(t, nil, "skip 7", "untilEOF")
	b.discover()
	b.ask(domain.Send{Method: domain.MethodInitialize, Era: domain.EraUnknown, Version: "2025-11-25"}, "")
	b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraModern, Cursor: new(string)}, "")
	b.call(`{"a":1}`)
	b.ask(domain.Send{Method: domain.MethodList, Era: domain.EraLegacy, Version: "2025-11-25"}, "")
	b.ask(domain.Send{Method: domain.MethodCall, Era: domain.EraLegacy, Version: "2025-11-25", Call: "h/c", Tool: "t"}, "")
	b.legacy()

	client := map[string]any{"name": "waybill", "version": "1.2.3"}
	stamp := map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{}, "io.modelcontextprotocol/clientInfo": client}
	want := []map[string]any{
		{"method": "server/discover", "id": 1.0, "params": map[string]any{"_meta": stamp}},
		{"method": "initialize", "id": 2.0, "params": map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": client}},
		{"method": "tools/list", "id": 3.0, "params": map[string]any{"cursor": "", "_meta": stamp}},
		{"method": "tools/call", "id": 4.0, "params": map[string]any{"name": "tool", "arguments": map[string]any{"a": 1.0}, "_meta": stamp}},
		{"method": "tools/list", "id": 5.0, "params": map[string]any{}},
		{"method": "tools/call", "id": 6.0, "params": map[string]any{"name": "t", "arguments": map[string]any{}}},
		{"method": "notifications/initialized"},
	}
	for i, line := range b.notes(len(want)) {
		want[i]["jsonrpc"] = "2.0"
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("line %d is %s", i+1, line)
		}
	}
}
