package domain

import (
	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain/wire"
)

// Message is one JSON-RPC message split into its members.
type Message = wire.Message

// ParseMessage splits one frame; see package wire.
func ParseMessage(frame []byte) (Message, error) { return wire.ParseMessage(frame) }

// DoubtfulID returns the id of a frame that is an answer and cannot be read as one;
// see package wire.
func DoubtfulID(frame []byte) (id int64, ok bool) { return wire.DoubtfulID(frame) }

// The recognised modern error codes.
const (
	rpcHeaderMismatch    = wire.HeaderMismatch
	rpcCapabilityMissing = wire.CapabilityMissing
	rpcVersionRefused    = wire.VersionRefused
)

func members(b []byte, f func(key string, value jsontext.Value)) error { return wire.Members(b, f) }

func elements(b jsontext.Value, f func(value jsontext.Value)) bool { return wire.Elements(b, f) }

func object(v jsontext.Value) map[string]jsontext.Value { return wire.Object(v) }

func isObject(v jsontext.Value) bool { return wire.IsObject(v) }

func text(v jsontext.Value) (string, bool) { return wire.Text(v) }

func rpcError(v jsontext.Value) (code int64, data jsontext.Value, ok bool) { return wire.RPCError(v) }

func isModernCode(code int64) bool { return wire.IsModernCode(code) }

func depth(v jsontext.Value) int { return wire.Depth(v) }
