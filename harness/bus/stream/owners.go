package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// ownerKey is where a consumer has the name of the reader that it was made for, in its
// metadata.
const ownerKey = "waybill.reader"

// owners knows which consumers of one stream were made for which reader. It may name
// some that are gone. Its methods are not to be called at once.
type owners struct {
	js     jetstream.JetStream
	stream string
	made   map[string]map[string]bool // by reader, the names; nil for not known
}

// room fails if a reader may not have one consumer more. One that is named and is the
// reader's own is no more.
func (o *owners) room(reader, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), keeperPatience)
	defer cancel()
	if o.made == nil {
		if err := o.learn(ctx); err != nil {
			return err
		}
	}
	if len(o.made[reader]) < MaxConsumers || o.made[reader][name] {
		return nil
	}
	if err := o.sweep(ctx, reader); err != nil {
		return err
	}
	if len(o.made[reader]) >= MaxConsumers {
		return ErrManyConsumers
	}
	return nil
}

// learn asks JetStream for all consumers. Without a stream there are none.
func (o *owners) learn(ctx context.Context) error {
	made := map[string]map[string]bool{}
	s, err := o.js.Stream(ctx, o.stream)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("which consumers there are is not known: %w", explain(err, jetstream.StreamConfig{}))
	}
	if err == nil {
		list := s.ListConsumers(ctx)
		for info := range list.Info() {
			put(made, info.Config.Metadata[ownerKey], info.Name)
		}
		if err := list.Err(); err != nil {
			return fmt.Errorf("which consumers there are is not known: %w", explain(err, jetstream.StreamConfig{}))
		}
	}
	o.made = made
	return nil
}

func put(made map[string]map[string]bool, reader, name string) {
	if made[reader] == nil {
		made[reader] = map[string]bool{}
	}
	made[reader][name] = true
}

// sweep drops those of a reader that are gone.
func (o *owners) sweep(ctx context.Context, reader string) error {
	s, err := o.js.Stream(ctx, o.stream)
	if err != nil {
		return fmt.Errorf("which consumers there are is not known: %w", explain(err, jetstream.StreamConfig{}))
	}
	left := map[string]bool{}
	names := s.ConsumerNames(ctx)
	for name := range names.Name() {
		if o.made[reader][name] {
			left[name] = true
		}
	}
	if err := names.Err(); err != nil {
		return fmt.Errorf("which consumers there are is not known: %w", explain(err, jetstream.StreamConfig{}))
	}
	o.made[reader] = left
	return nil
}

// note keeps what JetStream has made, as its answer says.
func (o *owners) note(reader string, answer []byte) {
	var r struct {
		Name  string          `json:"name"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(answer, &r) == nil && r.Error == nil && r.Name != "" {
		put(o.made, reader, r.Name)
	}
}

// forget has the next request ask anew.
func (o *owners) forget() { o.made = nil }
