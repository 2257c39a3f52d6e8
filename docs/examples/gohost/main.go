package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

// reply is what a host reads of the answer to a call. There is more in it; what a
// host does not know it passes over.
type reply struct {
	CallID string          `json:"call_id"`
	Status string          `json:"status"` // complete, tool_error, refused, ...
	Ran    string          `json:"ran"`    // yes, no, maybe
	Code   *string         `json:"code"`   // null where all went well
	Reason string          `json:"reason"`
	Result json.RawMessage `json:"result"` // as the peer wrote it
}

func main() {
	if err := run(os.Getenv("NATS_URL"), os.Getenv("WAYBILL_KEY"), cmp.Or(os.Getenv("WAYBILL_HOST"), "local")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(url, key, host string) error {
	option, err := nats.NkeyOptionFromSeed(key) // the file that waybill init or waybill host add wrote
	if err != nil {
		return err
	}
	// The inbox is the host's own: a reply to any other subject is never sent.
	nc, err := nats.Connect(url, option, nats.CustomInboxPrefix("_INBOX."+host))
	if err != nil {
		return err
	}
	defer nc.Close()

	var tools struct {
		Generation int64
		Tools      []struct{ Canonical, Peer string }
	}
	if err := ask(nc, "tools", host, struct{}{}, &tools); err != nil {
		return err
	}
	for _, t := range tools.Tools {
		fmt.Printf("tool %s of %s\n", t.Canonical, t.Peer)
	}

	var r reply
	call := map[string]any{"tool": "search", "arguments": map[string]string{"query": "tea"}, "generation": tools.Generation}
	if err := ask(nc, "call", host, call, &r); err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", r.Status, r.Result)

	err = ask(nc, "call", host, map[string]any{"tool": "no such tool"}, &r)
	fmt.Println(err)
	return nil
}

// ask sends one request and reads its reply. An error means that it was refused, that
// nobody answers (nats.ErrNoResponders: no service runs) or that no answer came in
// time; the server tells of a subject that is not permitted apart from that, in
// nats.ErrorHandler.
func ask(nc *nats.Conn, verb, host string, body, into any) error {
	m := nats.NewMsg("waybill.v1." + verb + "." + host)
	m.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") // goes on to the peer
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	m.Data = data
	answer, err := nc.RequestMsg(m, time.Minute)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if code := answer.Header.Get("Nats-Service-Error"); code != "" {
		return fmt.Errorf("%s: %s (%s)", verb, code, answer.Header.Get("Nats-Service-Error-Code"))
	}
	return nil
}
