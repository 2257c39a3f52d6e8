package redact

import (
	"bytes"
	"encoding/base64"
	stdjson "encoding/json"
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
		{"JSON inside JSON", `{"text":` + quote(`{"a":`+quote(secret)+`}`) + `}`, `{"text":"[redacted]"}`},
		{"a name of JSON", `{` + quote(secret) + `:1}`, `{"[redacted]":1}`},
		{"escaped in text", "log: " + quote(secret), "[redacted]"},
		{"base64", `{"a":"` + std.EncodeToString([]byte(secret)) + `"}`, `{"a":"[redacted]"}`},
		{"base64 at one", "Basic " + std.EncodeToString([]byte("u:"+secret+"??")) + " x", "Basic [redacted] x"},
		{"base64 at two", "k=" + urlSafe.EncodeToString([]byte("u"+secret)) + ";", "k=[redacted];"},
		{"URL", "q=k%2Fey%221%3C2%3E%26%0A%5C%C3%BC%21&x=1", "q=[redacted]&x=1"},
		{"nothing", `{"a":"\u00e9"}`, `{"a":"\u00e9"}`},
	} {
		got := string(New([]string{secret}).Redact([]byte(c.in)))
		whole := c.want == "[redacted]" && strings.Contains(got, Word) && !strings.Contains(got, secret)
		inside := c.name == "JSON inside JSON" && got == `{"text":"{\"a\":\"[redacted]\"}"}`
		if got != c.want && !whole && !inside {
			t.Errorf("%s: %s gives %s, want %s", c.name, c.in, got, c.want)
		}
	}
}

func TestRedactionKeepsJSONValid(t *testing.T) {
	for _, c := range []struct{ name, secret, in, want string }{
		{"a number", "12345678", `{"n":12345678,"m":1}`, `{"n":"[redacted]","m":1}`},
		{"a part of a number", "23456789", `[-1.23456789e5]`, `["[redacted]"]`},
		{"across values", `true,"a":`, `{"b":true,"a":1}`, `"[redacted]"`},
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

func FuzzRedact(f *testing.F) {
	f.Add("hunter2hunter2", `{"a":"hunter2hunter2"}`, "x")
	f.Add(`q"uote\d!`, `{"a":["q\"uote\\d!",1]}`, `{"q\"uote\\d!":2}`)
	f.Add("12345678", `[123456789]`, "\xff12345678")
	f.Add(`true,"a":`, `{"b":true,"a":1}`, `\u0074rue,"a":`)
	f.Add("]aaaaaaa", "secret-2aaaaaaa", `"[redacted]"`)
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if Unfit(secret) {
			return
		}
		r := New([]string{secret, "secret-2"})
		encoded := base64.StdEncoding.EncodeToString([]byte(before + secret + after))
		quoted, err := stdjson.Marshal(map[string]string{before: secret + after})
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []string{before, before + secret + after, string(quoted), encoded, "[" + string(quoted) + "," + before + "]"} {
			got := r.Redact([]byte(in))
			if bytes.Contains(got, []byte(secret)) || bytes.Contains(got, []byte("secret-2")) {
				t.Fatalf("%q is still in %q", secret, got)
			}
			if stdjson.Valid([]byte(in)) && !stdjson.Valid(got) {
				t.Fatalf("%q was JSON and became %q", in, got)
			}
		}
		if stdjson.Valid(quoted) && strings.ToValidUTF8(secret, "") == secret {
			var back map[string]string
			if err := stdjson.Unmarshal(r.Redact(quoted), &back); err != nil {
				return // the whole was taken out
			}
			for name, value := range back {
				if strings.Contains(name, secret) || strings.Contains(value, secret) {
					t.Fatalf("%q is still in %q", secret, back)
				}
			}
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	const secret = "hunter2hunter2"
	r := New([]string{secret, "correct horse battery staple"})
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	for name, part := range map[string]string{
		"no find": `some text\n`, "escapes": `\u00e9t\u00e9 \\ `, "secrets": secret + " ", "base64": encoded + " ",
	} {
		in := []byte(`{"jsonrpc":"2.0","id":1,"result":{"text":"` + strings.Repeat(part, 1<<20/len(part)) + `"}}`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				r.Redact(in)
			}
		})
	}
}
