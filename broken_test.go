package waybill_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
)

// A brokenTree breaks one rule, in the places that want names. The tree is a txtar archive; a "^" in it is left out, so
// that this file does not say what no file may say.
type brokenTree struct {
	rule string
	tree string
	want []string
}

var brokenTrees = slices.Concat(brokenImports, brokenUses, brokenDomain, brokenSizes, brokenLayout, brokenTexts)

var brokenImports = []brokenTree{
	{"rooms", "-- domain/a.go --\npackage domain\n\nimport _ \"waybill/store\"\n", []string{"domain/a.go:3"}},
	{"rooms", "-- domain/a_test.go --\npackage domain\n\nimport _ \"waybill/events\"\n", []string{"domain/a_test.go:3"}},
	{"rooms", "-- domain/a.go --\npackage domain\n\nimport _ \"waybill/domain/schema\"\n", []string{"domain/a.go:3"}},
	{"rooms", "-- domain/schema/a_test.go --\npackage schema\n\nimport _ \"waybill/domain\"\n",
		[]string{"domain/schema/a_test.go:3"}},
	{"rooms", "-- harness/a.go --\npackage harness\n\nimport _ \"waybill/harness/bus\"\n", []string{"harness/a.go:3"}},
	{"rooms", "-- harness/bus/a.go --\npackage bus\n\nimport _ \"waybill/harness\"\n", []string{"harness/bus/a.go:3"}},
	{"rooms", "-- cmd/waybill-audit/sub/a.go --\npackage sub\n\nimport _ \"waybill/harness\"\n",
		[]string{"cmd/waybill-audit/sub/a.go:3"}},
	{"rooms", "-- store/a.go --\npackage store\n\nimport _ \"waybill\"\n", []string{"store/a.go:3"}},
	{"rooms", "-- attic/a.go --\npackage attic\n", []string{"attic/a.go:1"}},
	{"test helpers", "-- store/a.go --\npackage store\n\nimport _ \"waybill/store/storetest\"\n", []string{"store/a.go:3"}},
	{"test helpers", "-- store/a.go --\npackage store\n\nimport _ \"testing/fstest\"\n", []string{"store/a.go:3"}},
	{"randomness", "-- events/a.go --\npackage events\n\nimport _ \"math/rand/v2\"\n", []string{"events/a.go:3"}},
	{"randomness", "-- cmd/waybill/a.go --\npackage main\n\nimport _ \"crypto/rand\"\n", []string{"cmd/waybill/a.go:3"}},
	{"processes", "-- harness/a.go --\npackage harness\n\nimport _ \"os/exec\"\n", []string{"harness/a.go:3"}},
	{"network", "-- harness/a.go --\npackage harness\n\nimport _ \"net\"\n", []string{"harness/a.go:3"}},
	{"network", "-- cmd/waybill/a.go --\npackage main\n\nimport _ \"net/http/pprof\"\n", []string{"cmd/waybill/a.go:3"}},
	{"nats", "-- harness/a.go --\npackage harness\n\nimport _ \"github.com/nats-io/nats.go/jetstream\"\n",
		[]string{"harness/a.go:3"}},
	{"sql", "-- replay/a.go --\npackage replay\n\nimport _ \"github.com/mattn/go-sqlite3\"\n", []string{"replay/a.go:3"}},
	{"escapes", "-- harness/a_test.go --\npackage harness\n\nimport _ \"unsafe\"\n", []string{"harness/a_test.go:3"}},
}

var brokenUses = []brokenTree{
	{"goroutines", "-- store/a.go --\npackage store\n\nfunc a() {\n\tgo a()\n}\n", []string{"store/a.go:4"}},
	{"goroutines", "-- cmd/waybill/a.go --\npackage main\n\nfunc a(g group) {\n\tg.Go(main)\n}\n",
		[]string{"cmd/waybill/a.go:4"}},
	{"goroutines", "-- cmd/waybill/a.go --\npackage main\n\nimport \"time\"\n\nvar a = time.AfterFunc(1, main)\n",
		[]string{"cmd/waybill/a.go:5"}},
	{"clock readings", "-- store/a.go --\npackage store\n\nimport clock \"time\"\n\nvar a = clock.Now\n",
		[]string{"store/a.go:5"}},
	{"clock readings", "-- store/a.go --\npackage store\n\nimport . \"time\"\n\nvar a = Now()\n", []string{"store/a.go:3"}},
	{"clock waits", "-- cmd/waybill/a.go --\npackage main\n\nimport \"time\"\n\nvar a = time.NewTicker(1)\n",
		[]string{"cmd/waybill/a.go:5"}},
	{"clock in domain tests", "-- domain/a_test.go --\npackage domain\n\nimport \"time\"\n\nvar a = time.Now()\n",
		[]string{"domain/a_test.go:5"}},
	{"randomness", "-- events/a.go --\npackage events\n\nimport \"crypto/ed25519\"\n\nvar a = ed25519.GenerateKey\n",
		[]string{"events/a.go:5"}},
	{"processes", "-- harness/a.go --\npackage harness\n\nimport \"os\"\n\nvar a = os.StartProcess\n",
		[]string{"harness/a.go:5"}},
	{"domain output", "-- domain/a.go --\npackage domain\n\nimport \"fmt\"\n\nfunc a() { fmt.Println() }\n",
		[]string{"domain/a.go:5"}},
	{"sleeping tests", "-- store/a_test.go --\npackage store\n\nimport \"time\"\n\nfunc a() { time.Sl^eep(1) }\n",
		[]string{"store/a_test.go:5"}},
	{"sleeping tests", "-- store/storetest/a.go --\npackage storetest\n\nimport \"time\"\n\nfunc a() { time.Sl^eep(1) }\n",
		[]string{"store/storetest/a.go:5"}},
	{"skipped tests", "-- store/a_test.go --\npackage store\n\nimport \"testing\"\n\nfunc a(t *testing.T) { t.S^kip() }\n",
		[]string{"store/a_test.go:5"}},
	{"skipped tests", "-- store/a_test.go --\npackage store\n\nimport \"testing\"\n\nvar a = testing.Sh^ort\n",
		[]string{"store/a_test.go:5"}},
}

var brokenDomain = []brokenTree{
	{"domain imports", "-- domain/a.go --\npackage domain\n\nimport _ \"io\"\n", []string{"domain/a.go:3"}},
	{"domain imports", "-- domain/a.go --\npackage domain\n\nimport _ \"github.com/goccy/go-yaml\"\n",
		[]string{"domain/a.go:3"}},
	{"domain imports", "-- domain/a.go --\npackage domain\n\nimport _ \"github.com/santhosh-tekuri/jsonschema/v6\"\n",
		[]string{"domain/a.go:3"}},
	{"domain imports", "-- domain/schema/a.go --\npackage schema\n\nimport _ \"os\"\n", []string{"domain/schema/a.go:3"}},
	{"domain order", `
-- domain/a.go --
package domain

import (
	"example.com/unknown"
	"maps"
	"slices"
)

type peers map[string]int

type state struct{ b peers }

func loops[M ~map[string]int, S ~[]int](s state, m M, list S) {
	for range s.b { // a named map, in a field
	}
	for range m {
	}
	for range unknown.List() {
	}
	for range maps.Keys(s.b) {
	}
	_ = slices.Collect(maps.Values(s.b))
	// order-free:
	for range s.b { // an excuse with no reason is none
	}
	select {}
}
`, []string{"domain/a.go:14", "domain/a.go:16", "domain/a.go:18", "domain/a.go:20", "domain/a.go:22",
		"domain/a.go:24", "domain/a.go:26"}},
	{"domain order", "-- domain/a.go --\npackage domain\n\nfunc a() {\n\tfor range all() {\n\t}\n}\n" +
		"-- domain/b.go --\npackage domain\n\nfunc all() map[string]bool { return nil }\n", []string{"domain/a.go:4"}},
}

var brokenSizes = []brokenTree{
	{"function size", "-- store/a.go --\npackage store\n\nfunc a() {\n" + strings.Repeat("\n", maxFunction-1) + "}\n",
		[]string{"store/a.go:3"}},
	{"function size", "-- store/a.go --\npackage store\n\nvar a = func() {\n" + strings.Repeat("\n", maxFunction-1) + "}\n",
		[]string{"store/a.go:3"}},
	{"function size", "-- store/a_test.go --\npackage store\n\nfunc a() {\n" + strings.Repeat("\n", maxTestFunction-1) + "}\n",
		[]string{"store/a_test.go:3"}},
	{"file size", "-- store/a_test.go --\npackage store\n" + strings.Repeat("\n", maxFile), []string{"store/a_test.go"}},
	{"package size", "-- replay/a.go --\npackage replay\n" + strings.Repeat("var _ = 1\n", maxPackage/2) +
		"-- replay/b.go --\npackage replay\n" + strings.Repeat("var _ = 1\n", maxPackage/2), []string{"replay"}},
}

var brokenLayout = []brokenTree{
	{"folder names", "-- store/util/a.go --\npackage util\n", []string{"store/util"}},
	{"folder names", "-- docs/common/a.md --\nwords\n", []string{"docs/common"}},
	{"top level", "-- scripts/run --\n#!/bin/sh\n", []string{"scripts"}},
	{"top level", "-- main.go --\npackage main\n", []string{"main.go"}},
	{"doc.go", "-- store/a.go --\n// Package store keeps.\npackage store\n", []string{"store/doc.go"}},
	{"doc.go", "-- store/doc.go --\npackage store\n", []string{"store/doc.go"}},
	{"doc comments", `
-- store/a.go --
package store

type Log struct{ Path string }

func (l *Log) Append() {}

func Open() {}

const Limit = 1

var (
	First  = 1
	second = 2
)

// Reader reads.
type Reader interface {
	Read()
}

// Types in a group each need their own.
type (
	Head int
)

func (h head[T]) Hidden() {}
`, []string{"store/a.go:3", "store/a.go:5", "store/a.go:7", "store/a.go:9", "store/a.go:12", "store/a.go:18",
		"store/a.go:23"}},
}

var brokenTexts = []brokenTree{
	{"machine paths", "-- README.md --\nA line.\nLook in /t^mp/waybill.\n", []string{"README.md:2"}},
	{"machine paths", "-- store/testdata/a.yaml --\nlog: /ro^ot/log\n", []string{"store/testdata/a.yaml:1"}},
	{"registry hosts", "-- docs/a.md --\nhttps://proxy.go^lang.org\n", []string{"docs/a.md:1"}},
	{"registry hosts", "-- docs/a.json --\n{\n\"from\": \"registry.npm^js.org\"}\n", []string{"docs/a.json:2"}},
	{"promises", "-- store/a.go --\npackage store\n\n// FIX^ME: later\n", []string{"store/a.go:3"}},
	{"promises", "-- migrations/log/1.sql --\n-- TO^DO\n", []string{"migrations/log/1.sql:1"}},
}

// cleanTree comes close to breaking each rule, and does not.
const cleanTree = `
-- README.md --
Logs go to /var/lib/waybill. A TO^DOIST is no promise; nor is /templates/.
-- go.sum --
proxy.go^lang.org
-- .ci/run --
cd /t^mp/x # TO^DO
-- waybill --
a program that was built here, which .gitignore names
-- domain/doc.go --
// Package domain decides.
package domain
-- domain/a.go --
package domain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// At is when.
type At time.Time

type ints[E any] []E

func sum[S ~[]E, E any](m map[string]int, list S, more ints[E]) (n int, err error) {
	// order-free: addition
	// of integers
	for _, v := range m {
		n += v
	}
	for k := range m { // order-free: counts
		n += len(k)
	}
	for range slices.Sorted(maps.Keys(m)) {
	}
	for range list {
	}
	for range more {
	}
	for range 3 {
	}
	for range strings.Fields("a b") {
	}
	return n, fmt.Errorf("%d", n)
}
-- domain/a_test.go --
package domain

import (
	"os"
	"testing"
	"waybill/domain"
)

func TestA(t *testing.T) { for range map[int]int{} {} }
-- domain/schema/doc.go --
// Package schema judges.
package schema

import _ "encoding/json"
import _ "github.com/santhosh-tekuri/jsonschema/v6"
-- store/doc.go --
// Package store keeps.
package store

import _ "database/sql"
import _ "waybill/events"
-- store/a_test.go --
package store

import (
	"net/http"
	"testing"
	"time"
	"waybill/harness"
	"waybill/store/storetest"
)

func TestA(t *testing.T) { go storetest.Log(time.Now()); <-time.After(1) }
-- store/storetest/doc.go --
// Package storetest helps.
package storetest

import "testing"
import "os/exec"

// Log logs.
func Log(t *testing.T) {}
-- harness/doc.go --
// Package harness acts.
package harness

import "crypto/rand"
import "time"

func a() { go a(); time.AfterFunc(1, a); time.Sl^eep(1); rand.Text() }
-- harness/peer/doc.go --
// Package peer talks.
package peer

import "net/http"
import "os/exec"
import "waybill/domain"
import "waybill/domain/schema"
-- cmd/waybill/doc.go --
// Command waybill runs.
package main

import "time"
import "waybill/harness/bus"
import "waybill/harness/peer"

var a = time.Now()
`

// TestRulesFindWhatIsBroken shows that each rule fails when it is broken, at the right place and saying why.
func TestRulesFindWhatIsBroken(t *testing.T) {
	for _, broken := range brokenTrees {
		t.Run(broken.rule, func(t *testing.T) {
			i := slices.IndexFunc(rules, func(r rule) bool { return r.name == broken.rule })
			if i < 0 {
				t.Fatalf("there is no rule %q", broken.rule)
			}
			var got []string
			for _, b := range rules[i].check(treeOf(t, broken.tree)) {
				got = append(got, b.position())
				if report := rules[i].report(b); !strings.Contains(report, rules[i].reason) {
					t.Errorf("the report %q does not give the reason", report)
				}
			}
			if got, want := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(broken.want)); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

// TestEveryRuleHasReasonAndBrokenTree keeps out a rule that nothing has shown to fail, and an exception without a reason.
func TestEveryRuleHasReasonAndBrokenTree(t *testing.T) {
	for _, r := range rules {
		if r.reason == "" {
			t.Errorf("the rule %q gives no reason", r.name)
		}
		if !slices.ContainsFunc(brokenTrees, func(b brokenTree) bool { return b.rule == r.name }) {
			t.Errorf("the rule %q has no broken tree", r.name)
		}
	}
	for dir, p := range pureToo {
		if p.reason == "" {
			t.Errorf("what %s may import besides needs a reason", dir)
		}
	}
	for dir, l := range large {
		if l.reason == "" || l.lines <= maxPackage {
			t.Errorf("the exception for %s needs a reason and a limit over %d", dir, maxPackage)
		}
	}
}

// TestRulesPassCleanTree shows that no rule fires on what is allowed.
func TestRulesPassCleanTree(t *testing.T) {
	clean := treeOf(t, cleanTree)
	for _, r := range rules {
		for _, b := range r.check(clean) {
			t.Errorf("%s: %s", r.name, r.report(b))
		}
	}
}

func treeOf(t *testing.T, archive string) *tree {
	t.Helper()
	files := fstest.MapFS{".gitignore": {Data: []byte("# built\n/waybill\n*.prof\n")}}
	for _, f := range txtar.Parse([]byte(strings.ReplaceAll(archive, "^", ""))).Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	project, err := load(files)
	if err != nil {
		t.Fatal(err)
	}
	return project
}
