package schema

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// drafts is a set of dialects.
type drafts int

const (
	in07 drafts = 1 << iota
	in2019
	in2020
	from2019 = in2019 | in2020
	inAll    = in07 | from2019
)

// draftNamed gives the dialect that a "$schema" names, or none.
func draftNamed(name string) drafts {
	if rest, isHTTP := strings.CutPrefix(name, "http://"); isHTTP {
		name = "https://" + rest
	}
	switch strings.TrimSuffix(name, "#") {
	case "https://json-schema.org/draft/2020-12/schema":
		return in2020
	case "https://json-schema.org/draft/2019-09/schema":
		return in2019
	case "https://json-schema.org/draft-07/schema":
		return in07
	}
	return 0
}

// begin takes the dialect that the root names. In a foreign one the schema is
// walked as if it were in the usual one.
func (x *inspection) begin() {
	x.draft = in2020
	x.resources = []resource{{address: rootAddress}}
	for c := x.items[0].first; c != 0; c = x.items[c].next {
		if member := &x.items[c]; string(member.name) == "$schema" && member.kind == '"' {
			x.draft = draftNamed(string(member.text))
		}
	}
	if x.draft == 0 {
		x.draft, x.foreign = in2020, true
	}
}

// shape is what the value of a keyword must be.
type shape int

const (
	aString shape = iota
	anIdentifier
	anAnchor
	aFlag
	aNumber
	aFactor
	aCount
	aList
	someNames
	namesByName
	flagsByName
	someTypes
	aSchema
	schemas
	schemasByName
	schemaOrList
	schemaOrNames
	aReference
)

// wanted says what each shape is, as the rest of a sentence.
var wanted = [...]string{
	aString:       "a string",
	anIdentifier:  "a string without a fragment",
	anAnchor:      "a plain name",
	aFlag:         "true or false",
	aNumber:       "a number",
	aFactor:       "a number above 0",
	aCount:        "a whole number, 0 or more",
	aList:         "a list",
	someNames:     "a list of different strings",
	namesByName:   "an object of lists of different strings",
	flagsByName:   "an object of true and false",
	someTypes:     "one of the seven types, or a list of different ones",
	aSchema:       "a schema",
	schemas:       "a list of at least one schema",
	schemasByName: "an object of schemas",
	schemaOrList:  "a schema, or a list of at least one",
	schemaOrNames: "an object of schemas and of lists of different strings",
	aReference:    "a string",
}

// same says whether the schemas below a keyword judge the value that the
// keyword's own schema judges.
type same int

const (
	never same = iota
	always
	ifHolds // the value matches "if"
	ifFails
)

// keyword is what the dialects in which it is known say of a keyword.
type keyword struct {
	in    drafts
	shape shape
	same  same
}

// keywords is what the meta-schemas of the three dialects say, all but formats.
var keywords = map[string]keyword{
	"$schema":          {inAll, aString, never},
	"$id":              {inAll, anIdentifier, never},
	"$ref":             {inAll, aReference, always},
	"$dynamicRef":      {in2020, aReference, always},
	"$recursiveRef":    {from2019, aReference, always},
	"$anchor":          {from2019, anAnchor, never},
	"$dynamicAnchor":   {in2020, anAnchor, never},
	"$recursiveAnchor": {in2019, aFlag, never}, // in 2020-12 it means nothing
	"$vocabulary":      {from2019, flagsByName, never},
	"$comment":         {inAll, aString, never},
	"$defs":            {from2019, schemasByName, never},
	"definitions":      {inAll, schemasByName, never},

	"allOf":                 {inAll, schemas, always},
	"anyOf":                 {inAll, schemas, always},
	"oneOf":                 {inAll, schemas, always},
	"not":                   {inAll, aSchema, always},
	"if":                    {inAll, aSchema, always},
	"then":                  {inAll, aSchema, ifHolds},
	"else":                  {inAll, aSchema, ifFails},
	"dependentSchemas":      {from2019, schemasByName, always},
	"dependencies":          {inAll, schemaOrNames, always},
	"properties":            {inAll, schemasByName, never},
	"patternProperties":     {inAll, schemasByName, never},
	"additionalProperties":  {inAll, aSchema, never},
	"propertyNames":         {inAll, aSchema, never},
	"unevaluatedProperties": {from2019, aSchema, never},
	"items":                 {inAll, schemaOrList, never},
	"prefixItems":           {in2020, schemas, never},
	"additionalItems":       {in07 | in2019, aSchema, never},
	"unevaluatedItems":      {from2019, aSchema, never},
	"contains":              {inAll, aSchema, never},
	"contentSchema":         {from2019, aSchema, never},

	"type":              {inAll, someTypes, never},
	"enum":              {inAll, aList, never},
	"multipleOf":        {inAll, aFactor, never},
	"maximum":           {inAll, aNumber, never},
	"exclusiveMaximum":  {inAll, aNumber, never},
	"minimum":           {inAll, aNumber, never},
	"exclusiveMinimum":  {inAll, aNumber, never},
	"maxLength":         {inAll, aCount, never},
	"minLength":         {inAll, aCount, never},
	"pattern":           {inAll, aString, never},
	"maxItems":          {inAll, aCount, never},
	"minItems":          {inAll, aCount, never},
	"uniqueItems":       {inAll, aFlag, never},
	"maxContains":       {from2019, aCount, never},
	"minContains":       {from2019, aCount, never},
	"maxProperties":     {inAll, aCount, never},
	"minProperties":     {inAll, aCount, never},
	"required":          {inAll, someNames, never},
	"dependentRequired": {from2019, namesByName, never},

	"title":            {inAll, aString, never},
	"description":      {inAll, aString, never},
	"deprecated":       {from2019, aFlag, never},
	"readOnly":         {inAll, aFlag, never},
	"writeOnly":        {inAll, aFlag, never},
	"examples":         {inAll, aList, never},
	"format":           {inAll, aString, never},
	"contentMediaType": {inAll, aString, never},
	"contentEncoding":  {inAll, aString, never},
}

// keyword looks at the value c of a keyword of schema i, and at the schemas in it.
func (x *inspection) keyword(i, c, in int32, k keyword) {
	if k.shape == schemaOrList && (x.draft == in2020 || x.items[c].kind != '[') {
		k.shape = aSchema
	}
	if !x.fits(c, k.shape) {
		x.fail(i, "its "+string(x.items[c].name)+" must be "+wanted[k.shape])
	}
	switch k.shape {
	case aReference:
		if x.items[c].kind == '"' {
			x.refs = append(x.refs, reference{i, in, string(x.items[c].name), string(x.items[c].text)})
		}
	case aSchema:
		x.below(i, c, in, k)
	case schemas, schemaOrList, schemasByName, schemaOrNames:
		for e := x.items[c].first; e != 0; e = x.items[e].next {
			if k.shape != schemaOrNames || x.items[e].kind != '[' {
				x.below(i, e, in, k)
			}
		}
	}
}

func (x *inspection) below(i, c, in int32, k keyword) {
	x.visit(c, in)
	if k.same != never {
		x.edges = append(x.edges, edge{i, c})
	}
}

// fits says whether a value has a shape, as far as it is not for the schemas in
// it to say.
func (x *inspection) fits(c int32, s shape) bool {
	v := &x.items[c]
	switch s {
	case aString, aReference:
		return v.kind == '"'
	case anIdentifier:
		return v.kind == '"' && (x.draft == in07 || !strings.Contains(strings.TrimSuffix(string(v.text), "#"), "#"))
	case anAnchor:
		return v.kind == '"' && x.plain(string(v.text))
	case aFlag:
		return v.kind == 't' || v.kind == 'f'
	case aNumber, aFactor, aCount:
		return v.kind == '0' && numberFits(string(v.text), s)
	case aList:
		return v.kind == '['
	case someNames:
		return x.distinct(c, nil)
	case someTypes:
		return v.kind == '"' && kindNames[string(v.text)] != 0 || v.first != 0 && x.distinct(c, kindNames)
	case schemas, schemaOrList:
		return v.kind == '[' && v.first != 0
	case schemasByName, namesByName, flagsByName, schemaOrNames:
		return v.kind == '{' && x.members(c, s)
	}
	return true // a schema speaks for itself
}

func (x *inspection) members(c int32, s shape) bool {
	for e := x.items[c].first; e != 0; e = x.items[e].next {
		kind := x.items[e].kind
		if (s == namesByName || s == schemaOrNames && kind == '[') && !x.distinct(e, nil) || s == flagsByName && kind != 't' && kind != 'f' {
			return false
		}
	}
	return true
}

// distinct says whether a value is a list of strings, each once, and each among
// those that are allowed if not all are.
func (x *inspection) distinct(c int32, allowed map[string]kind) bool {
	if x.items[c].kind != '[' {
		return false
	}
	var names [][]byte
	for e := x.items[c].first; e != 0; e = x.items[e].next {
		name := x.items[e].text
		if x.items[e].kind != '"' || allowed != nil && allowed[string(name)] == 0 {
			return false
		}
		names = append(names, name)
	}
	slices.SortFunc(names, bytes.Compare)
	return len(slices.CompactFunc(names, bytes.Equal)) == len(names)
}

// plain says whether a text can be an anchor. The two dialects that have them
// differ.
func (x *inspection) plain(name string) bool {
	first, more := "_", "-._"
	if x.draft == in2019 {
		first, more = "", "-.:_"
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case letter(c) || strings.IndexByte(first, c) >= 0:
		case i > 0 && ('0' <= c && c <= '9' || strings.IndexByte(more, c) >= 0):
		default:
			return false
		}
	}
	return name != ""
}

// numberFits judges a number by its digits, so that none costs more than its
// length.
func numberFits(text string, s shape) bool {
	if s == aNumber {
		return true
	}
	text, negative := strings.CutPrefix(text, "-")
	exponent := 0
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		exponent, _ = strconv.Atoi(text[e+1:]) // it is within maxExponent
		text = text[:e]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	zero := strings.Trim(whole, "0") == "" && fraction == ""
	if s == aFactor {
		return !negative && !zero
	}
	zeros := len(whole) - len(strings.TrimRight(whole, "0"))
	isWhole := len(fraction) <= exponent || fraction == "" && zeros+exponent >= 0
	return zero || !negative && isWhole
}
