package schema

import (
	"encoding/json"
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// kind is a set of kinds of value.
type kind int

const (
	nullKind kind = 1 << iota
	boolKind
	numberKind
	stringKind
	arrayKind
	objectKind
	anyKind = nullKind | boolKind | numberKind | stringKind | arrayKind | objectKind
)

func kindOf(v any) kind {
	switch v.(type) {
	case bool:
		return boolKind
	case json.Number:
		return numberKind
	case string:
		return stringKind
	case []any:
		return arrayKind
	case map[string]any:
		return objectKind
	}
	return nullKind
}

var kindNames = map[string]kind{
	"null": nullKind, "boolean": boolKind, "number": numberKind, "integer": numberKind,
	"string": stringKind, "array": arrayKind, "object": objectKind,
}

func kindsOf(types *jsonschema.Types) kind {
	if types == nil || types.IsEmpty() {
		return anyKind
	}
	return kindsNamed(types.ToStrings())
}

func kindsNamed(names []string) kind {
	var kinds kind
	for _, name := range names {
		kinds |= kindNames[name]
	}
	return kinds
}

// price is what one evaluation of a schema costs in steps by itself, on each
// kind of value. The divisors are from measurements; they need to be right
// within a small factor.
type price struct {
	each     int      // on any value
	strings  int      // comparing a string, boolean or null with "enum" and "const"
	lists    int      // comparing an array or object with them
	numbers  int      // comparing a number with those in them
	parsed   int      // how often a number is made a fraction
	pattern  *program // matched with strings
	dynamic  bool     // looks through all evaluations that it stands in
	tracks   bool     // keeps account of members and items
	division int      // by "multipleOf"
}

func priceOf(s *jsonschema.Schema) price {
	p := price{each: 1 + (len(s.Required)+len(s.DependentSchemas))/8, dynamic: s.DynamicRef != nil}
	// order-free: it adds up
	for _, required := range s.DependentRequired {
		p.each += 1 + len(required)/8
	}
	// order-free: it adds up
	for _, dependency := range s.Dependencies {
		p.each++
		if required, ok := dependency.([]string); ok {
			p.each += len(required) / 8
		}
	}
	if s.Enum != nil {
		p.compares(s.Enum.Values)
	}
	if s.Const != nil {
		p.compares([]any{*s.Const})
	}
	p.pattern, _ = s.Pattern.(*program)
	p.arithmetic(s)
	return p
}

func (p *price) compares(values []any) {
	length := 0
	for _, v := range values {
		switch v := v.(type) {
		case json.Number:
			p.numbers += numberCost(v)
			p.parsed++
		case string:
			length += len(v)
		case []any, map[string]any:
			p.lists += 16 * weight(v) // numbers in the other may be longer
		}
	}
	p.strings += len(values)/32 + length/1024
}

func (p *price) arithmetic(s *jsonschema.Schema) {
	if s.Types != nil {
		p.parsed++
	}
	for _, limit := range []*big.Rat{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum} {
		if limit != nil {
			p.parsed++
		}
	}
	if s.MultipleOf != nil {
		p.parsed += 2
		p.division = 10 + (s.MultipleOf.Num().BitLen()+s.MultipleOf.Denom().BitLen())/64
	}
}

// of gives the price on a value, in an evaluation that stands below so many
// others, of which so many on the same value.
func (p *price) of(v any, at depth) int {
	cost := p.each + at.same/8 // the library looks for itself among those on the same value
	if p.dynamic {
		cost += at.all / 4
	}
	switch v := v.(type) {
	case json.Number:
		cost += p.numbers + p.parsed*numberCost(v) + p.division
	case string:
		cost += p.strings + len(v)/128
		if p.pattern != nil {
			cost += p.pattern.cost(v)
		}
	case []any:
		cost += p.lists + p.tracked(len(v))
	case map[string]any:
		cost += p.lists + len(v)/8 + p.tracked(len(v))
	default:
		cost += p.strings
	}
	return cost
}

func (p *price) tracked(n int) int {
	if p.tracks {
		return n
	}
	return 0
}

// cost is what matching costs at most: every instruction at every byte.
func (p *program) cost(s string) int { return 1 + (len(s)+1)*p.size/32 }

// numberCost is what it costs to make a fraction of a number.
func numberCost(n json.Number) int {
	digits, exponent := numberSize(n.String())
	return 1 + (digits+exponent)/32
}

// weight is what it costs to compare a value with another, or to hash it.
func weight(v any) int {
	switch v := v.(type) {
	case json.Number:
		return numberCost(v)
	case string:
		return 1 + len(v)/256
	case []any:
		total := 1
		for _, item := range v {
			total += weight(item)
		}
		return total
	case map[string]any:
		total := 1
		// order-free: it adds up
		for name, member := range v {
			total += 1 + len(name)/256 + weight(member)
		}
		return total
	}
	return 1
}

// uniqueCost is what it costs to look for an item that is there twice. The
// library compares few items in pairs. It hashes many, and arrays and objects
// can be made so that all of their hashes are equal.
func uniqueCost(items []any) int {
	total, nested := weight(items), false
	for _, item := range items {
		nested = nested || kindOf(item)&(arrayKind|objectKind) != 0
	}
	switch {
	case len(items) <= 20:
		return total * len(items)
	case nested:
		return total * (1 + len(items)/16)
	}
	return 2 * total
}
