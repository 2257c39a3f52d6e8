package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// secretForms are the ways in which a peer may say a secret, by name.
var secretForms = map[string]func(string) string{
	"itself":     func(s string) string { return s },
	"JSON":       escapedJSON,
	"hex":        func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":        func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"percent":    func(s string) string { return eachByte("%%%02x", s) },
	"std 0":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"std 1":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte("u" + s + "?")) },
	"std 2":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte("u:" + s + "??")) },
	"url 0":      func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"url 1":      func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("u" + s)) },
	"url 2":      func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("u:" + s)) },
	"MIME":       func(s string) string { return mimeLines(s, 0) },
	"MIME 1":     func(s string) string { return mimeLines(s, 40) },
	"MIME 2":     func(s string) string { return mimeLines(s, 47) },
	compressed:   func(s string) string { return base64.StdEncoding.EncodeToString(gzipped(s)) },
	"in a login": func(s string) string { return "https://user:" + eachByte("%%%02X", s) + "@host.example/" },
}

// compressed names the form that cannot be found by value.
const compressed = "gzip"

// escapedJSON writes every character as \uNNNN; what is no UTF-8 is left out.
func escapedJSON(s string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(strings.ToValidUTF8(s, ""))) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	return b.String()
}

func eachByte(format, s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// mimeLines is base64 in lines of 76, behind so many other bytes.
func mimeLines(s string, before int) string {
	text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", before) + s))
	var b strings.Builder
	for i := 0; i < len(text); i += 76 {
		b.WriteString(text[i:min(i+76, len(text))] + "\r\n")
	}
	return b.String()
}

func gzipped(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.Bytes()
}

// secretPeer says secrets wherever a peer can say something. It gets a mode and
// the file with the secrets, JSON strings in base64, since some are no text.
func secretPeer(args []string) int {
	b, err := os.ReadFile(args[1])
	var coded [][]byte
	if err == nil {
		err = json.Unmarshal(b, &coded)
	}
	if err != nil {
		return 1
	}
	p := &secretScript{mode: args[0]}
	for _, c := range coded {
		p.secrets = append(p.secrets, string(c))
	}
	p.chatter()
	for lines := bufio.NewReader(os.Stdin); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0
		}
		var m rpc
		if json.Unmarshal([]byte(line), &m) == nil && m.ID != nil && !p.take(m) {
			return 3
		}
	}
}

type secretScript struct {
	mode    string
	secrets []string
	pages   int
}

// all says every secret in every form.
func (p *secretScript) all() []string {
	var out []string
	for _, s := range p.secrets {
		for name, form := range secretForms {
			if utf8.ValidString(s) || name != "itself" && name != "JSON" {
				out = append(out, form(s))
			}
		}
	}
	return out
}

// text is all of it as a JSON string; escaped once more it is still the same.
func (p *secretScript) text() string { return jsonText(strings.Join(p.all(), " | ")) }

// jsonText quotes s as JSON, and what is no UTF-8 as it is.
func jsonText(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < 0x20 || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\u%04X`, c)
			continue
		}
		b.WriteByte(c)
	}
	return `"` + strings.ToValidUTF8(b.String(), "?") + `"`
}

// raw is a JSON string with a text that is JSON's escapes already.
func (p *secretScript) raw() string { return `"` + escapedJSON(strings.Join(p.secrets, " ")) + `"` }

// chatter is said without being asked, on both outputs.
func (p *secretScript) chatter() {
	fmt.Fprintln(os.Stderr, strings.Join(p.all(), "\n"))
	for _, s := range p.secrets {
		fmt.Fprintf(os.Stderr, "%q\n", s)
	}
	if p.mode == "stray" { // what shows modern behaviour closes it
		p.say(`{"jsonrpc":"2.0","id":` + p.raw() + `,"result":{"supportedVersions":` + p.raw() + `}}`)
		p.say(`{"jsonrpc":"2.0","id":77,"error":{"code":-32022,"message":` + p.text() + `,"data":{"supported":[` + p.raw() + `]}}}`)
	}
	if p.mode != "spill" && p.mode != "old" {
		return
	}
	p.say(`no JSON: ` + strings.ReplaceAll(strings.Join(p.secrets, " "), "\n", " "))
	p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":` + p.text() + `}}`)
	p.say(`{"jsonrpc":"2.0","method":` + p.raw() + `,"params":{}}`)
	p.say(`{"jsonrpc":"2.0","id":` + p.raw() + `,"method":"roots/list","params":{"a":` + p.text() + `}}`)
}

func (p *secretScript) say(line string) { fmt.Println(line) }

func (p *secretScript) result(m rpc, result string) {
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

func (p *secretScript) fail(m rpc, code int, data string) {
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s,"data":%s}}`, m.ID, code, p.text(), data))
}

// take answers; false ends the process.
func (p *secretScript) take(m rpc) bool {
	switch {
	case m.Method == "server/discover":
		return p.discover(m)
	case m.Method == "initialize" && p.mode == "older":
		p.result(m, `{"protocolVersion":`+p.raw()+`,"capabilities":{},"serverInfo":{"name":"n","version":"1"}}`)
	case m.Method == "initialize":
		p.result(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":`+p.raw()+`,"version":`+p.text()+`}}`)
	case m.Method == "tools/list":
		p.list(m)
	case m.Method == "tools/call":
		return p.call(m)
	default:
		p.fail(m, -32601, p.raw())
	}
	return true
}

func (p *secretScript) discover(m rpc) bool {
	kind := `"resultType":"complete",`
	switch p.mode {
	case "spill":
		p.result(m, `{`+kind+`"supportedVersions":["2026-07-28",`+p.raw()+`],"capabilities":{"tools":{},`+p.raw()+`:{}},"serverInfo":{"name":`+
			p.text()+`,"version":`+p.raw()+`},"instructions":`+p.text()+`,`+p.raw()+`:1,"ttlMs":60000,"cacheScope":"public"}`)
	case "versions":
		p.result(m, `{`+kind+`"supportedVersions":[`+p.raw()+`],"capabilities":{},"serverInfo":{"name":"n","version":"1"}}`)
	case "capable":
		p.fail(m, -32021, `{"requiredCapabilities":{`+p.raw()+`:{}}}`)
	case "revision":
		p.fail(m, -32022, `{"supported":[`+p.raw()+`],"requested":`+p.text()+`}`)
	case "gone":
		p.say(`half a line ` + strings.Join(p.secrets[:1], ""))
		return false
	default: // old, older
		p.fail(m, -32601, p.raw())
	}
	return true
}

// list is an empty page that goes on under a secret, and a second one. The names
// are valid as far as the form of a secret is.
func (p *secretScript) list(m rpc) {
	tools := []string{}
	for i, s := range p.secrets {
		for _, name := range []string{s, secretForms["hex"](s), secretForms["url 0"](s), fmt.Sprintf("t%d", i)} {
			tools = append(tools, `{"name":`+jsonText(name)+`,"description":`+p.raw()+`,"inputSchema":{"type":"object","properties":{`+
				p.raw()+`:{"enum":[`+p.raw()+`]}}},"outputSchema":`+jsonText(s)+`}`)
		}
	}
	tools = append(tools, `{"name":"tells","description":`+p.text()+`,"inputSchema":{"type":"object"}}`)
	for _, name := range []string{"spill", "fails", "rpc", "ask", "odd", "vast", "die"} {
		tools = append(tools, `{"name":"`+name+`","title":`+p.raw()+`,"inputSchema":{"type":"object"}}`)
	}
	if p.pages++; p.pages == 1 {
		p.result(m, `{"resultType":"complete","nextCursor":`+p.raw()+`,"tools":[]}`)
		return
	}
	p.result(m, `{"resultType":"complete","ttlMs":1,"cacheScope":`+p.raw()+`,"tools":[`+strings.Join(tools, ",")+`],"_meta":{`+p.raw()+`:`+p.text()+`}}`)
}

func (p *secretScript) call(m rpc) bool {
	if m.Params.Meta.Token != nil {
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(m.Params.Meta.Token) + `,"progress":1,"message":` + p.text() + `}}`)
	}
	text := `"content":[{"type":"text","text":` + p.text() + `}],"structuredContent":{` + p.raw() + `:1}`
	switch m.Params.Name {
	case "fails":
		p.result(m, `{"resultType":"complete","isError":true,`+text+`}`)
	case "rpc":
		p.fail(m, -32603, `{`+p.raw()+`:`+p.text()+`}`)
	case "ask":
		p.result(m, `{"resultType":"input_required","inputRequests":{`+p.raw()+`:{"method":`+p.raw()+`,"params":{"message":`+p.text()+`}}},"requestState":`+p.raw()+`}`)
	case "odd":
		p.result(m, `{"resultType":`+p.raw()+`,`+text+`}`)
	case "vast":
		p.result(m, `{"resultType":"complete","content":[{"type":"text","text":"`+strings.Repeat("x", 2<<20)+strings.Trim(p.text(), `"`)+`"}]}`)
	case "die":
		p.chatter()
		return false
	default:
		p.chatter()
		p.result(m, `{"resultType":"complete",`+text+`}`)
	}
	return true
}
