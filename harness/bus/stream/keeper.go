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

const (
	// MaxConsumers is how many consumers one reader may have of one stream.
	MaxConsumers = 64

	// MaxIdle is how long a consumer of a reader stays that nobody uses, a durable
	// one too.
	MaxIdle = 10 * time.Minute
)

// ErrPushConsumer says that a reader asked for a consumer that pushes. It would
// deliver among the subjects of the stream, wherever the reader says.
var ErrPushConsumer = errors.New("readers have consumers that are pulled from: leave deliver_subject out")

// ErrChangeConsumer says that a reader asked for a consumer to be changed.
var ErrChangeConsumer = errors.New("a consumer is not changed: remove it and make it anew")

// ErrManyConsumers says that a reader has as many consumers of a stream as it may.
var ErrManyConsumers = fmt.Errorf("the reader has %d consumers of this stream, and may not have more: remove some, or wait %v for those that are not used to go", MaxConsumers, MaxIdle)

// Keeper makes consumers for who may read streams and not write to them. To readers
// it is JetStream; see package bus for why they may not ask JetStream itself. It has
// no say in what a consumer yields: a reader may read the whole stream. Existing
// consumers need no keeper, and neither do reads without one (DIRECT.GET). It makes
// no more than MaxConsumers for a reader of a stream, none that stays unused for
// longer than MaxIdle, and changes none. Beside that a consumer belongs to no reader:
// who knows its name can use it, and remove it.
type Keeper struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	log  *slog.Logger
	subs []*nats.Subscription
}

// NewKeeper begins to serve the readers of streams on the connection of a user that
// may make consumers on them. Stop it, or close the connection.
func NewKeeper(nc *nats.Conn, prefix string, log *slog.Logger, streams ...string) (*Keeper, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("serve readers: %w", err)
	}
	k := &Keeper{nc: nc, js: js, log: log}
	for _, name := range streams {
		root, list := access.ReadRoot(prefix, name), &owners{js: js, stream: name}
		sub, err := nc.Subscribe(root+">", func(m *nats.Msg) { k.answer(m, list, strings.TrimPrefix(m.Subject, root)) })
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

// answer passes one request on, and its answer back as it came. Where the answer goes
// the server has chosen, for what comes from another account; nobody else may have
// this user speak to JetStream.
func (k *Keeper) answer(m *nats.Msg, list *owners, wish string) {
	if m.Reply == "" || strings.HasPrefix(m.Reply, "$") {
		return
	}
	reply, err := k.make(list, wish, m.Data)
	if err != nil {
		reply = refusedConsumer(err)
	}
	if err := m.Respond(reply); err != nil {
		k.log.Warn("a reader was not answered", "stream", list.stream, "err", err)
	}
}

func (k *Keeper) make(list *owners, wish string, request []byte) ([]byte, error) {
	reader, wish, _ := strings.Cut(wish, ".")
	subject, err := createSubject(list.stream, wish)
	if err != nil {
		return nil, err
	}
	w, err := pullOnly(list.stream, reader, request)
	if err != nil {
		return nil, err
	}
	if err := list.room(reader, w.name()); err != nil {
		return nil, err
	}
	body, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	msg, err := k.nc.Request(subject, body, keeperPatience)
	if err != nil {
		list.forget() // it may be there
		return nil, fmt.Errorf("JetStream does not answer: %w", err)
	}
	list.note(reader, msg.Data)
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
	return "", fmt.Errorf("no request for a consumer, or the accounts of the server are not those of %s", access.AccountsFile)
}

// wish is a request for a consumer as JetStream reads it.
type wish struct {
	Stream   string                   `json:"stream_name"`
	Config   jetstream.ConsumerConfig `json:"config"`
	Action   string                   `json:"action"`
	Pedantic bool                     `json:"pedantic,omitempty"`
}

// name is that of the consumer, "" where JetStream shall find one.
func (w wish) name() string {
	if w.Config.Durable != "" {
		return w.Config.Durable
	}
	return w.Config.Name
}

// pullOnly reads a request, which is written anew from what it returns, so that
// JetStream cannot find in it what was not found here. The consumer is the reader's:
// one that is there with the same name and is another's, or is not as it would be
// made, JetStream leaves alone and refuses.
func pullOnly(stream, reader string, request []byte) (wish, error) {
	var w wish
	if err := json.Unmarshal(request, &w); err != nil {
		return w, fmt.Errorf("the request is no JSON as it should be: %w", err)
	}
	switch c := w.Config; {
	case w.Stream != stream:
		return w, fmt.Errorf("the request names stream %q and not %q as its subject does", w.Stream, stream)
	case c.DeliverSubject != "" || c.DeliverGroup != "" || c.FlowControl || c.IdleHeartbeat != 0:
		return w, ErrPushConsumer
	case w.Action == "update":
		return w, ErrChangeConsumer
	case c.InactiveThreshold < 0 || c.InactiveThreshold > MaxIdle || c.Durable != "" && c.InactiveThreshold == 0:
		w.Config.InactiveThreshold = MaxIdle
	}
	if w.Config.Metadata == nil {
		w.Config.Metadata = map[string]string{}
	}
	w.Config.Metadata[ownerKey] = reader
	w.Action = "create"
	return w, nil
}

func refusedConsumer(err error) []byte {
	b, _ := json.Marshal(map[string]any{ // cannot fail: strings and numbers
		"type":  createResponse,
		"error": map[string]any{"code": 400, "err_code": codeConsumerCreate, "description": err.Error()},
	})
	return b
}
