package peer

import (
	"crypto/sha256"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
	"waybill/domain/schema"
)

const (
	schemaBytes = 1 << 20 // of the schemas whose compiled form is kept, as the peer wrote them
	schemaCost  = 1 << 10 // what each counts for at least
)

// schemas keeps the output schemas of one incarnation in their compiled form, the newest of them. A schema is compiled by one reader at a time.
type schemas struct {
	mu       sync.Mutex
	compiled map[[sha256.Size]byte]*schema.Schema
	order    []compiledSchema // oldest first
	bytes    int
}

type compiledSchema struct {
	digest [sha256.Size]byte
	bytes  int
}

// of returns the compiled form of a schema.
func (s *schemas) of(raw jsontext.Value) *schema.Schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest := sha256.Sum256(raw)
	if known := s.compiled[digest]; known != nil {
		return known
	}
	if s.compiled == nil {
		s.compiled = map[[sha256.Size]byte]*schema.Schema{}
	}
	made := schema.Compile(raw)
	entry := compiledSchema{digest, schemaCost + len(raw)}
	s.compiled[digest], s.order, s.bytes = made, append(s.order, entry), s.bytes+entry.bytes
	for s.bytes > schemaBytes && len(s.order) > 1 {
		delete(s.compiled, s.order[0].digest)
		s.bytes -= s.order[0].bytes
		s.order = s.order[1:]
	}
	return made
}

// verdict judges the result of a call that will end as complete; "" where there is nothing to judge.
func (s *schemas) verdict(call settlement, f domain.Facts, result jsontext.Value) string {
	complete := f.ResultType == "complete" || f.ResultType == "" && call.send.Era == domain.EraLegacy
	if call.schema == nil || f.Kind != domain.FactResult || f.IsError || !complete {
		return ""
	}
	return string(s.of(call.schema).Check(result))
}
