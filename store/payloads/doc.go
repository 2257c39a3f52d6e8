// Package payloads keeps the bytes of calls that never enter an event, in a file
// beside the log: arguments, results, input. Each call has a random key, under
// which its events name them and the bytes are sealed. Both can be erased, and are
// then in no file any more; what is left says which event erased them. Sealing
// hides nothing from who has the file: it makes erasing certain, see the schema.
package payloads
