package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	stdjson "encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// written lists what a secret looks like in the forms that are promised to be
// found, made by other means than the Redactor's.
func written(secret string) map[string]string {
	forms := map[string]string{
		"itself":   secret,
		"hex":      hex.EncodeToString([]byte(secret)),
		"HEX":      strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"percent":  everyByte("%%%02X", secret),
		"\\x":      everyByte(`\x%02x`, secret),
		"percents": everyByte("%%25%02x", secret),
	}
	if utf8.ValidString(secret) {
		quoted, _ := stdjson.Marshal(secret)
		forms["JSON"] = string(quoted[1 : len(quoted)-1])
		twice, _ := stdjson.Marshal(forms["JSON"])
		forms["JSON twice"] = string(twice[1 : len(twice)-1])
	}
	for offset := range 3 {
		before, after := strings.Repeat("a", offset), strings.Repeat("z", (3-(offset+len(secret))%3)%3)
		for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding} {
			text := e.EncodeToString([]byte(before + secret + after))
			forms[fmt.Sprintf("base64 %s %d", name, offset)] = text
			forms[fmt.Sprintf("base64 %s %d in lines", name, offset)] = inLines(text)
		}
	}
	return forms
}

// FuzzRedact: whatever stands around it, no form of a secret is left; what was
// JSON stays JSON; and there is nothing to do a second time.
func FuzzRedact(f *testing.F) {
	f.Add("hunter2hunter2", `{"a":"hunter2hunter2"}`, "x")
	f.Add(`q"uote\d!`, `{"a":["q\"uote\\d!",1]}`, `{"q\"uote\\d!":2}`)
	f.Add("12345678", `[123456789]`, "\xff12345678")
	f.Add(`true,"a":`, `{"b":true,"a":1}`, `\u0074rue,"a":`)
	f.Add("]aaaaaaa", "secret-2aaaaaaa", `"[redacted]"`)
	f.Add("line one of it\nline two of it", "\r\n \\", `\u00`)
	f.Add("%41%42%43", "%2541", "%")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if Unfit(secret) {
			return
		}
		r := New([]string{"secret-2"})
		if err := r.Add(secret); err != nil {
			t.Fatal(err)
		}
		for name, form := range written(secret) {
			quoted, err := stdjson.Marshal(map[string]string{before: form + after})
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range []string{before + form + after, string(quoted), "[" + string(quoted) + "," + before + "]"} {
				checkRedacted(t, r, secret, name, in)
			}
		}
		checkRedacted(t, r, secret, "as it came", before)
	})
}

func checkRedacted(t *testing.T, r *Redactor, secret, name, in string) {
	t.Helper()
	got := r.Redact([]byte(in))
	for form, text := range written(secret) {
		if bytes.Contains(got, []byte(text)) {
			t.Fatalf("%s: %q is in %q still as %s, %q", name, secret, got, form, text)
		}
	}
	if stdjson.Valid([]byte(in)) && !stdjson.Valid(got) {
		t.Fatalf("%s: %q was JSON and became %q", name, in, got)
	}
	if again := r.Redact(got); !bytes.Equal(again, got) {
		t.Fatalf("%s: %q becomes %q the second time", name, got, again)
	}
	var value any
	if stdjson.Unmarshal(got, &value) == nil && strings.Contains(fmt.Sprint(value), secret) {
		t.Fatalf("%s: %q is in %q behind escapes", name, secret, got)
	}
}

// BenchmarkRedact compares with a search for the ten values as they are, which
// finds no other form of them, in the same run.
func BenchmarkRedact(b *testing.B) {
	var secrets []string
	for i := range 10 {
		secrets = append(secrets, fmt.Sprintf("%x-hunter2-%d", 1<<(4*i), i*i))
	}
	r := New(secrets)
	encoded := base64.StdEncoding.EncodeToString([]byte(secrets[3]))
	for _, c := range []struct{ name, part string }{
		{"list", `{"name":"look_up","description":"Finds what was asked for.\nMay be called again.","inputSchema":{"type":"object"}},`},
		{"plain", `{"name":"look_up","description":"Finds what was asked for, again.","inputSchema":{"type":"object"}},`},
		{"escapes", `"\u00e9t\u00e9 \\ ",`}, {"secrets", `"` + secrets[3] + `",`}, {"one run", `"` + encoded + encoded + `",`},
	} {
		in := []byte(`[` + strings.Repeat(c.part, 1<<20/len(c.part)) + `0]`)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				r.Redact(in)
			}
			ours := b.Elapsed() / time.Duration(b.N)
			began := time.Now()
			for range 20 {
				for _, s := range secrets {
					bytes.Contains(in, []byte(s))
				}
			}
			b.ReportMetric(float64(ours)/float64(time.Since(began)/20), "times-contains")
		})
	}
}
