package main

import (
	"bufio"
	"bytes"
	"errors"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/replay"
)

type exportCmd struct {
	target
	Whole bool `help:"Identity, evidence and checkpoints too: a file that every command takes in the place of a log."`
}

// Help is shown under the usage.
func (exportCmd) Help() string {
	return "Example:\n  waybill-audit export .waybill/log.db > events.jsonl\n  waybill-audit export --whole .waybill/log.db > log.jsonl && waybill-audit replay log.jsonl\n\n" +
		"Each line is hashed into the tree as it stands, without its line feed. It verifies nothing; see verify."
}

// Run prints all events. The output is the same with and without --json.
func (c exportCmd) Run(a *app) error {
	l, err := logfile.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	if c.Whole {
		return l.Export(a.ctx, a.out)
	}
	out := bufio.NewWriterSize(a.out, 256<<10)
	return errors.Join(c.write(a, l, out), out.Flush())
}

func (c exportCmd) write(a *app, l logfile.Log, out *bufio.Writer) error {
	for after := int64(0); ; {
		records, err := l.Read(a.ctx, after, 512)
		if err != nil || len(records) == 0 {
			return err
		}
		for _, r := range records {
			if bytes.IndexByte(r.Bytes, '\n') >= 0 {
				return &replay.AlteredError{Seq: r.Seq, What: "it is not one line, as every event is"}
			}
			after = r.Seq
			// An error of the writer is kept, and Flush returns it.
			_, _ = out.Write(r.Bytes)
			_ = out.WriteByte('\n')
		}
	}
}
