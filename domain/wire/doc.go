// Package wire reads the JSON of one MCP message: its members, byte for byte as
// the peer wrote them, and what the protocol makes of an id and of an error.
// What a message means is for those who use it to say.
//
// What may not enter: input or output, clocks, any other package of this
// module. Nothing here panics, whatever bytes it is given, and nothing is kept.
package wire
