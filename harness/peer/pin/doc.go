// Package pin finds the program of a peer and says, by hash, what it runs: the
// file, its interpreters, the arguments that are files, the argument list, the
// names in the environment, fixed values and the working directory. Of a peer that
// is an endpoint it holds the endpoint. A peer that is not there or differs from its
// pin is refused.
//
// What may not enter: starting a process, the network, the configuration file.
// The package reads files and decides nothing but equal or different; it may
// import domain.
package pin
