package stream

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus/bustest"
)

func TestReadGivesWhatTheStreamHolds(t *testing.T) {
	_, _, nc := copyStage(t)
	if _, err := Read(testContext(t), nc, testLog, nil); !errors.Is(err, ErrNoStream) {
		t.Errorf("without a stream: %v", err)
	}
	log := newLog(0)
	p := runPublisher(t, nc, publisherConfig(), log)
	eventually(t, "there is a stream", func() bool {
		_, err := Read(testContext(t), nc, testLog, nil)
		return err == nil
	})
	if x, err := Read(testContext(t), nc, testLog, nil); err != nil || x.Messages != 0 || x.Last != 0 {
		t.Errorf("an empty stream: %+v, %v", x, err)
	}
	log.grow(3000)
	p.caughtUp(t, 3000)
	var got []Event
	x, err := Read(testContext(t), nc, testLog, func(seq int64, b []byte) error {
		if seq == 1 {
			log.grow(50) // what comes later is not waited for
		}
		got = append(got, Event{Seq: seq, Bytes: slices.Clone(b)})
		return nil
	})
	if err != nil || x != (Extent{"WAYBILL_" + testLog, 1, 3000, 3000}) || len(got) != 3000 {
		t.Fatalf("%+v, %v, %d messages", x, err, len(got))
	}
	for i, e := range got {
		if want := eventAt(int64(i)+1, ""); e.Seq != want.Seq || string(e.Bytes) != string(want.Bytes) {
			t.Fatalf("at %d: %+v", i, e)
		}
	}
}

func TestReadGivesWhatIsLeftOfAStream(t *testing.T) {
	nc := bustest.OpenServer(t)
	agedOut(t, nc, 10, 4)
	publishForeign(t, nc, eventAt(11, "a stranger's"))
	var seqs []int64
	x, err := Read(testContext(t), nc, testLog, func(seq int64, b []byte) error {
		want := eventAt(seq, "")
		if seq == 11 {
			want = eventAt(seq, "a stranger's")
		}
		if string(b) != string(want.Bytes) {
			t.Errorf("%q at %d", b, seq)
		}
		seqs = append(seqs, seq)
		return nil
	})
	if err != nil || x.First != 7 || x.Messages != 5 || !slices.Equal(seqs, []int64{7, 8, 9, 10, 11}) {
		t.Errorf("%+v, %v, %v", x, err, seqs)
	}
}

func TestReadEndsWithItsReaderAndItsContext(t *testing.T) {
	_, _, nc := copyStage(t)
	runPublisher(t, nc, publisherConfig(), newLog(2000)).caughtUp(t, 2000)
	enough := errors.New("enough")
	if _, err := Read(testContext(t), nc, testLog, func(int64, []byte) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("ended with %v", err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	if _, err := Read(ctx, nc, testLog, func(int64, []byte) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	js := must[jetstream.JetStream](t)(jetstream.New(nc))
	if s := must[jetstream.Stream](t)(js.Stream(testContext(t), "WAYBILL_"+testLog)); s.CachedInfo().State.LastSeq != 2000 {
		t.Error("reading changed the stream")
	}
}
