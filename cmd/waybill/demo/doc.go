// Package demo is the three MCP servers that waybill demo talks to, each run as
// a process of its own: two modern ones written with the official SDK, which
// share the tool name search, and one written by hand that speaks only
// 2025-11-25. It imports nothing of this module: to Waybill they are strangers.
package demo
