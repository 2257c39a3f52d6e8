// Package doctor looks at a data directory and says what is wrong with it and
// what to do.
//
// It reads and never changes anything: no file is made, migrated, repaired or
// removed, and no lock is taken but for the instant of looking at it. So it may be
// run beside a service, and on a directory that no service can open. What it finds
// is data: a severity, a short stable code, where, what and what to do. It may
// import everything that cmd/waybill may, but not that folder itself.
package doctor
