package stream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
)

// ErrOtherCheckpoint says that the stream holds a checkpoint that is not of this
// history of the log: a later one, or another one of the same size.
var ErrOtherCheckpoint = errors.New("the stream holds a checkpoint of another history")

// CheckpointsConfig describes the stream of the signed heads of one log.
type CheckpointsConfig struct {
	Prefix   string
	LogID    string
	Replicas int           // of the stream, 1 if 0
	Patience time.Duration // with the server, for one checkpoint; 5 s if 0

	// Holds says whether the log contains what a checkpoint says of it, as far as
	// the log goes; nil for no such look. An error is that of another history.
	Holds func(ctx context.Context, note []byte) error
}

// Checkpoints publishes signed heads. Its methods may be called at once.
type Checkpoints struct {
	js  jetstream.JetStream
	cfg CheckpointsConfig

	publishing sync.Mutex // held by Publish
	known      bool       // seq and last are those of the stream
	seq        uint64     // of the last message in the stream, 0 for none
	last       []byte     // that message

	mu       sync.Mutex
	position int64
	err      error
}

// NewCheckpoints makes a publisher of heads on the connection of the service. It
// does not speak to the server yet.
func NewCheckpoints(nc *nats.Conn, cfg CheckpointsConfig) (*Checkpoints, error) {
	if err := bus.CheckSpace(cfg.Prefix, cfg.LogID); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	cfg.Patience = cmp.Or(cfg.Patience, 5*time.Second)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(cfg.Patience))
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	return &Checkpoints{js: js, cfg: cfg}, nil
}

// Position is the size of the last checkpoint that is known to be in the stream,
// 0 for none.
func (c *Checkpoints) Position() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.position
}

// Err is what kept the last checkpoint from being published; nil if nothing did.
func (c *Checkpoints) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Publish returns when the server has the checkpoint, within the patience of the
// configuration. One that the stream has already is not published again, and one
// that is older than the last one published here needs not be: the newer stands
// for it. After an error it may be in the stream, and may be published again.
func (c *Checkpoints) Publish(note []byte) error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	size, err := sizeOf(note)
	if err == nil && size <= c.Position() {
		return nil
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.Patience)
		defer cancel()
		err = c.publish(ctx, size, note)
	}
	if err != nil {
		c.known = false
		err = fmt.Errorf("stream %s: %w", bus.CheckpointStreamName(c.cfg.LogID), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err = err; err == nil {
		c.position = size
	}
	return err
}

func (c *Checkpoints) publish(ctx context.Context, size int64, note []byte) error {
	if !c.known {
		if err := c.look(ctx); err != nil {
			return err
		}
	}
	if c.last != nil {
		before, err := sizeOf(c.last)
		switch {
		case bytes.Equal(c.last, note):
			return nil // it had arrived
		case err != nil || before >= size:
			return fmt.Errorf("%w: of %d events, and this one is of %d; what is published has stopped there, the log has not", ErrOtherCheckpoint, before, size)
		}
	}
	ack, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: bus.CheckpointSubject(c.cfg.Prefix, c.cfg.LogID), Data: note},
		jetstream.WithMsgID(strconv.FormatInt(size, 10)), jetstream.WithExpectLastSequencePerSubject(c.seq))
	if err != nil {
		return fmt.Errorf("publish the checkpoint of %d events: %w", size, explain(err, checkpointStream(c.cfg)))
	}
	if ack.Duplicate {
		return fmt.Errorf("the checkpoint of %d events was in the stream before", size) // the next look compares the bytes
	}
	c.seq, c.last = ack.Sequence, bytes.Clone(note)
	return nil
}

// look reads the last message of the stream, which may have come with an
// acknowledgement that was lost.
func (c *Checkpoints) look(ctx context.Context) error {
	s, err := open(ctx, c.js, checkpointStream(c.cfg))
	if err != nil {
		return err
	}
	c.seq, c.last = 0, nil
	msg, err := s.GetLastMsgForSubject(ctx, bus.CheckpointSubject(c.cfg.Prefix, c.cfg.LogID))
	switch {
	case err == nil:
		c.seq, c.last = msg.Sequence, append([]byte{}, msg.Data...)
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return fmt.Errorf("read the last checkpoint: %w", explain(err, checkpointStream(c.cfg)))
	}
	if c.last != nil && c.cfg.Holds != nil {
		if err := c.cfg.Holds(ctx, c.last); err != nil {
			return fmt.Errorf("%w: %w; what is published has stopped there, the log has not", ErrOtherCheckpoint, err)
		}
	}
	c.known = true
	return nil
}

// sizeOf reads the number of events out of the second line of a checkpoint.
func sizeOf(note []byte) (int64, error) {
	lines := bytes.SplitN(note, []byte("\n"), 3)
	if len(lines) == 3 {
		if n, err := strconv.ParseInt(string(lines[1]), 10, 64); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, errors.New("no checkpoint: its second line is no size")
}
