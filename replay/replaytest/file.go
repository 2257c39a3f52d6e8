package replaytest

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"

	"waybill/replay"
)

// A Header is the first line of a log in a text file, of JSON lines. What
// follows it is one row of the log a line:
//
//	{"record":{"seq":1,"type":"...","peer":"...","call":"...","leaf":"<hex>","envelope":"<the exact bytes>"}}
//	{"root":{"size":1,"hash":"<hex>"}}
//	{"tile":{"level":0,"index":0,"hashes":"<base64>"}}
//	{"evidence":{"digest":"<hex>","bytes":"<base64>"}}
type Header struct {
	Log   string `json:"log"`
	About string `json:"about"`
	Want  *Want  `json:"want,omitempty"` // nil: it is whole, and every decision agrees
}

// Want says what is found wrong with a log.
type Want struct {
	By   string `json:"by"`   // verify, or replay of a log that verifies
	Code string `json:"code"` // altered, undecidable, or a divergence: different, extra, missing
	Seq  int64  `json:"seq"`
}

type line struct {
	Record   *recordLine   `json:"record,omitempty"`
	Root     *rootLine     `json:"root,omitempty"`
	Tile     *replay.Tile  `json:"tile,omitempty,case:ignore"`
	Evidence *evidenceLine `json:"evidence,omitempty"`
}

type recordLine struct {
	Seq      int64  `json:"seq"`
	Type     string `json:"type"`
	Peer     string `json:"peer"`
	Call     string `json:"call"`
	Leaf     string `json:"leaf"`
	Envelope string `json:"envelope"`
}

type rootLine struct {
	Size int64  `json:"size"`
	Hash string `json:"hash"`
}

type evidenceLine struct {
	Digest string `json:"digest"`
	Bytes  []byte `json:"bytes"`
}
