// Package checkpoint signs and opens tree heads in the C2SP tlog-checkpoint
// format: three lines of text (origin, size, root) as a signed note with one
// Ed25519 signature.
//
// The origin is waybill/<log id>, and the signature bears the same name, as C2SP
// wants it, so that witnesses and other tools take our checkpoints as they are.
// The id of a log holds a hash of its key, and a key is written with a name; so
// a key is renamed here without being changed: one that was made under the name
// of the node signs and verifies like one that was made under that of the log.
//
// It may import nothing else of this module; it does no input or output.
package checkpoint
