// Package lockfile reads and writes waybill.lock, which holds the pins of one
// configuration: the same pins give the same bytes.
//
// What may not enter: making a pin, comparing one, the configuration.
package lockfile
