package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/events"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/bus/stream"
	"waybill/harness/heads"
	"waybill/store"
)

// streams are what a running service has of the log in JetStream.
type streams struct {
	publisher   *stream.Publisher
	checkpoints *stream.Checkpoints
	public      *stream.Public // nil without a curator
	gate        *stream.Gate
}

// startStreams begins to copy the log and to publish its heads, and refuses calls
// while the copy is too far behind.
func (s *server) startStreams() (err error) {
	id, conf := s.log.ID(), s.file.NATS
	s.publisher, err = stream.NewPublisher(s.users.Events, stream.PublisherConfig{Prefix: prefix, LogID: id, Logger: s.app.logger,
		MaxBytes: conf.MaxBytes, MaxAge: conf.MaxAge, Replicas: conf.Replicas, Since: s.engine.Feed.Head(), Mark: mark}, source{s.node})
	if err != nil {
		return err
	}
	s.checkpoints, err = stream.NewCheckpoints(s.users.Events, stream.CheckpointsConfig{Prefix: prefix, LogID: id, Replicas: conf.Replicas, Holds: s.holds})
	if err != nil {
		return err
	}
	s.gate = stream.NewGate(conf.MaxLag, func() int64 { return s.publisher.Lag(s.engine.Feed.Head()) })
	s.engine.Loop.SetGate(s.refusal)
	s.engine.Attend("publisher", s.publish)
	publish := s.checkpoints.Publish
	s.outlet.Store(&publish)
	return errors.Join(s.startReading(), s.publishLastHead())
}

// holds says whether the log contains what a checkpoint in JetStream says of it: two
// histories must not be published under one key.
func (s *server) holds(ctx context.Context, note []byte) error {
	keys, err := s.dir.Keys(s.log.ID(), s.log.PublicKey())
	if err != nil {
		return err
	}
	_, err = heads.Held(ctx, s.log.Reader(), keys, note, "the last checkpoint in JetStream")
	return err
}

// publish copies the log. A fork ends it for this life, and is recorded.
func (s *server) publish(ctx context.Context) error {
	err := s.publisher.Run(ctx)
	var fork *stream.ForkError
	if errors.As(err, &fork) {
		s.engine.Loop.Report(domain.StreamForked{Stream: fork.Stream, Seq: fork.Seq, Log: fork.Log, Copy: fork.Copy}, nil, nil)
	}
	return err
}

// publishLastHead makes up for a head that was signed before there was anywhere to
// publish it. If that fails, the next head stands for it.
func (s *server) publishLastHead() error {
	last, err := s.log.Reader().LastCheckpoint(s.app.ctx)
	if errors.Is(err, store.ErrNoCheckpoint) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.checkpoints.Publish(last.Note); err != nil {
		s.app.logger.Warn("the last checkpoint could not be published; the next one will be", "err", err)
	}
	return nil
}

// refusal is the code with which every call is refused, and why; "" for none.
func (s *server) refusal() (domain.Code, string) {
	lag, shut := s.gate.Shut()
	if !shut {
		return "", ""
	}
	return domain.CodeAuditLag, fmt.Sprintf("the stream is %d events behind the log, more than nats.max_lag lets it be; calls are taken again when it has caught up", lag)
}

// headHealth says how publishing the signed heads does.
type headHealth struct {
	Signed   int64  `json:"signed"`   // size of the last head in the log
	Position int64  `json:"position"` // size of the last one known to be in the stream
	Error    string `json:"error,omitempty"`
}

func (s *server) headHealth() headHealth {
	h := headHealth{Signed: s.heads.Position(), Position: s.checkpoints.Position()}
	if err := s.checkpoints.Err(); err != nil {
		h.Error = err.Error()
	}
	return h
}

// printStreams tells people how the streams do, from the answer to the verb status.
func printStreams(a *app, service []byte) {
	var r statusReply
	if json.Unmarshal(service, &r) != nil {
		return // another version answers
	}
	fmt.Fprintf(a.out, "stream: %s%s\nheads: signed up to event %d, published up to %d\n", r.Publisher.State, behind(r.Publisher.State, r.Publisher.Lag), r.Checkpoints.Signed, r.Checkpoints.Position)
	for _, reason := range []string{r.Publisher.Error, r.Checkpoints.Error} {
		if reason != "" {
			fmt.Fprintf(a.out, "  %s\n", reason)
		}
	}
	printPublic(a, r.Public)
	if r.Refusing != "" {
		fmt.Fprintf(a.out, "calls are refused: %s\n", r.Refusing)
	}
}

// behind says how far a copy is behind; nothing where it is, or may be, and by how much
// is not known.
func behind(state string, lag int64) string {
	if lag == 0 && state != stream.StateOK {
		return ""
	}
	return fmt.Sprintf(", %d events behind", lag)
}

// source is the log as the publisher reads it.
type source struct{ n *node }

// Read implements stream.Source.
func (s source) Read(ctx context.Context, after int64, max int) ([]stream.Event, error) {
	records, err := s.n.engine.Read(ctx, after, max)
	out := make([]stream.Event, 0, len(records))
	for _, r := range records {
		out = append(out, stream.Event{Seq: r.Seq, Type: r.Type, Bytes: r.Bytes, Subject: events.Subject(prefix, s.n.log.ID(), r.Type, r.Peer)})
	}
	return out, err
}

// Wait implements stream.Source.
func (s source) Wait(ctx context.Context, after int64) error {
	return s.n.engine.Feed.Gather(ctx, after, publishLinger)
}

type exportCmd struct {
	common
	Stream bool   `help:"What the JetStream stream holds, which is a copy of the log."`
	Out    string `short:"o" placeholder:"FILE" help:"Write to a new file, not to standard output."`
}

// Help is shown under the usage.
func (exportCmd) Help() string {
	return "Example:\n  waybill export --stream -o copy.jsonl\n  waybill-audit verify --against copy.jsonl .waybill/log.db\n\n" +
		"Writes the exact bytes of each message, one a line, from the running service or from nats.url. It compares nothing; see waybill-audit verify. " +
		"With -o and --json, says what was written. Exit 9 if there is nobody to ask. waybill-audit export writes the events of the log itself."
}

// Run writes what the stream holds.
func (c exportCmd) Run(a *app) error {
	if !c.Stream {
		return usageError(errors.New("say what to export: --stream; the events of the log itself are written by waybill-audit export"))
	}
	if c.wantJSON() && c.Out == "" {
		return usageError(errors.New("--json says what was written to a file: name it with -o"))
	}
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	where, err := a.streamAt(f)
	if err != nil {
		return err
	}
	if c.Out == "" {
		_, err := a.exportStream(where, a.out)
		return err
	}
	return c.toFile(a, where)
}

// toFile writes a file, whole and durable or not at all.
func (c exportCmd) toFile(a *app, where harness.Run) error {
	file, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usageError(err)
	}
	x, err := a.exportStream(where, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(c.Out))
	}
	if c.wantJSON() {
		return a.printJSON(struct {
			stream.Extent
			File string `json:"file"`
		}{x, c.Out})
	}
	fmt.Fprintf(a.out, "wrote %s: stream %s, %d messages, %d to %d\n", c.Out, x.Stream, x.Messages, x.First, x.Last)
	return nil
}

// streamAt says where the stream of the log is: at the running service, or at an
// outside server.
func (a *app) streamAt(f *config.File) (harness.Run, error) {
	run, err := dataDir(f).Running()
	var busy *harness.LockedError
	if err != nil && !errors.As(err, &busy) {
		return harness.Run{}, err
	}
	if run != nil {
		return *run, nil
	}
	if f.NATS.URL == "" {
		return harness.Run{}, notRunning("no service runs, and the stream of the embedded server is there only while it does: waybill serve")
	}
	l, err := store.OpenReader(dataDir(f).LogFile())
	if err != nil {
		return harness.Run{}, err
	}
	defer l.Close()
	return harness.Run{URL: f.NATS.URL, TLS: harness.RunTLS(f.NATS.TLS), Credentials: credentialsDir(f), Log: l.ID(), Prefix: prefix}, nil
}

// exportStream writes the messages of the stream as lines.
func (a *app) exportStream(from harness.Run, to io.Writer) (stream.Extent, error) {
	creds, err := bus.LoadCredentials(from.Credentials)
	if err != nil {
		return stream.Extent{}, &exitError{exit: exitConfig, code: "credentials", err: err}
	}
	where := target(from)
	where.Logger = a.logger
	nc, err := bus.Connect(creds.Service(), where)
	if err != nil {
		return stream.Extent{}, err
	}
	defer nc.Close()
	out := bufio.NewWriterSize(to, 256<<10)
	written, told := 0, time.Now()
	x, err := stream.Read(a.ctx, nc, from.Log, func(seq int64, b []byte) error {
		if bytes.IndexByte(b, '\n') >= 0 {
			return fmt.Errorf("message %d of the stream is not one line, as every event is: it is not what the log holds", seq)
		}
		if written++; time.Since(told) >= time.Second {
			told = time.Now()
			a.progress("waybill: %d messages written, the last is %d", written, seq)
		}
		_, _ = out.Write(b) // its error is kept, and Flush returns it
		return out.WriteByte('\n')
	})
	return x, errors.Join(err, out.Flush())
}
