package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus/access"
)

const (
	keeperPatience = 4 * time.Second // with the server; clients wait for five

	// What JetStream calls a consumer that could not be made.
	codeConsumerCreate jetstream.ErrorCode = 10012

	createResponse = "io.nats.jetstream.api.v1.consumer_create_response"
)

// ErrPushConsumer says that a reader asked for a consumer that pushes. It would
// deliver among the subjects of the stream, wherever the reader says.
var ErrPushConsumer = errors.New("readers have consumers that are pulled from: leave deliver_subject out")

// Keeper makes consumers for who may read streams and not write to them. To readers
// it is JetStream; see package bus for why they may not ask JetStream itself. It has
// no say in what a consumer yields: a reader may read the whole stream. Existing
// consumers need no keeper, and neither do reads without one (DIRECT.GET). A
// consumer belongs to no reader: who knows its name can use it.
type Keeper struct {
	nc   *nats.Conn
	log  *slog.Logger
	subs []*nats.Subscription
}

// NewKeeper begins to serve the readers of streams on the connection of a user that
// may make consumers on them. Stop it, or close the connection.
func NewKeeper(nc *nats.Conn, prefix string, log *slog.Logger, streams ...string) (*Keeper, error) {
	k := &Keeper{nc: nc, log: log}
	for _, name := range streams {
		root := access.ReadRoot(prefix, name)
		sub, err := nc.Subscribe(root+">", func(m *nats.Msg) { k.answer(m, name, strings.TrimPrefix(m.Subject, root)) })
		if err != nil {
			k.Stop()
			return nil, fmt.Errorf("serve the readers of stream %s: %w", name, err)
		}
		k.subs = append(k.subs, sub)
	}
	return k, nil
}

// Stop takes no more requests. One that is being served goes on until it is answered
// or the connection is closed.
func (k *Keeper) Stop() {
	for _, sub := range k.subs {
		_ = sub.Unsubscribe() // fails only if the connection is gone
	}
}

// answer passes one request on, and its answer back as it came.
func (k *Keeper) answer(m *nats.Msg, stream, wish string) {
	reply, err := k.make(stream, wish, m.Data)
	if err != nil {
		reply = refusedConsumer(err)
	}
	if err := m.Respond(reply); err != nil {
		k.log.Warn("a reader was not answered", "stream", stream, "err", err)
	}
}

func (k *Keeper) make(stream, wish string, request []byte) ([]byte, error) {
	subject, err := createSubject(stream, wish)
	if err != nil {
		return nil, err
	}
	body, err := pullOnly(stream, request)
	if err != nil {
		return nil, err
	}
	msg, err := k.nc.Request(subject, body, keeperPatience)
	if err != nil {
		return nil, fmt.Errorf("JetStream does not answer: %w", err)
	}
	return msg.Data, nil
}

// createSubject is where JetStream takes what a reader has asked for.
func createSubject(stream, wish string) (string, error) {
	what, rest, more := strings.Cut(wish, ".")
	switch {
	case what == "create" && !more:
		return "$JS.API.CONSUMER.CREATE." + stream, nil
	case what == "create":
		return "$JS.API.CONSUMER.CREATE." + stream + "." + rest, nil
	case what == "durable" && more:
		return "$JS.API.CONSUMER.DURABLE.CREATE." + stream + "." + rest, nil
	}
	return "", errors.New("no request for a consumer")
}

// wish is a request for a consumer as JetStream reads it.
type wish struct {
	Stream   string                   `json:"stream_name"`
	Config   jetstream.ConsumerConfig `json:"config"`
	Action   string                   `json:"action"`
	Pedantic bool                     `json:"pedantic,omitempty"`
}

// pullOnly reads a request and writes it anew, so that JetStream cannot find in it
// what was not found here.
func pullOnly(stream string, request []byte) ([]byte, error) {
	var w wish
	if err := json.Unmarshal(request, &w); err != nil {
		return nil, fmt.Errorf("the request is no JSON as it should be: %w", err)
	}
	if w.Stream != stream {
		return nil, fmt.Errorf("the request names stream %q and not %q as its subject does", w.Stream, stream)
	}
	if w.Config.DeliverSubject != "" || w.Config.DeliverGroup != "" || w.Config.FlowControl || w.Config.IdleHeartbeat != 0 {
		return nil, ErrPushConsumer
	}
	return json.Marshal(w)
}

func refusedConsumer(err error) []byte {
	b, _ := json.Marshal(map[string]any{ // cannot fail: strings and numbers
		"type":  createResponse,
		"error": map[string]any{"code": 400, "err_code": codeConsumerCreate, "description": err.Error()},
	})
	return b
}
