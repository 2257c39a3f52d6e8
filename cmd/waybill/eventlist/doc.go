// Package eventlist is what the command events chooses and prints, apart from its flags.
// It reads a log and nothing else; it may import events, store and, to wait, harness,
// and no other folder of cmd/waybill.
package eventlist
