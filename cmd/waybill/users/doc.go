// Package users makes and lists the credentials of hosts, auditors and dashboards, and
// says what is left to do before they are of use. It opens no log and connects to
// nothing.
package users
