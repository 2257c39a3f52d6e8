// Package waybill is the root of the module and holds no code of the program: only its rules, as tests.
//
// Waybill holds many MCP servers (peers) for the programs that call their tools (hosts). A host submits a call on a NATS
// subject and gets one reply; everything Waybill was told and everything it chose on the way is an event in a log that an
// auditor can take, alone, and replay.
//
// Begin with README.md for what it does, then ARCHITECTURE.md for how the rooms divide the work. In the code, begin with
// package domain, which decides; then events, which writes decisions down; then harness, which acts on them. rules_test.go
// says what may stand where, and why.
package waybill
