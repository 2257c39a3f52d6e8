package replaytest

import (
	"context"
	"sort"

	"waybill/events/checkpoint"
	"waybill/replay"
)

// The keys of every log that is made here, and those of somebody else. They are
// known to everybody.
const (
	Key        = "waybill/" + ID + "+6b5efb60+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"
	PrivateKey = "PRIVATE+KEY+waybill/" + ID + "+6b5efb60+AQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH"

	OtherKey        = "waybill/" + ID + "+eb777832+Af0XJDhaoMdbZPt4zWAvodmR/ev3axPFjtcC6sg16fYY"
	OtherPrivateKey = "PRIVATE+KEY+waybill/" + ID + "+eb777832+AQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJ"
)

// SignHead returns a checkpoint under any private key.
func SignHead(private string, h checkpoint.Head) []byte {
	s, _, err := checkpoint.NewSigner(private, h.Log)
	if err != nil {
		panic(err)
	}
	b, err := checkpoint.Sign(s, h)
	if err != nil {
		panic(err)
	}
	return b
}

// HeadAt returns the head that a well-made log had at any size.
func (l *Log) HeadAt(size int64) checkpoint.Head { return l.heads(size)[0] }

func (l *Log) heads(sizes ...int64) (out []checkpoint.Head) {
	hashes := &hashStore{}
	for i, r := range l.Rows {
		hashes.add(int64(i), r.Bytes)
	}
	for _, size := range sizes {
		out = append(out, checkpoint.Head{Log: l.Identity, Size: size, Root: hashes.root(size)})
	}
	return out
}

// Sign keeps checkpoints of these sizes, ascending, and returns the log.
func (l *Log) Sign(sizes ...int64) *Log {
	for _, h := range l.heads(sizes...) {
		l.Notes = append(l.Notes, replay.Checkpoint{Size: h.Size, Note: SignHead(PrivateKey, h)})
	}
	return l
}

// PublicKey implements [replay.Source].
func (l *Log) PublicKey() string { return Key }

// Checkpoints implements [replay.Source].
func (l *Log) Checkpoints(_ context.Context, after int64, max int) ([]replay.Checkpoint, error) {
	i := sort.Search(len(l.Notes), func(i int) bool { return l.Notes[i].Size > after })
	return atMost(l.Notes[i:], max), nil
}

// Strays implements [replay.Source]: what is only in memory has none.
func (l *Log) Strays(context.Context) (string, error) { return "", nil }
