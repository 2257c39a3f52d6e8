package harness

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"waybill/domain"
)

// Whoever waits when the service ends learns it, at whatever point; nobody is told
// that a reading is recorded which is not.
func TestReadersThatWaitWhenTheLoopEndsGetAnErrorAndNoList(t *testing.T) {
	for _, c := range []struct {
		name     string
		recorded bool
		before   func(s *listSim) (then func())
	}{
		{"in the pause", false, func(s *listSim) func() {
			s.read(1, "")
			return func() {}
		}},
		{"undecided behind the stop", false, func(s *listSim) func() {
			release := s.stall()
			s.loop.Report(domain.ServiceStopped{Reason: "test"}, nil, nil)
			return release
		}},
		{"while the list is read", true, func(s *listSim) func() {
			s.listers.put("notes", shelf{silent: true})
			return s.stall()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := one("notes", shelf{tools: tool("a"), ttl: 500})
			inLists(t, listConfig(rules(), nil, "notes"), p, func(s *listSim) {
				s.stale()
				then := c.before(s)
				head := s.engine.Feed.Head()
				out, noted := make(chan reading, 20), make(chan error, 1)
				for range 20 {
					go func() { out <- readOnce(s.t.Context(), s.engine, "") }()
				}
				go func() { noted <- s.loop.NoteRead(s.t.Context(), "") }()
				synctest.Wait()
				then()
				synctest.Wait()
				s.end()
				for _, r := range collect(out, 20) {
					if !errors.Is(r.err, errStopping) || r.list.Tools != nil || r.took != 0 {
						s.t.Errorf("%+v", r)
					}
				}
				if err := <-noted; c.recorded != (err == nil) || err != nil && !errors.Is(err, errStopping) {
					s.t.Errorf("NoteRead: %v", err)
				}
				got := find[domain.ToolsRead](s.after(head))
				if c.recorded != (len(got) > 0) {
					s.t.Errorf("recorded: %+v", got)
				}
				if r := readOnce(s.t.Context(), s.engine, ""); !errors.Is(r.err, errStopping) {
					s.t.Errorf("after the end: %+v", r)
				}
			})
		})
	}
}

// faultyEngine is an engine on a log that may fail, with one peer that listed a.
func faultyEngine(t *testing.T) (*rig, *memLog, *Engine) {
	log := newMemLog(t)
	feed := NewFeed(0)
	r := newRig(t, log, func(c *Config) { c.OnCommit = feed.Advance })
	e := &Engine{Loop: r.loop, Feed: feed, logger: quietLogger(), loopDone: r.ended}
	r.peers.answer = func(x domain.Effect, _ []byte) { // of lists, only the first is answered
		if s, ok := x.(domain.Send); !ok || s.Method != domain.MethodList || s.RequestID == 2 {
			r.probes(x)
		}
	}
	r.configure(listConfig(rules(), nil, "notes"))
	r.run()
	synctest.Wait()
	<-time.After(2 * time.Second)
	return r, log, e
}

// noteOnce has a reading recorded, and looks for it when it is told that it is.
func noteOnce(t *testing.T, r *rig, e *Engine) error {
	err := e.Loop.NoteRead(t.Context(), "")
	if err == nil && len(find[domain.ToolsRead](readAll(t, r.log, 0))) == 0 {
		t.Error("a reading is confirmed that is not on record")
	}
	return err
}

// While the log takes nothing, no reading is confirmed and no list is given: not
// the old one under a need that is not on record, not the new one before it is.
func TestReadersWaitForALogThatFailsAndAreNeverGivenWhatIsNotOnRecord(t *testing.T) {
	for _, c := range []struct {
		name string
		plan []outcome
		ends bool
	}{
		{"it recovers", []outcome{absent, absent, absent, absent}, false},
		{"it had committed", []outcome{absent, present}, false},
		{"it never recovers", slices.Repeat([]outcome{absent}, 100), true},
		{"somebody else wrote", []outcome{moved}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, log, e := faultyEngine(t)
				before := len(readAll(t, log, 0))
				release := stall(t, r.loop)
				out, brief, later, noted := make(chan reading, 10), make(chan reading, 1), make(chan reading, 1), make(chan error, 1)
				go func() { noted <- noteOnce(t, r, e) }()
				for range 10 {
					go func() { out <- readOnce(t.Context(), e, "") }()
				}
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
					defer cancel()
					brief <- readOnce(ctx, e, "")
				}()
				go func() {
					list, err := e.ReadTools(t.Context(), "", "0", 1) // a later page: nothing is recorded
					later <- reading{list: list, err: err}
				}()
				synctest.Wait()
				f := listed(3, "other")
				r.tell(domain.CatalogListed{At: domain.At{Peer: "notes", Incarnation: 1}, RequestID: 3, Frame: domain.RefTo(f)}, f, nil)
				log.hold()
				release()
				log.expect(c.plan...) // all of it goes in one append, which fails
				if got := <-brief; !errors.Is(got.err, context.DeadlineExceeded) {
					t.Errorf("the one in a hurry: %+v", got)
				}
				if len(out)+len(later)+len(noted) != 0 || len(readAll(t, log, 0)) != before {
					t.Errorf("%d and %d have their list before anything is on record", len(out), len(later))
				}
				log.pass()
				for _, got := range append(collect(out, 10), <-later) {
					switch {
					case c.ends && (got.err == nil || got.list.Tools != nil):
						t.Errorf("the loop ended, and a host has %+v", got)
					case !c.ends:
						got.want(t, []string{"other"}, []string{"notes"})
					}
				}
				if err := <-noted; c.ends != errors.Is(err, errStopping) || !c.ends && err != nil {
					t.Errorf("NoteRead: %v", err)
				}
				if c.ends != (len(find[domain.ToolsRead](readAll(t, log, 0))) == 0) {
					t.Errorf("recorded: %v", kinds(readAll(t, log, int64(before))))
				}
				if c.ends {
					if r.wait() == nil {
						t.Error("the loop ended without an error")
					}
					return
				}
				r.stop()
			})
		})
	}
}
