package yamldoc

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Object reads a mapping as JSON: the same mapping gives the same bytes.
func (s *Section) Object(name string) jsontext.Value {
	n := s.Typed(name, Mapping)
	if n == nil {
		return jsontext.Value("{}")
	}
	value, err := n.plain()
	if err == nil {
		var b []byte
		if b, err = json.Marshal(value, json.Deterministic(true)); err == nil {
			return b
		}
	}
	s.Fail(name, "cannot be written as JSON: %s", err)
	return jsontext.Value("{}")
}

// plain turns a value into what package json writes.
func (n *Node) plain() (any, error) {
	switch n.Kind {
	case Text:
		return n.Text, nil
	case Boolean:
		return strings.EqualFold(n.Text, "true"), nil
	case Integer, Decimal:
		return n.numeral()
	case List:
		values := make([]any, len(n.Items))
		for i, item := range n.Items {
			var err error
			if values[i], err = item.plain(); err != nil {
				return nil, err
			}
		}
		return values, nil
	case Mapping:
		values := make(map[string]any)
		for _, e := range n.Entries {
			var err error
			if values[e.Key], err = e.Value.plain(); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Key, err)
			}
		}
		return values, nil
	}
	return nil, nil
}

func (n *Node) numeral() (any, error) {
	if v, err := strconv.ParseInt(n.Text, 10, 64); err == nil {
		return v, nil
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, fmt.Errorf("%s is no JSON number", n.Text)
	}
	return v, nil
}
