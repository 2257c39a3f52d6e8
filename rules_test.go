package waybill_test

import (
	"fmt"
	"os"
	"testing"
)

// A rule is one thing that the sources hold to. What the compiler and the linter cannot see stands here: which room may
// do what. Each rule says why, and the reason is printed with every breach.
type rule struct {
	name   string
	reason string
	check  func(*tree) []breach
}

// A breach is one place that breaks a rule. Line 0 is the whole file or folder.
type breach struct {
	file string
	line int
	what string
}

func (b breach) position() string {
	if b.line == 0 {
		return b.file
	}
	return fmt.Sprintf("%s:%d", b.file, b.line)
}

// report is what the reader of a failed test sees: where, what, and why it matters.
func (r rule) report(b breach) string {
	return fmt.Sprintf("%s: %s\n\twhy: %s", b.position(), b.what, r.reason)
}

// rules is everything that is checked. Each has a broken tree in broken_test.go that it must find.
var rules = []rule{
	{"rooms",
		"imports point up the table of ARCHITECTURE.md only, so that a room can be read and tested without those that use it",
		importTable},
	{"test helpers",
		"what helps tests is built to take shortcuts, which the program must not be able to reach",
		testHelpers},

	{"goroutines",
		"work runs at once in harness only, where each goroutine has an owner that waits for it",
		goroutines},
	{"clock readings",
		"time reaches a decision as a field of an observation, or replay could not make it again; commands may show it",
		only{look: program, in: []string{"harness", "cmd"},
			uses: []string{"time.Now", "time.Since", "time.Until"}}.check},
	{"clock waits",
		"waiting is an entry with a deadline in the table of the harness; anything else holds up somebody unseen",
		only{look: program, in: []string{"harness"},
			uses: []string{"time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick"}}.check},
	{"clock in domain tests",
		"a test of a pure function that reads the clock tests something else on every run",
		only{look: domainTests,
			uses: []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc",
				"time.NewTimer", "time.NewTicker", "time.Tick"}}.check},
	{"randomness",
		"keys and ids are made in harness and recorded, so that nothing decided depends on chance",
		only{look: program, in: []string{"harness"},
			imports: []string{"math/rand/...", "crypto/rand", "github.com/nats-io/nuid", "github.com/nats-io/nkeys",
				"github.com/google/uuid", "hash/maphash"},
			uses: []string{"crypto/ed25519.GenerateKey"}}.check},
	{"processes",
		"one room starts programs, so that one room answers for stopping them",
		only{look: program, in: []string{"harness/peer", "harness/bench"}, // the latter measures, and ends with the measuring
			imports: []string{"os/exec"},
			uses: []string{"os.StartProcess", "syscall.StartProcess", "syscall.ForkExec", "syscall.Exec",
				"golang.org/x/sys/unix.Exec"}}.check},
	{"network",
		"two rooms reach the network, peers and the bus; nothing else can send what it holds",
		only{look: program, in: []string{"harness/bus", "harness/peer"},
			imports: []string{"net/..."}, but: []string{"net/url", "net/netip"}}.check},
	{"nats",
		"the log and the decisions must not know what carries them",
		only{look: program, in: []string{"harness/bus", "harness/bench", "client", "docs/examples"}, // examples are what others write
			imports: []string{"github.com/nats-io/nats.go/...", "github.com/nats-io/nats-server/...",
				"github.com/nats-io/jwt/...", "github.com/synadia-io/orbit.go/..."}}.check},
	{"sql",
		"two rooms own a database file each; a third writer would go around their promises",
		only{look: program, in: []string{"store", "projections", "migrations", "harness/bench"}, // a file that is measured and thrown away
			imports: []string{"database/sql/...", "github.com/mattn/go-sqlite3/...",
				"github.com/golang-migrate/migrate/..."}}.check},
	{"escapes",
		"these reach past what the other rules can see",
		only{look: everything, imports: []string{"C", "unsafe", "plugin"}}.check},

	{"domain imports",
		"domain is pure: it may import what neither acts nor asks the machine it runs on",
		domainImports},
	{"domain output",
		"domain returns what it has to say",
		only{look: domainProgram,
			uses: []string{"fmt.Print", "fmt.Printf", "fmt.Println", "fmt.Scan", "fmt.Scanf", "fmt.Scanln",
				"time.Local", "time.LoadLocation"}}.check},
	{"domain order",
		"the same input must give the same decisions in the same order, and the order of a map differs on every run",
		domainOrder},

	{"function size", "a function is read in one look", functionSizes},
	{"file size", "a file is about one thing", fileSizes},
	{"package size", "a room is held in one head", packageSizes},
	{"folder names", "these names say nothing about what is inside, so everything ends up there", folderNames},
	{"top level", "the first listing of the project is its table of contents", topLevel},
	{"doc.go", "each room says what it is for and what may not enter", roomDocs},
	{"doc comments", "an exported name is a promise, and its comment is the wording", docComments},

	{"machine paths",
		"a path of one machine works on that machine",
		textRule(`/(work|root|farm|tmp)/`)},
	{"registry hosts",
		"where packages come from is the choice of whoever builds",
		textRule(`(proxy|sum)\.golang\.org|registry\.(npmjs\.org|yarnpkg\.com)`)},
	{"promises",
		"a note to do it later is a defect that nobody has counted",
		textRule(`\b(TO[D]O|FIX[M]E|X{3})\b`)},
	{"sleeping tests",
		"a sleep is too long on a fast machine and too short on a busy one; wait for what must happen, or use synctest",
		only{look: tests, uses: []string{"time.Sleep"}}.check},
	{"skipped tests",
		"a skipped test is green and has shown nothing",
		skippedTests},
}

// TestRules holds the project's own sources to every rule. It reads the files itself, so the go command sees which files
// the result depends on and does not answer from its cache when one of them has changed.
func TestRules(t *testing.T) {
	project, err := load(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, b := range r.check(project) {
				t.Error(r.report(b))
			}
		})
	}
}
