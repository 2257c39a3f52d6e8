package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/domain"
	"waybill/events"
	"waybill/replay"
	"waybill/store"
)

// sayErased says of the calls that were shown by which event what was kept of them
// was erased, when and by whom.
func (c showCmd) sayErased(a *app, l logfile.Log, shown []store.Record) error {
	for _, call := range callsOf(shown) {
		said, err := erasureOf(a, l, call)
		if err != nil {
			return err
		}
		if said == "" {
			continue
		}
		if _, err := fmt.Fprintf(a.out, "erased: %s\n", said); err != nil {
			return err
		}
	}
	return nil
}

// callsOf lists the calls that records belong to, each once.
func callsOf(records []store.Record) (out []string) {
	seen := map[string]bool{"": true}
	for _, r := range records {
		if !seen[r.Call] {
			seen[r.Call] = true
			out = append(out, r.Call)
		}
	}
	return out
}

// erasureOf finds the event that erased what was kept of a call; "" for none. The
// log says it by itself, whether or not the bytes are at hand.
func erasureOf(a *app, l logfile.Log, call string) (string, error) {
	records, err := l.ByCall(a.ctx, call)
	if err != nil {
		return "", err
	}
	var began domain.Event
	for _, r := range records {
		e, err := opened(r)
		if err != nil {
			return "", err
		}
		if d, ok := e.Data.(domain.CallReceived); ok && d.Input == nil && d.RequestState == nil {
			if began = (domain.Event{}); d.Kept {
				began = e
			}
		}
	}
	if began.Seq == 0 {
		return "", nil // nothing is kept of it
	}
	return firstErasure(a, l, began)
}

// firstErasure looks for it among all events after the call began.
func firstErasure(a *app, l logfile.Log, began domain.Event) (string, error) {
	for after := began.Seq; ; {
		records, err := l.Read(a.ctx, after, 512)
		if err != nil || len(records) == 0 {
			return "", err
		}
		for _, r := range records {
			if after = r.Seq; r.Type != (domain.PayloadsErased{}).Kind() {
				continue
			}
			e, err := opened(r)
			if err != nil {
				return "", err
			}
			if d, ok := e.Data.(domain.PayloadsErased); ok && d.Covers(began) {
				by := cmp.Or(d.By, "payload_retention")
				if d.Outcomes {
					by = "idempotency_window"
				}
				return fmt.Sprintf("what was kept of call %s, at %s by %s (event %d)", began.Call(),
					time.Unix(0, e.Time).UTC().Format(time.RFC3339Nano), by, e.Seq), nil
			}
		}
	}
}

func opened(r store.Record) (domain.Event, error) {
	_, e, err := events.Open(r.Bytes)
	switch {
	case errors.Is(err, events.ErrUnknown):
		return e, &replay.UndecidableError{Seq: r.Seq, What: err.Error()}
	case err != nil:
		return e, &replay.AlteredError{Seq: r.Seq, What: err.Error()}
	}
	return e, nil
}
