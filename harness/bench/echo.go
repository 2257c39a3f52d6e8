package bench

import (
	"bufio"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Arguments are those of every call that is measured.
const Arguments = `{"owner":"acme","repo":"widgets","title":"hello","body":"` +
	"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz" +
	"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz" + `"}`

// Tool is the one that Echo has.
const Tool = "echo"

type message struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params struct {
		Arguments jsontext.Value `json:"arguments"`
	} `json:"params"`
}

// Echo is an MCP server of the modern era with one tool, which answers with its
// arguments, as fast as a small program can. It returns when in ends.
func Echo(in io.Reader, out io.Writer) error {
	r, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriterSize(out, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var m message
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}`+"\n", m.ID, m.result())
		if r.Buffered() > 0 {
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

func (m message) result() string {
	const fresh = `"ttlMs":3600000,"cacheScope":"public"`
	switch m.Method {
	case "server/discover":
		return `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` + fresh
	case "tools/list":
		return `"tools":[{"name":"` + Tool + `","inputSchema":{"type":"object"}}],` + fresh
	}
	return `"content":[],"structuredContent":` + string(m.Params.Arguments)
}
