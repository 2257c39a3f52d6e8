package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// event is what is read of the CloudEvents object. data is as the schema of its type
// says; what a reader does not know it passes over.
type event struct {
	ID      string          `json:"id"` // the seq in the log
	Type    string          `json:"type"`
	Subject string          `json:"subject"` // the peer, if it is of one
	Data    json.RawMessage `json:"data"`
}

func main() {
	if err := run(os.Getenv("NATS_URL"), os.Getenv("WAYBILL_KEY"), os.Getenv("WAYBILL_USER"), os.Getenv("WAYBILL_LOG"), os.Getenv("WAYBILL_FROM")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run reads as user, auditor or dashboard, from a sequence of the stream or a time on;
// from the beginning if from is empty.
func run(url, key, user, log, from string) error {
	option, err := nats.NkeyOptionFromSeed(key)
	if err != nil {
		return err
	}
	nc, err := nats.Connect(url, option, nats.CustomInboxPrefix("_INBOX."+user))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream := "WAYBILL_" + log
	if user == "dashboard" {
		stream += "_PUBLIC"
	}
	// An ordered consumer is pulled from, and made again where it was after an interruption.
	consumer, err := js.OrderedConsumer(context.Background(), stream, start(from))
	if err != nil {
		return err
	}
	for {
		m, err := consumer.Next(jetstream.FetchMaxWait(5 * time.Second))
		if err != nil {
			return err
		}
		left, err := show(m)
		if err != nil || left == 0 {
			return err // a program that follows goes on instead
		}
	}
}

func start(from string) jetstream.OrderedConsumerConfig {
	if seq, err := strconv.ParseUint(from, 10, 64); err == nil {
		return jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: seq}
	}
	if when, err := time.Parse(time.RFC3339, from); err == nil {
		return jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &when}
	}
	return jetstream.OrderedConsumerConfig{}
}

// show prints one event, and says how many come after it.
func show(m jetstream.Msg) (left uint64, err error) {
	var e event
	if err := json.Unmarshal(m.Data(), &e); err != nil {
		return 0, err
	}
	fmt.Printf("%s %s %s %s\n", e.ID, e.Type, e.Subject, e.Data)
	meta, err := m.Metadata()
	if err != nil {
		return 0, err
	}
	return meta.NumPending, nil
}
