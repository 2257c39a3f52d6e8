package web

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// legalValue is what a header may carry (RFC 9110, 5.5), and legalName what may
// name one (5.6.2).
var (
	legalValue = regexp.MustCompile(`^([!-~]([ -~\t]*[!-~])?)?$`)
	legalName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// TestEncode has the examples of the specification ("Value Encoding") and the rows
// of its proposal (SEP-2243, "Value Encoding Edge Cases").
func TestEncode(t *testing.T) {
	for value, want := range map[string]string{
		"us-west1":                          "us-west1",
		"us west 1":                         "us west 1",
		"":                                  "=?base64??=",
		"Hello, 世界":                         "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":                          "=?base64?IHBhZGRlZCA=?=",
		" us-west1":                         "=?base64?IHVzLXdlc3Qx?=",
		"us-west1 ":                         "=?base64?dXMtd2VzdDEg?=",
		"line1\nline2":                      "=?base64?bGluZTEKbGluZTI=?=",
		"line1\r\nline2":                    "=?base64?bGluZTENCmxpbmUy?=",
		"\tindented":                        "=?base64?CWluZGVudGVk?=",
		"a\tb":                              "=?base64?YQli?=",
		"a\x7f":                             "=?base64?YX8=?=",
		"a\x00":                             "=?base64?YQA=?=",
		"=?base64?literal?=":                "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?=":                        "=?base64?PT9iYXNlNjQ/PQ==?=",
		"=?base64??=":                       "=?base64?PT9iYXNlNjQ/Pz0=?=",
		"=?BASE64?literal?=":                "=?BASE64?literal?=",
		"=?base64?open":                     "=?base64?open",
		"SGVsbG8=":                          "SGVsbG8=",
		"file:///path/to/file%20name.txt":   "file:///path/to/file%20name.txt",
		"https://example.com/r?id=123":      "https://example.com/r?id=123",
		"a\r\nEvil: 1\r\n\r\nGET / HTTP/1.": "=?base64?" + base64.StdEncoding.EncodeToString([]byte("a\r\nEvil: 1\r\n\r\nGET / HTTP/1.")) + "?=",
	} {
		if got := Encode(value); got != want {
			t.Errorf("%q travels as %q, want %q", value, got, want)
		}
		if got, ok := Decode(want); got != value || !ok {
			t.Errorf("%q is read as %q, %t", want, got, ok)
		}
	}
}

// TestDecodeRefuses what no client may send (specification, "Server Behavior for
// Custom Headers"; SEP-2243, "Base64 Decoding").
func TestDecodeRefuses(t *testing.T) {
	for _, value := range []string{"=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?SGVs\r\nbG8=?=", "=?base64?SGVsbG9=?=", "=?base64?=",
		" a", "a\t", "a\nb", "a\x7f", "é", "a\x00b"} {
		if got, ok := Decode(value); ok || got != "" {
			t.Errorf("%q is read as %q", value, got)
		}
	}
	for value, want := range map[string]string{"a\tb": "a\tb", "SGVsbG8=": "SGVsbG8=", "=?base64?SGVsbG8=": "=?base64?SGVsbG8=",
		"=?BASE64?SGVsbG8=?=": "=?BASE64?SGVsbG8=?=", "=?base64??=": "", "=?base64?SGVsbG8=?=": "Hello"} {
		if got, ok := Decode(value); got != want || !ok {
			t.Errorf("%q is read as %q, %t, want %q", value, got, ok, want)
		}
	}
}

// someText is a text of the characters that the encoding is about.
func someText(r *rand.Rand) string {
	parts := []string{" ", "\t", "\r", "\n", "\x00", "\x7f", "\x80", "é", "世", "a", "Z", "~", "!", "=", "?", "=?base64?", "?=", "=?BASE64?", ":", "\u2028"}
	var b strings.Builder
	for range r.IntN(8) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

// TestEncodedValuesComeBack through the encoder and the reader of headers of the
// standard library: nothing is lost, and nothing becomes another field.
func TestEncodedValuesComeBack(t *testing.T) {
	const seed = 20260728
	r := rand.New(rand.NewPCG(seed, 1))
	for range 20_000 {
		value := someText(r)
		field := Encode(value)
		if !legalValue.MatchString(field) {
			t.Fatalf("seed %d: %q travels as %q, which no header may carry", seed, value, field)
		}
		var wire bytes.Buffer
		if err := (http.Header{NameField: {field}}).Write(&wire); err != nil {
			t.Fatal(err)
		}
		wire.WriteString("\r\n")
		read, err := textproto.NewReader(bufio.NewReader(&wire)).ReadMIMEHeader()
		if err != nil || len(read) != 1 {
			t.Fatalf("seed %d: of %q came %q: %v", seed, value, read, err)
		}
		if back, ok := Decode(read.Get(NameField)); back != value || !ok {
			t.Fatalf("seed %d: %q came back as %q, %t", seed, value, back, ok)
		}
	}
}

// param is a parameter with a path of properties.
func param(name string, path ...string) Param { return Param{ParamPrefix + name, path} }

// TestParamHeaders has every kind of value (specification, "Schema Extension",
// "Value Encoding" and the table of "Client Behavior").
func TestParamHeaders(t *testing.T) {
	params := []Param{param("Owner", "owner"), param("Count", "opts", "count"), param("Deep", "opts", "more", "deep")}
	for _, c := range []struct{ arguments, fields, reason string }{
		{`{"owner":"a","opts":{"count":3}}`, "Owner=a Count=3", ""},
		{`{"opts":{"more":{"deep":true},"count":-7},"owner":false}`, "Owner=false Count=-7 Deep=true", ""},
		{`{"owner":null,"opts":null}`, "", ""},
		{`{"owner":"","opts":{"count":null,"more":[]}}`, "Owner==?base64??=", ""},
		{`{}`, "", ""}, {``, "", ""}, {`null`, "", ""}, {`[{"owner":"a"}]`, "", ""}, {`"owner"`, "", ""},
		{`{"opts":"count"}`, "", ""}, {`{"opts":[{"count":1}]}`, "", ""}, {`{"Owner":"a","count":1,"deep":1}`, "", ""},
		{`{"owner":" 世\r\nEvil: 1 "}`, "Owner==?base64?IOS4lg0KRXZpbDogMSA=?=", ""},
		{`{"\u006fwner":"\u0061\/b"}`, "Owner=a/b", ""},
		{`{"owner":42.0,"opts":{"count":1e2}}`, "Owner=42 Count=100", ""}, // the body's value, whatever was declared
		{`{"opts":{"count":"many"}}`, "Count=many", ""},
		{`{"owner":1.5}`, "", "Mcp-Param-Owner is no integer"},
		{`{"opts":{"count":9007199254740992}}`, "", "Mcp-Param-Count is no integer"},
		{`{"owner":{}}`, "", "Mcp-Param-Owner is an object or a list"},
		{`{"owner":["a"]}`, "", "Mcp-Param-Owner is an object or a list"},
		{`{"owner":"a","owner":"b"}`, "", "name a member twice"},
		{`{"owner":"a","x":`, "", "no JSON text"},
		{`{"owner":"\ud800"}`, "", "no JSON text"},
	} {
		fields, reason := ParamHeaders(params, jsontext.Value(c.arguments))
		var words []string
		for _, f := range fields {
			words = append(words, strings.TrimPrefix(f.Name, ParamPrefix)+"="+f.Value)
		}
		if got := strings.Join(words, " "); got != c.fields || (reason == "") != (c.reason == "") || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %q, %q; want %q, %q", c.arguments, got, reason, c.fields, c.reason)
		}
	}
	if fields, reason := ParamHeaders(nil, jsontext.Value(`{"a":1,"a":2}`)); fields != nil || reason != "" {
		t.Errorf("without parameters there is %q, %q", fields, reason)
	}
}

// TestIntegers (server/tools, "x-mcp-header": the safe range; "Server Validation":
// 42.0 is 42). They are judged by their digits.
func TestIntegers(t *testing.T) {
	zeros := strings.Repeat("0", 1000)
	for number, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "-0e9": "0", "0e999999999999999999999": "0", "7": "7", "-7": "-7", "42.0": "42", "4.2e1": "42", "4.2E+1": "42",
		"1e2": "100", "420e-1": "42", "100": "100", "1e15": "1000000000000000", "9007199254740991": "9007199254740991",
		"-9007199254740991": "-9007199254740991", "9.007199254740991e15": "9007199254740991", "90071992547409910e-1": "9007199254740991",
		"9007199254740992": "", "-9007199254740992": "", "1e16": "", "1e400": "", "1e-1": "", "0.5": "", "42.1": "", "1e999999999999999999999": "",
		"1e-999999999999999999999": "", "9007199254740991.3": "", "1.00000000000000000000001": "", "12345678901234567890": "",
		"0." + zeros + "1e1001": "1", "1" + zeros + "e-1000": "1", "0." + zeros + "1e1000": "",
	} {
		if got, ok := integer(number); got != want || ok != (want != "") {
			t.Errorf("%.40s is %q, %t, want %q", number, got, ok, want)
		}
	}
	const seed = 53
	r := rand.New(rand.NewPCG(seed, 2))
	bound := big.NewRat(safeInteger, 1)
	for range 20_000 {
		number := fmt.Sprintf("%s%d.%0*de%d", []string{"", "-"}[r.IntN(2)], r.Int64N(1<<r.IntN(60)), 1+r.IntN(4), r.IntN(10)*[]int{0, 1, 10}[r.IntN(3)], r.IntN(24)-8)
		exact, _ := new(big.Rat).SetString(number)
		want := ""
		if exact.IsInt() && new(big.Rat).Abs(exact).Cmp(bound) <= 0 {
			want = exact.Num().String()
		}
		if got, _ := integer(number); got != want {
			t.Fatalf("seed %d: %s is %q, want %q", seed, number, got, want)
		}
	}
}

// BenchmarkParamHeaders is a hostile tool: 2000 parameters, mirrored from a MiB of
// arguments, which are read once for all of them.
func BenchmarkParamHeaders(b *testing.B) {
	var params []Param
	for i := range 2000 {
		params = append(params, param(fmt.Sprint("P", i), "a", fmt.Sprint("p", i)))
	}
	arguments := jsontext.Value(`{"a":{"p7":1,"p1999":"x","rest":"` + strings.Repeat("y", 1<<20) + `"}}`)
	b.SetBytes(int64(len(arguments)))
	for b.Loop() {
		fields, reason := ParamHeaders(params, arguments)
		if reason != "" || !slices.Equal(fields, []Header{{"Mcp-Param-P7", "1"}, {"Mcp-Param-P1999", "x"}}) {
			b.Fatalf("%q, %s", fields, reason)
		}
	}
}
