package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"waybill/domain"
	"waybill/store"
)

// service is an engine on a real log with fake peers.
type service struct {
	*rig
	engine *Engine
	disk   diskLog
}

// startService starts an engine; calls are answered by answer, or echoed.
func startService(t testing.TB, disk diskLog, c domain.Config, answer func(*rig, domain.Effect, []byte)) *service {
	t.Helper()
	s := &service{rig: &rig{t: t, log: disk}, disk: disk}
	s.peers = &fakePeers{t: t, log: disk, read: disk.Log.Head().Size}
	s.peers.answer = func(e domain.Effect, arguments []byte) {
		if answer == nil {
			s.echo(e, arguments)
			return
		}
		answer(s.rig, e, arguments)
	}
	engine, err := StartEngine(context.Background(), EngineConfig{Log: disk.Log, Config: c, Digest: testDigest, Version: "test", Logger: quietLogger(),
		NewPeers: func(report func(domain.Data, []byte, []byte)) (Peers, error) {
			// The loop speaks to the peers only after NewPeers has returned.
			s.loop = &Loop{}
			return s.peers, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	s.engine = engine
	s.ended = make(chan struct{})
	return s
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
