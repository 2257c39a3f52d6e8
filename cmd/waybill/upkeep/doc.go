// Package upkeep is what the commands backup, restore and status do and print,
// apart from their flags: it joins the store, the care of a data directory and
// the verifier, and owns the shape of their JSON. It may import everything that
// cmd/waybill may, but not that folder itself.
package upkeep
