package main

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill/text"
)

func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", b)
	return err
}

// printReply prints JSON as it came, or indented for people.
func (a *app) printReply(reply []byte, asJSON bool) {
	if asJSON {
		fmt.Fprintf(a.out, "%s\n", reply)
		return
	}
	fmt.Fprintf(a.out, "%s\n", text.Indent(reply))
}

// count is a number of things in words.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
