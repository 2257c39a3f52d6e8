package domain

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/catalog"
)

// ModernVersions are the modern protocol versions Waybill speaks, newest first.
var ModernVersions = []string{"2026-07-28"}

// LegacyRevisions are the legacy revisions Waybill speaks, newest first.
var LegacyRevisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// DiscoverKind says which row of the probe table an answer to server/discover
// falls under.
type DiscoverKind int

// The rows.
const (
	DiscoverBroken DiscoverKind = iota
	DiscoverValid
	DiscoverVersionRefused    // -32022
	DiscoverCapabilityMissing // -32021
	DiscoverHeaderMismatch    // -32020
	DiscoverAmbiguousError
	DiscoverAmbiguousEmpty
)

// Discovery is what an answer to server/discover says.
type Discovery struct {
	Kind        DiscoverKind
	Signal      string         // the answer in a few words, never the peer's own text
	Versions    []string       // supportedVersions, or data.supported of -32022; nil where unusable
	Required    jsontext.Value // data.requiredCapabilities of -32021
	HasTools    bool           // capabilities.tools is an object
	ListChanged bool           // capabilities.tools.listChanged is true
	Warnings    []string       // conformance warnings
}

// ClassifyDiscover reads an answer to server/discover that carries the probe's
// id. It keeps the seed's hard rejects: only a valid DiscoverResult is modern,
// only the three codes are recognised, and only an unrecognised error or an
// empty result is ambiguous; all else is broken and closes.
func ClassifyDiscover(frame []byte) Discovery {
	m, err := ParseMessage(frame)
	switch {
	case err != nil:
		return Discovery{Signal: "not a JSON-RPC message"}
	case !m.Is2():
		return Discovery{Signal: `jsonrpc that is not "2.0"`}
	case m.Method != nil:
		return Discovery{Signal: "a message that has a method"}
	case m.Result != nil && m.Error != nil:
		return Discovery{Signal: "both result and error"}
	case m.Error != nil:
		return classifyError(m.Error)
	case m.Result == nil:
		return Discovery{Signal: "neither result nor error"}
	}
	return classifyDiscoverResult(m.Result)
}

func classifyError(v jsontext.Value) Discovery {
	code, data, ok := rpcError(v)
	if !ok {
		return Discovery{Signal: "an error without an integer code"}
	}
	d := Discovery{Kind: DiscoverAmbiguousError, Signal: fmt.Sprintf("error %d", code)}
	switch code {
	case rpcVersionRefused:
		d.Kind, d.Versions = DiscoverVersionRefused, stringList(object(data)["supported"])
	case rpcCapabilityMissing:
		d.Kind, d.Required = DiscoverCapabilityMissing, object(data)["requiredCapabilities"]
	case rpcHeaderMismatch:
		d.Kind = DiscoverHeaderMismatch
	}
	return d
}

func classifyDiscoverResult(v jsontext.Value) Discovery {
	m := object(v)
	if v.Kind() == 'n' || (m != nil && len(m) == 0) {
		return Discovery{Kind: DiscoverAmbiguousEmpty, Signal: "an empty result"}
	}
	if m == nil {
		return Discovery{Signal: "a result that is no object"}
	}
	if s, _ := text(m["resultType"]); s != "complete" {
		return Discovery{Signal: `a result without resultType "complete"`}
	}
	versions := stringList(m["supportedVersions"])
	if versions == nil {
		return Discovery{Signal: "a result without a list of supportedVersions"}
	}
	if !isObject(m["capabilities"]) {
		return Discovery{Signal: "a result without capabilities"}
	}
	_, _, warnings := catalog.CacheHints(m, "server/discover")
	tools := object(m["capabilities"])["tools"]
	return Discovery{Kind: DiscoverValid, Signal: "a DiscoverResult", Versions: versions,
		HasTools: isObject(tools), ListChanged: object(tools)["listChanged"].Kind() == 't', Warnings: warnings}
}

// stringList reads a non-empty list of strings; nil if v is anything else.
func stringList(v jsontext.Value) []string {
	var out []string
	good := true
	if !elements(v, func(e jsontext.Value) {
		s, ok := text(e)
		good = good && ok
		out = append(out, s)
	}) || !good {
		return nil
	}
	return out
}

// ModernEvidence reports whether a frame, whatever its id, shows modern
// behaviour: an error with a recognised modern code, or a valid
// DiscoverResult. Either rules legacy out for the incarnation.
func ModernEvidence(frame []byte) bool {
	m, err := ParseMessage(frame)
	if err != nil {
		return false
	}
	if code, _, ok := rpcError(m.Error); ok && isModernCode(code) {
		return true
	}
	return m.Is2() && m.Error == nil && m.Result != nil && classifyDiscoverResult(m.Result).Kind == DiscoverValid
}

// modernWords are what only a server that speaks the modern vocabulary writes.
var modernWords = [][]byte{[]byte("-32020"), []byte("-32021"), []byte("-32022"), []byte(`"supportedVersions"`)}

// SuggestsModern reports whether a line, even one that is no message, shows
// modern behaviour: ModernEvidence, or a word of the modern vocabulary in a
// broken frame, a batch or a message with a method. In doubt legacy is ruled
// out.
func SuggestsModern(line []byte) bool {
	for _, w := range modernWords {
		if bytes.Contains(line, w) {
			return true
		}
	}
	return ModernEvidence(line)
}

// commonVersion returns the highest modern version in offered that Waybill
// speaks, or "".
func commonVersion(offered []string) string {
	for _, known := range ModernVersions {
		for _, v := range offered {
			if v == known {
				return known
			}
		}
	}
	return ""
}

func legacyOnly(offered []string) bool {
	for _, v := range offered {
		if !contains(LegacyRevisions, v) {
			return false
		}
	}
	return true
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// Initialization is what an answer to initialize says. Code is "" where it is
// positive legacy evidence.
type Initialization struct {
	Code     Code
	Signal   string
	Revision string
	HasTools bool
}

// ClassifyInitialize reads an answer to initialize that carries its id. Legacy
// is selected only with jsonrpc "2.0", exactly one result, a configured
// revision, object capabilities and a non-empty server identity (seed 2.1.0,
// rule 4).
func ClassifyInitialize(frame []byte, revisions []string) Initialization {
	m, err := ParseMessage(frame)
	switch {
	case err != nil:
		return Initialization{Code: CodeLegacyInvalid, Signal: "not a JSON-RPC message"}
	case ModernEvidence(frame):
		return Initialization{Code: CodeModernEvidence, Signal: "a modern error or a DiscoverResult"}
	case !m.Is2():
		return Initialization{Code: CodeLegacyInvalid, Signal: `jsonrpc that is not "2.0"`}
	case m.Method != nil:
		return Initialization{Code: CodeLegacyInvalid, Signal: "a message that has a method"}
	case m.Result != nil && m.Error != nil:
		return Initialization{Code: CodeLegacyInvalid, Signal: "both result and error"}
	case m.Error != nil:
		return initializeError(m.Error)
	case m.Result == nil:
		return Initialization{Code: CodeLegacyInvalid, Signal: "neither result nor error"}
	}
	return classifyInitializeResult(m.Result, revisions)
}

func initializeError(v jsontext.Value) Initialization {
	if code, _, ok := rpcError(v); ok {
		return Initialization{Code: CodeLegacyError, Signal: fmt.Sprintf("error %d", code)}
	}
	return Initialization{Code: CodeLegacyError, Signal: "an error without an integer code"}
}

func classifyInitializeResult(v jsontext.Value, revisions []string) Initialization {
	m := object(v)
	if m == nil {
		return Initialization{Code: CodeLegacyInvalid, Signal: "a result that is no object"}
	}
	revision, ok := text(m["protocolVersion"])
	if !ok {
		return Initialization{Code: CodeLegacyInvalid, Signal: "a result without protocolVersion"}
	}
	if !contains(revisions, revision) || !contains(LegacyRevisions, revision) {
		return Initialization{Code: CodeLegacyRevision, Signal: "revision " + shorten(revision) + ", which legacy_revisions of this peer does not hold"}
	}
	if !isObject(m["capabilities"]) {
		return Initialization{Code: CodeLegacyInvalid, Signal: "capabilities that are no object"}
	}
	if !identified(m["serverInfo"]) {
		return Initialization{Code: CodeLegacyInvalid, Signal: "a serverInfo without name and version"}
	}
	return Initialization{Revision: revision, Signal: "an initialize result",
		HasTools: isObject(object(m["capabilities"])["tools"])}
}

func identified(serverInfo jsontext.Value) bool {
	m := object(serverInfo)
	name, _ := text(m["name"])
	version, _ := text(m["version"])
	return name != "" && version != ""
}

// shorten makes a peer's word fit for a sentence of ours: quoted, and short.
func shorten(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most]
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(s, "?"))
}
