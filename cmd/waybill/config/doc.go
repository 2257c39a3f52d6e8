// Package config reads waybill.yaml and waybill.lock, and says what they mean
// for each peer: its program and environment, or its endpoint and what it is asked
// with, and whether its pin allows it to start. It reports every mistake it finds,
// with file, line and key.
//
// What may not enter: starting a program, the network, the log, or a decision
// about a peer's behaviour. It reads files and the environment it is handed,
// and it prints nothing. Values of secret_env leave it in two forms only: in
// the environment of a peer or of a token command, and inside a redact.Redactor;
// tokens and headers inside a Redactor and in the credentials of a peer.
package config
