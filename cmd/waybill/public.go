package main

import (
	"context"
	"fmt"

	"waybill/harness/bus"
	"waybill/harness/bus/stream"
)

// startReading makes what auditors and dashboards need: the stream that dashboards
// read, and consumers when they ask for one. Both are served from then on for as long
// as the connections stand.
func (s *server) startReading() error {
	id, log := s.log.ID(), s.app.logger
	if _, err := stream.NewKeeper(s.users.Events, prefix, log, bus.StreamName(id), bus.CheckpointStreamName(id)); err != nil {
		return err
	}
	if s.users.Public == nil {
		s.app.progress("waybill: warning: there are no credentials of the curator, so dashboards have nothing to read: waybill init makes what is missing")
		return nil
	}
	if _, err := stream.NewKeeper(s.users.Public, prefix, log, bus.PublicStreamName(id)); err != nil {
		return err
	}
	conf := s.file.NATS
	var err error
	s.public, err = stream.NewPublic(s.users.Public, stream.PublicConfig{Prefix: prefix, LogID: id, Replicas: conf.Replicas, MaxAge: conf.MaxAge, Logger: log,
		After: func(ctx context.Context) error { return s.publisher.CaughtUp(ctx, 1) }, Copy: s.publisher.Made})
	if err != nil {
		return err
	}
	s.engine.Attend("public stream", s.public.Run)
	return nil
}

// publicHealth says how the stream does that dashboards read; nil where there is none.
func (s *server) publicHealth() *stream.PublicHealth {
	if s.public == nil {
		return nil
	}
	h := s.public.Health()
	return &h
}

// printPublic tells people how the stream does that dashboards read.
func printPublic(a *app, h *stream.PublicHealth) {
	if h == nil {
		return
	}
	fmt.Fprintf(a.out, "dashboards: %s, up to event %d%s\n", h.State, h.Position, behind(h.State, h.Lag))
	if h.Error != "" {
		fmt.Fprintf(a.out, "  %s\n", h.Error)
	}
}
