package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	stdjson "encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
)

func TestSecretsAreReplacedInEveryForm(t *testing.T) {
	secret := `k/ey"1<2>&` + "\n" + `\ü!`
	quote := func(s string) string {
		b, err := stdjson.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ascii := strings.ReplaceAll(quote(secret), "ü", `\u00fc`)
	std, urlSafe := base64.StdEncoding, base64.RawURLEncoding
	for _, c := range []struct{ name, in, want string }{
		{"text", "before " + secret + " after", "before [redacted] after"},
		{"twice", secret + secret, "[redacted][redacted]"},
		{"JSON", `{"a": ` + quote("x "+secret) + `, "b": 1.50}`, `{"a": "x [redacted]", "b": 1.50}`},
		{"JSON with every escape", `{"a":` + strings.ReplaceAll(ascii, "/", `\/`) + `}`, `{"a":"[redacted]"}`},
		{"JSON escaped letter by letter", `["` + strings.ReplaceAll(ascii[1:len(ascii)-1], "k", `\u006b`) + `"]`, `["[redacted]"]`},
		{"JSON inside JSON", `{"text":` + quote(`{"a":`+quote(secret)+`}`) + `}`, `{"text":"{\"a\":\"[redacted]\"}"}`},
		{"a name of JSON", `{` + quote(secret) + `:1}`, `{"[redacted]":1}`},
		{"escaped in text", "log: " + quote(secret), `log: "[redacted]"`},
		{"base64", `{"a":"` + std.EncodeToString([]byte(secret)) + `"}`, `{"a":"[redacted]"}`},
		{"base64 at one", "Basic " + std.EncodeToString([]byte("u:"+secret+"??")) + " x", "Basic [redacted] x"},
		{"base64 at two", "k=" + urlSafe.EncodeToString([]byte("u"+secret)) + ";", "k=[redacted];"},
		{"URL", "q=k%2Fey%221%3C2%3E%26%0A%5C%C3%BC%21&x=1", "q=[redacted]&x=1"},
		{"URL in small letters", "q=" + strings.ToLower("k%2Fey%221%3C2%3E%26%0A%5C%C3%BC%21") + "&x=1", "q=[redacted]&x=1"},
		{"URL byte by byte", "q=" + everyByte("%%%02x", secret), "q=[redacted]"},
		{"URL twice", "q=" + strings.ReplaceAll(url.QueryEscape(secret), "%", "%25"), "q=[redacted]"},
		{"hex", `{"a":"<` + hex.EncodeToString([]byte(secret)) + `>"}`, `{"a":"<[redacted]>"}`},
		{"hex in capitals", everyByte("%02X", secret) + "!", "[redacted]!"},
		{"hex in lines", everyByte("%02x\n", secret), "[redacted]\n"},
		{"bytes as languages show them", "b'" + everyByte(`\x%02x`, secret) + "'", "b'[redacted]'"},
		{"HTML", "<" + html.EscapeString(secret) + ">", "<[redacted]>"},
		{"base64 in lines", `{"a":"Key: ` + strings.ReplaceAll(inLines(std.EncodeToString([]byte(strings.Repeat("-", 30)+secret))), "\n", `\r\n`) + `"}`, `{"a":"Key: [redacted]"}`},
		{"base64 of JSON", std.EncodeToString([]byte(`{"a":` + quote(secret) + `}`)), "[redacted]"},
		{"base64 with its slashes escaped", `{"a":"` + strings.ReplaceAll(std.EncodeToString([]byte(secret)), "/", `\/`) + `"}`, `{"a":"[redacted]"}`},
		{"base64 in a URL", "a=" + url.QueryEscape(std.EncodeToString([]byte(secret+"?"))) + "&b", "a=[redacted]&b"},
		{"nothing", `{"a":"\u00e9"}`, `{"a":"\u00e9"}`},
	} {
		got := string(New([]string{secret}).Redact([]byte(c.in)))
		if got != c.want {
			t.Errorf("%s: %s gives %s, want %s", c.name, c.in, got, c.want)
		}
	}
}

func TestRedactionKeepsJSONValid(t *testing.T) {
	for _, c := range []struct{ name, secret, in, want string }{
		{"a number", "12345678", `{"n":12345678,"m":1}`, `{"n":"[redacted]","m":1}`},
		{"a part of a number", "23456789", `[-1.23456789e5]`, `["[redacted]"]`},
		{"across values", `true,"a":`, `{"b":true,"a":1}`, `"[redacted]"`},
		{"across values, deeper", `"key": "`, `{"a":[1,{"key": "x","b":2}],"c":{"d":"key"}}`, `{"a":[1,"[redacted]"],"c":{"d":"key"}}`},
		{"an object", `{"key":"v"}`, `[{"a":{"key":"v"}},"{\"key\":\"v\"}"]`, `[{"a":"[redacted]"},"[redacted]"]`},
		{"half an escape", `nabcdefgh`, `["\nabcdefgh","\\nabcdefgh"]`, `["[redacted]","\\[redacted]"]`},
		{"half a long escape", `0041bcdefgh`, `["x\u0041bcdefgh"]`, `["x[redacted]"]`},
		{"the whole", `{"a":12345}`, `{"a":12345}`, `"[redacted]"`},
		{"names that become one", "secret-one", `{"secret-one":1,"secret\u002done":2}`, ""},
		{"spelt with backslash", `a\nb\nc\nd`, `"a\nb\nc\nd"`, `"[redacted]"`},
		{"overlap with the replacement", "]aaaaaaaa", `"secret-2aaaaaaaa"`, ""},
	} {
		r := New([]string{c.secret, "secret-2"})
		got := r.Redact([]byte(c.in))
		if !stdjson.Valid(got) || bytes.Contains(got, []byte(c.secret)) || c.want != "" && string(got) != c.want {
			t.Errorf("%s: %s gives %s, want %s", c.name, c.in, got, c.want)
		}
	}
}

func TestWithoutAFindTheInputItselfComesBack(t *testing.T) {
	in := []byte(`{"text":"nothing \u0041 to see"}`)
	for name, r := range map[string]*Redactor{
		"nil": nil, "zero": {}, "no secrets": New(nil), "other": New([]string{"hunter2hunter2"}),
		"unfit": New([]string{"nothing", "redacted"}),
	} {
		if out := r.Redact(in); &out[0] != &in[0] || len(out) != len(in) {
			t.Errorf("%s: the input was copied or changed: %s", name, out)
		}
	}
}

func TestRedactNeverChangesItsInput(t *testing.T) {
	in := []byte("a hunter2hunter2 b")
	New([]string{"hunter2hunter2"}).Redact(in)
	if string(in) != "a hunter2hunter2 b" {
		t.Errorf("the input is now %s", in)
	}
}

func TestASecretWithALineEndIsFoundWithoutIt(t *testing.T) {
	got := New([]string{"hunter2hunter2\n"}).Redact([]byte("Bearer hunter2hunter2;"))
	if string(got) != "Bearer [redacted];" {
		t.Errorf("got %s", got)
	}
}

// A value of several lines is often logged line by line.
func TestEachLineOfASecretIsOne(t *testing.T) {
	pem := "-----BEGIN KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ\nshort\n-----END KEY-----\n"
	in := "1: -----BEGIN KEY-----\n2: MC4CAQAwBQYDK2VwBCIEIJ\n3: short\n"
	want := "1: -----BEGIN KEY-----\n2: [redacted]\n3: short\n"
	for _, secret := range []string{pem, strings.ReplaceAll(pem, "\n", `\n`)} {
		if got := string(New([]string{secret}).Redact([]byte(in))); got != want {
			t.Errorf("%q: got %q", secret, got)
		}
	}
}

// Of two secrets of which one begins the other, nothing of either is left.
func TestASecretThatBeginsAnother(t *testing.T) {
	got := New([]string{"hunter2hunter2", "hunter2hunter2-and-more"}).Redact([]byte("a hunter2hunter2-and-more b hunter2hunter2 c"))
	if string(got) != "a [redacted] b [redacted] c" {
		t.Errorf("got %s", got)
	}
}

func everyByte(format, s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func inLines(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i += 20 {
		b.WriteString(s[i:min(i+20, len(s))] + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
