package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
)

const (
	// How long JetStream remembers message ids. The expected sequence is what
	// keeps the copy right; a long memory would cost a lot at full speed.
	dedupeWindow = 5 * time.Second

	// CheckpointBytes is how much of the newest checkpoints their stream keeps:
	// some 150,000 of them. The log itself keeps all.
	CheckpointBytes = 64 << 20

	checkpointSize = 8 << 10 // of one, at most
)

// SettingsError says that a stream of the log exists with other settings than
// it must have.
type SettingsError struct {
	Stream      string
	Differences []string // one setting each: what it is and what it should be
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("stream %s has other settings than it should (%s): correct them there (nats stream edit) or in the configuration (nats), "+
		"or move the stream away, with the embedded server the folder jetstream while the service is stopped: it is a copy and is filled again",
		e.Stream, strings.Join(e.Differences, "; "))
}

// eventStream is the stream that holds the copy of a log. When it is full it
// refuses new messages rather than lose old ones.
func eventStream(cfg PublisherConfig) jetstream.StreamConfig {
	want := anyStream(cfg.Replicas)
	want.Name = bus.StreamName(cfg.LogID)
	want.Description = "Copy of the Waybill log " + cfg.LogID + "; the stream's sequence is the log's"
	want.Subjects = []string{bus.EventRoot(cfg.Prefix, cfg.LogID) + ">"}
	want.Discard = jetstream.DiscardNew
	want.MaxBytes = cmp.Or(cfg.MaxBytes, -1)
	want.MaxAge = cfg.MaxAge
	want.MaxMsgSize = bus.MaxMessage
	return want
}

// checkpointStream is the stream of the newest signed heads. Each of them stands
// for all before it, so that the oldest may go when it is full.
func checkpointStream(cfg CheckpointsConfig) jetstream.StreamConfig {
	want := anyStream(cfg.Replicas)
	want.Name = bus.CheckpointStreamName(cfg.LogID)
	want.Description = "Signed heads of the Waybill log " + cfg.LogID
	want.Subjects = []string{bus.CheckpointSubject(cfg.Prefix, cfg.LogID)}
	want.Discard = jetstream.DiscardOld
	want.MaxBytes = CheckpointBytes
	want.MaxMsgSize = checkpointSize
	return want
}

// anyStream is what both have in common: nobody can take a message out.
func anyStream(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxMsgsPerSubject: -1,
		Replicas:          cmp.Or(replicas, 1),
		Duplicates:        dedupeWindow,
		DenyDelete:        true,
		DenyPurge:         true,
		AllowDirect:       true,
	}
}

// differences lists the settings that decide what the stream holds. Those that
// do not, such as its description, placement and consumers, are the operator's.
func differences(want, have jetstream.StreamConfig) []string {
	var list []string
	differ := func(setting string, want, have any) {
		if want != have {
			list = append(list, fmt.Sprintf("%s is %v and should be %v", setting, have, want))
		}
	}
	differ("subjects", strings.Join(want.Subjects, ","), strings.Join(have.Subjects, ","))
	differ("retention", want.Retention, have.Retention)
	differ("discard", want.Discard, have.Discard)
	differ("discard_new_per_subject", want.DiscardNewPerSubject, have.DiscardNewPerSubject)
	differ("storage", want.Storage, have.Storage)
	differ("num_replicas", want.Replicas, have.Replicas)
	differ("max_bytes", want.MaxBytes, have.MaxBytes)
	differ("max_age", want.MaxAge, have.MaxAge)
	differ("max_msgs", want.MaxMsgs, have.MaxMsgs)
	differ("max_msgs_per_subject", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject)
	differ("max_msg_size", want.MaxMsgSize, have.MaxMsgSize)
	differ("deny_delete", want.DenyDelete, have.DenyDelete)
	differ("deny_purge", want.DenyPurge, have.DenyPurge)
	differ("first_seq", want.FirstSeq, have.FirstSeq)
	return append(list, oddities(want, have)...)
}

// oddities are the settings that make something else of a stream.
func oddities(want, have jetstream.StreamConfig) []string {
	var list []string
	for _, s := range []struct {
		setting    string
		want, have bool
	}{
		{"allow_rollup_hdrs", want.AllowRollup, have.AllowRollup},
		{"allow_msg_ttl", want.AllowMsgTTL, have.AllowMsgTTL},
		{"allow_msg_counter", want.AllowMsgCounter, have.AllowMsgCounter},
		{"no_ack", want.NoAck, have.NoAck},
		{"sealed", want.Sealed, have.Sealed},
		{"mirror", false, have.Mirror != nil},
		{"sources", false, len(have.Sources) > 0},
		{"subject_transform", false, have.SubjectTransform != nil},
	} {
		if s.want != s.have {
			list = append(list, fmt.Sprintf("%s is %v and should be %v", s.setting, s.have, s.want))
		}
	}
	return list
}

// open finds a stream or makes it, and returns it with the state it was found
// in.
func open(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
	}
	if err != nil {
		return nil, fault(ctx, js, want, err)
	}
	if list := differences(want, s.CachedInfo().Config); len(list) > 0 {
		return nil, &SettingsError{Stream: want.Name, Differences: list}
	}
	return s, nil
}

// fault says why there is no such stream. That another holds its subjects only a
// person can put right.
func fault(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, err error) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) || api.ErrorCode != codeSubjectsOverlap {
		return fmt.Errorf("stream %s: %w", want.Name, explain(err, want))
	}
	other := "another stream"
	for _, subject := range want.Subjects {
		if name, err := js.StreamNameBySubject(ctx, subject); err == nil && name != "" {
			other = "another stream, " + name + ","
		}
	}
	return &SettingsError{Stream: want.Name, Differences: []string{other + " holds its subjects"}}
}
