// Package config reads waybill.yaml and waybill.lock, and says what they mean
// for each peer: its program, its environment, and whether its pin allows it to
// start. It reports every mistake it finds, with file, line and key.
//
// What may not enter: starting a program, the network, the log, or a decision
// about a peer's behaviour. It reads files and the environment it is handed,
// and it prints nothing. Values of secret_env leave it in two forms only: in
// the environment of a peer, and inside a redact.Redactor.
package config
