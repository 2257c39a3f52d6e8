package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How long JetStream remembers message ids. The expected sequence is what
// keeps the copy right; a long memory would cost a lot at full speed.
const dedupeWindow = 5 * time.Second

// A code of JetStream's API that the client library has no name for.
const codeSubjectsOverlap jetstream.ErrorCode = 10065

// SettingsError says that the stream of the log exists with settings under
// which it cannot be a faithful copy.
type SettingsError struct {
	Stream      string
	Differences []string // one setting each: what it is and what it should be
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("stream %s has other settings than a copy of the log needs (%s): correct them, or move the stream away, since it is a copy and is filled again",
		e.Stream, strings.Join(e.Differences, "; "))
}

// streamConfig is the stream that holds the copy of a log. When it is full it
// refuses new messages rather than lose old ones.
func streamConfig(cfg PublisherConfig) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              StreamName(cfg.LogID),
		Description:       "Copy of the Waybill log " + cfg.LogID + "; the stream's sequence is the log's",
		Subjects:          []string{eventRoot(cfg.Prefix, cfg.LogID) + ">"},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxMsgsPerSubject: -1,
		MaxBytes:          cmp.Or(cfg.MaxBytes, -1),
		MaxMsgSize:        MaxMessage,
		Replicas:          cmp.Or(cfg.Replicas, 1),
		Duplicates:        dedupeWindow,
		DenyDelete:        true,
		DenyPurge:         true,
		AllowDirect:       true,
	}
}

// differences lists the settings that decide whether the stream can be a
// faithful copy. Size, replicas and the like are the operator's.
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
	differ("storage", want.Storage, have.Storage)
	differ("max_age", want.MaxAge, have.MaxAge)
	differ("max_msgs_per_subject", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject)
	differ("deny_delete", want.DenyDelete, have.DenyDelete)
	differ("deny_purge", want.DenyPurge, have.DenyPurge)
	differ("allow_rollup_hdrs", want.AllowRollup, have.AllowRollup)
	differ("no_ack", want.NoAck, have.NoAck)
	differ("sealed", want.Sealed, have.Sealed)
	differ("mirror", false, have.Mirror != nil)
	differ("sources", 0, len(have.Sources))
	differ("subject_transform", false, have.SubjectTransform != nil)
	return list
}

// openStream finds the stream or makes it, and returns it with the state it
// was found in.
func (p *Publisher) openStream(ctx context.Context) (jetstream.Stream, error) {
	want := streamConfig(p.cfg)
	stream, err := p.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = p.js.CreateStream(ctx, want)
	}
	if err != nil {
		return nil, p.streamFault(want.Name, err)
	}
	if list := differences(want, stream.CachedInfo().Config); len(list) > 0 {
		return nil, &SettingsError{Stream: want.Name, Differences: list}
	}
	return stream, nil
}

func (p *Publisher) streamFault(name string, err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeSubjectsOverlap {
		return &SettingsError{Stream: name, Differences: []string{"another stream holds its subjects"}}
	}
	return fmt.Errorf("stream %s: %w", name, err)
}
