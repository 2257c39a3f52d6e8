//go:build interop

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func init() { testPeers["go-sdk-http"] = goSDKServer }

// goSDKServer is a server of the official Go SDK over HTTP, stateless or stateful.
// It says on standard output where it is and what became of its calls, and ends with
// its standard input. Its tools are those of modern-http.mjs.
func goSDKServer(args []string) int {
	s := mcp.NewServer(&mcp.Implementation{Name: "interop-go-sdk", Version: "1.0.0"}, nil)
	plainTools(s)
	labelled(s, "Place")
	s.AddTool(&mcp.Tool{Name: "relabel", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			labelled(s, "Town")
			return sdkSays("relabelled"), nil
		})
	s.AddTool(&mcp.Tool{Name: "grow", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.AddTool(&mcp.Tool{Name: "added", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return sdkSays("here"), nil })
			return sdkSays("grown"), nil
		})
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: args[0] == "stateless", PropagateRequestCancellation: true})
	fmt.Printf("at http://%s/mcp\n", at.Addr())
	go http.Serve(at, handler) // ends with the process
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return 1
	}
	return 0
}

func sdkSays(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// labelled adds the tool whose arguments also stand in headers. The SDK refuses a
// call whose headers are not those that its schema asks for.
func labelled(s *mcp.Server, place string) {
	schema := fmt.Sprintf(`{"type":"object","required":["place"],"properties":{"place":{"type":"string","x-mcp-header":%q},
		"grams":{"type":"integer","x-mcp-header":"Grams"},"fresh":{"type":"boolean","x-mcp-header":"Fresh"},"note":{"type":"string"}}}`, place)
	s.AddTool(&mcp.Tool{Name: "weigh", InputSchema: json.RawMessage(schema)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var a struct {
				Place string
				Grams json.Number
				Fresh bool
			}
			err := json.Unmarshal(r.Params.Arguments, &a)
			return sdkSays(fmt.Sprintf("%s %s %v", a.Place, a.Grams, a.Fresh)), err
		})
}

func plainTools(s *mcp.Server) {
	type text struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "shout"}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		return sdkSays(strings.ToUpper(in.Text)), nil, nil
	})
	type number struct {
		To int `json:"to"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "count"}, func(ctx context.Context, r *mcp.CallToolRequest, in number) (*mcp.CallToolResult, any, error) {
		for i := range in.To {
			p := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(in.To)}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, nil, err
			}
		}
		return sdkSays(fmt.Sprintf("counted to %d", in.To)), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Println("waiting")
		<-ctx.Done()
		fmt.Println("given up")
		return sdkSays("nobody reads this"), nil, nil
	})
}

// foreign is a server that others wrote, in a process of its own. What it writes is kept.
type foreign struct {
	t   *testing.T
	out *syncBuffer
}

// startForeign starts a server. It ends with its standard input, or is killed.
func startForeign(t *testing.T, env []string, name string, args ...string) *foreign {
	t.Helper()
	o := &foreign{t: t, out: &syncBuffer{}}
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = o.out, o.out
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, o.out)
		}
	})
	return o
}

// says waits until the server has written something.
func (o *foreign) says(what string) {
	o.t.Helper()
	eventually(o.t, fmt.Sprintf("the server says %q", what), func() bool { return strings.Contains(o.out.String(), what) })
}

// url waits until the server says where it is.
func (o *foreign) url() string {
	o.t.Helper()
	o.says("/mcp\n")
	_, rest, _ := strings.Cut(o.out.String(), "at http")
	url, _, _ := strings.Cut(rest, "\n")
	return "http" + url
}
