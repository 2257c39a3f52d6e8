// Command waybill holds many MCP servers for the programs that call their
// tools, and records every decision on the way.
//
// This folder is flags, configuration, wiring and signals: it opens the data
// directory, hands peers and the bus to the harness, and prints. It decides
// nothing. It may import everything of the module, starts no goroutine and uses
// the clock for display alone.
package main
