package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Kinds are the peers that Serve knows.
var Kinds = []string{"notes", "library", "archive"}

// Serve is one peer on standard input and output, until its input ends.
func Serve(ctx context.Context, kind string) error {
	switch kind {
	case "notes":
		return serveSDK(ctx, kind, notesTools)
	case "library":
		return serveSDK(ctx, kind, libraryTools)
	case "archive":
		return serveLegacy(os.Stdin, os.Stdout)
	}
	return fmt.Errorf("no demo peer is called %q; there are %s", kind, strings.Join(Kinds, ", "))
}

func serveSDK(ctx context.Context, name string, add func(*mcp.Server)) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "demo-" + name, Version: "1.0.0"}, nil)
	add(s)
	return s.Run(ctx, &mcp.StdioTransport{})
}

type query struct {
	Query string `json:"query" jsonschema:"words to look for"`
}

func say(format string, v ...any) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, v...)}}}, nil, nil
}

func notesTools(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "search", Description: "Search the notes."},
		func(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, any, error) {
			return say("notes: 2 notes mention %q", q.Query)
		})
	type note struct {
		Text string `json:"text" jsonschema:"the note"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add_note", Description: "Add a note."},
		func(_ context.Context, _ *mcp.CallToolRequest, n note) (*mcp.CallToolResult, any, error) {
			return say("notes: kept %d characters", len(n.Text))
		})
}

func libraryTools(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "search", Description: "Search the library."},
		func(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, any, error) {
			return say("library: 7 books mention %q", q.Query)
		})
	type loan struct {
		Book string `json:"book" jsonschema:"the title"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "lend", Description: "Lend a book."},
		func(_ context.Context, _ *mcp.CallToolRequest, l loan) (*mcp.CallToolResult, any, error) {
			return say("library: %q is yours for two weeks", l.Book)
		})
}

// message is JSON-RPC as the hand-written peer needs it.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   any             `json:"error,omitempty"`
}

// serveLegacy speaks 2025-11-25 and nothing else: it has never heard of
// server/discover.
func serveLegacy(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := message{JSONRPC: "2.0", ID: m.ID}
		if answer.Result = legacyResult(m); answer.Result == nil {
			answer.Error = map[string]any{"code": -32601, "message": "method not found"}
		}
		b, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

func legacyResult(m message) any {
	switch m.Method {
	case "initialize":
		return map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "demo-archive", "version": "0.9.0"}}
	case "ping":
		return map[string]any{}
	case "tools/list":
		return map[string]any{"tools": []any{map[string]any{"name": "fetch_record", "description": "Fetch an old record.",
			"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"number": map[string]any{"type": "integer"}}}}}}
	case "tools/call":
		var p struct {
			Arguments struct {
				Number json.Number `json:"number"`
			} `json:"arguments"`
		}
		if json.Unmarshal(m.Params, &p) != nil {
			return nil
		}
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": "archive: record " + p.Arguments.Number.String()}}}
	}
	return nil
}
