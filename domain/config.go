package domain

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Collision policies. A silent overwrite is none of them.
const (
	PrefixOnCollision = "prefix-on-collision"
	RejectOnCollision = "reject-on-collision"
	PrefixAlways      = "prefix-always"
)

// The transports.
const (
	TransportStdio = "stdio"
	TransportHTTP  = "http" // Streamable HTTP
)

// DefaultContext is the authorization context of a stdio peer: it has just one.
const DefaultContext = "default"

// Config is the part of a configuration that decisions rest on, with what was
// found on disk when it was loaded. Its JSON bytes are the evidence of
// config.loaded. It holds no environment values and no argument texts.
type Config struct {
	Node        string       `json:"node"`
	Collision   string       `json:"collision"`
	Separator   string       `json:"separator"`
	Inflight    int          `json:"inflight"`                       // calls under way at once, all peers together
	Peers       []PeerConfig `json:"peers"`                          // sorted by name
	Retention   int64        `json:"payload_retention_ms,omitzero"`  // of kept payloads; 0: until they are erased
	Moved       int64        `json:"moved_window_ms,omitzero"`       // MovedWindow where 0
	Partial     bool         `json:"partial_merges,omitzero"`        // namespaces are digested, and their lists named, in parts
	Idempotency int64        `json:"idempotency_window_ms,omitzero"` // IdempotencyWindow where 0
	Hosts       []HostConfig `json:"hosts,omitzero"`                 // sorted by name; nil: every host may use everything, in the default context
}

// HostConfig says what one host may use. A host that is not named where others are
// may use nothing.
type HostConfig struct {
	Name    string   `json:"name"`
	Context string   `json:"context"`         // authorization context
	Peers   []string `json:"peers,omitempty"` // nil: all
	Tools   []string `json:"tools,omitempty"` // canonical names, or beginnings of them followed by *; nil: all
}

// PeerConfig is one peer of a Config. Times are in milliseconds.
type PeerConfig struct {
	Name               string         `json:"name"`
	Transport          string         `json:"transport"`
	Command            string         `json:"command"` // as configured
	Pin                string         `json:"pin"`     // digest of the lock entry, "" where there is none
	Refusal            Code           `json:"refusal,omitempty"`
	RefusalReason      string         `json:"refusal_reason,omitempty"`
	Warnings           []string       `json:"warnings,omitempty"`
	AllowLegacy        bool           `json:"allow_legacy"`
	LegacyRevisions    []string       `json:"legacy_revisions"`
	ProbeTimeout       int64          `json:"probe_timeout_ms"`
	LegacyProbeTimeout int64          `json:"legacy_probe_timeout_ms"`
	CallTimeout        int64          `json:"call_timeout_ms"`
	Capabilities       jsontext.Value `json:"capabilities"` // what may be declared to this peer; an object
	TrustHints         bool           `json:"trust_hints"`
	Repeatable         []string       `json:"repeatable"`

	// What follows is left out where it is 0: a rule that was not configured is
	// not followed.
	ListTimeout  int64             `json:"list_timeout_ms,omitzero"`   // of a page; probe_timeout where 0
	CallLimit    int64             `json:"call_limit_ms,omitzero"`     // of an exchange, however much progress there is
	IdleTimeout  int64             `json:"idle_timeout_ms,omitzero"`   // after progress; call_timeout where 0
	Inflight     int               `json:"inflight,omitzero"`          // calls under way at this peer
	Resends      int               `json:"resends,omitzero"`           // times one call is sent again by itself
	Idempotency  map[string]string `json:"idempotency,omitzero"`       // local tool to the argument it honours as a key
	InputRounds  int               `json:"input_rounds,omitzero"`      // exchanges after an input_required
	InputWindow  int64             `json:"input_window_ms,omitzero"`   // from the first routing to the last submission
	RefuseOutput bool              `json:"refuse_output,omitzero"`     // a result that does not match its outputSchema
	HungAfter    int               `json:"hung_after,omitzero"`        // calls in a row that a silent peer lets pass
	HealthEvery  int64             `json:"health_every_ms,omitzero"`   // between two requests for a sign of life
	HealthWithin int64             `json:"health_timeout_ms,omitzero"` // for its answer
	Attempts     int               `json:"attempts,omitzero"`          // starts in a row before quarantine; 8 where 0
	Keep         bool              `json:"keep_payloads,omitzero"`     // the bytes of its calls are kept
	Quarantine   int64             `json:"quarantine_ms,omitzero"`     // until the next start after it; 10 minutes where 0
	Contexts     []string          `json:"contexts,omitzero"`          // authorization contexts, sorted; the default one where nil
	Endpoint     string            `json:"endpoint,omitzero"`          // of a peer whose transport is HTTP
	Credentials  map[string]string `json:"credentials,omitzero"`       // context to the name of the authorization it asks with
	Lists        *ListRules        `json:"lists,omitzero"`             // nil: lists are read once, when the peer comes up
}

// ListRules say how the lists of a peer are kept. Times are in milliseconds.
type ListRules struct {
	Interval int64 `json:"interval_ms"`                // between two readings of one list, at least; 1 or more
	Refresh  int64 `json:"refresh_ms,omitzero"`        // a list is read again after so long; 0 for never
	Stale    int64 `json:"stale_ms"`                   // a list that cannot be read again is served for so long
	Listen   int64 `json:"listen_timeout_ms,omitzero"` // for the acknowledgement of a subscription; 0 opens none
	Hold     bool  `json:"hold_changed,omitzero"`      // changed tools are not routed until they are approved
	Distrust bool  `json:"distrust_public,omitzero"`   // a public list is not shared between contexts
}

// EncodeConfig returns the bytes that stand as the evidence of config.loaded:
// the same Config gives the same bytes.
func EncodeConfig(c Config) ([]byte, error) { return json.Marshal(c, json.Deterministic(true)) }

// DecodeConfig reads what EncodeConfig wrote.
func DecodeConfig(b []byte) (Config, error) {
	var c Config
	err := json.Unmarshal(b, &c, json.RejectUnknownMembers(true))
	return c, err
}

// namingDigest identifies a configuration as far as names go: the policy and
// the peers, not what happened to be found on disk. The first start of a
// configuration is the first merge under this digest.
func namingDigest(c Config) string {
	var b []byte
	b = appendField(b, c.Collision)
	b = appendField(b, c.Separator)
	for _, p := range c.Peers {
		b = appendField(b, p.Name)
		b = appendField(b, p.Transport)
		b = appendField(b, p.Command)
		if p.Transport == TransportHTTP {
			b = appendField(b, p.Endpoint)
		}
	}
	return digest(b)
}

// ValidName reports whether s can name a peer, a node, a host or an
// authorization context: [a-z0-9][a-z0-9_-]{0,62}.
func ValidName(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '_' || s[0] == '-' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// Ref points at evidence kept with the log.
type Ref struct {
	Digest string `json:"digest"` // SHA-256, hex
	Size   int64  `json:"size"`   // bytes
}

// RefTo returns the reference to b.
func RefTo(b []byte) Ref { return Ref{Digest: digest(b), Size: int64(len(b))} }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// appendField appends a string so that no two lists of strings give the same
// bytes.
func appendField(b []byte, s string) []byte {
	n := len(s)
	b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return append(b, s...)
}
