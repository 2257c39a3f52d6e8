package main

import (
	"encoding/hex"
	"fmt"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/events/checkpoint"
	"waybill/replay"
)

type verifyCmd struct {
	target
	Key        string   `placeholder:"KEY" help:"The public key of the log as it was kept elsewhere, or a file that holds it."`
	Checkpoint []string `placeholder:"FILE" sep:"none" help:"A checkpoint that was kept elsewhere: the log must contain it. Can be given again."`
	Against    string   `placeholder:"FILE" help:"A copy of the events, one a line, such as waybill export --stream writes."`
}

// Help is shown under the usage.
func (verifyCmd) Help() string {
	return "Example:\n  waybill-audit verify .waybill/log.db\n" +
		"  waybill-audit verify --key kept/log.pub --checkpoint kept/checkpoint --against copy.jsonl .waybill/log.db\n\n" +
		"Reads every byte: events, leaf hashes, tiles, roots, evidence, checkpoints with their signatures. A log alone cannot show that its end " +
		"was cut off, or that it was made anew under another key: that takes what was kept elsewhere. A copy may begin late, where its head " +
		"aged out, and end early; both are said. Exit 0 whole, 20 altered, 22 written by a newer waybill."
}

// Run verifies the log.
func (c verifyCmd) Run(a *app) error {
	l, err := logfile.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	kept, err := c.kept()
	if err != nil {
		return err
	}
	v, err := replay.VerifyAgainst(a.ctx, a.watched(l, "verified"), kept)
	if err != nil {
		return err
	}
	if c.Key != "" && v.Size > 0 && v.Checkpoints == 0 {
		return &replay.AlteredError{What: "no checkpoint is stored in it, so nothing in it is signed by the key that was kept elsewhere"}
	}
	var same *copied
	if c.Against != "" {
		if same, err = compare(a.ctx, l, c.Against); err != nil {
			return err
		}
	}
	return c.print(a, v, same)
}

func (c verifyCmd) kept() (k replay.Kept, err error) {
	if c.Key != "" {
		if k.Key, err = readKey(c.Key); err != nil {
			return k, err
		}
	}
	for _, name := range c.Checkpoint {
		b, err := readSmall(name)
		if err != nil {
			return k, err
		}
		k.Checkpoints = append(k.Checkpoints, b)
	}
	return k, nil
}

func (c verifyCmd) print(a *app, v replay.Verified, same *copied) error {
	root, key := hex.EncodeToString(v.Root[:]), v.Key
	if named, err := checkpoint.PublicKey(key, v.Log); err == nil {
		key = named
	}
	if c.JSON {
		return a.printJSON(struct {
			Log         string  `json:"log"`
			Size        int64   `json:"size"`
			Root        string  `json:"root"`
			HeadSeq     int64   `json:"head_seq"`
			Evidence    int64   `json:"evidence"`
			Checkpoints int64   `json:"checkpoints"`
			Signed      int64   `json:"signed"` // size of the last checkpoint
			Key         string  `json:"key"`
			Copy        *copied `json:"copy,omitzero"`
		}{v.Log, v.Size, root, v.Size, v.Evidence, v.Checkpoints, v.Signed, key, same})
	}
	fmt.Fprintf(a.out, "log %s: %d events whole and unaltered, %d pieces of evidence\n", v.Log, v.Size, v.Evidence)
	fmt.Fprintln(a.out, c.signatures(v, key))
	if same != nil {
		fmt.Fprintf(a.out, "copy %s: events %d to %d are the same%s\n", c.Against, same.First, same.Last, same.lacks())
	}
	_, err := fmt.Fprintf(a.out, "head %d, root %s\n", v.Size, root)
	return err
}

func (c verifyCmd) signatures(v replay.Verified, key string) string {
	if v.Checkpoints == 0 {
		return "no checkpoint is stored: nothing shows who wrote it"
	}
	own := ", which is the log's own word for it: see --key"
	switch kept, err := readKey(c.Key); {
	case c.Key == "":
	case err == nil && checkpoint.SameKey(kept, v.Key):
		own = ", which was kept elsewhere"
	default:
		own = ", which it has now; the one that was kept elsewhere is one it had before"
	}
	return fmt.Sprintf("%d checkpoints, the last of %d events, signed by %s%s", v.Checkpoints, v.Signed, key, own)
}
