package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/config/redact"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/care"
	"waybill/harness/heads"
	"waybill/harness/peer"
	"waybill/projections"
	"waybill/store"
	"waybill/store/payloads"
)

// stderrLines is how much of a peer's standard error is shown.
const stderrLines = 10

// prefix begins every NATS subject.
const prefix = "waybill"

// watchdogEnv is the complete environment of the watchdog process. Tests set it.
var watchdogEnv []string

// mark is told where the process is, by tests that end it there; nil in the program.
var mark func(point string)

// node is an open data directory with a running engine: everything but NATS.
type node struct {
	app      *app
	file     *config.File
	dir      harness.DataDir
	lock     *harness.Lock
	log      *store.Log
	payloads *payloads.DB // nil where it was not opened
	engine   *harness.Engine
	views    *projections.Views
	peers    *peer.Manager
	heads    *heads.Checkpointer
	outlet   atomic.Pointer[func(note []byte) error] // where checkpoints are published; nil for nowhere

	// onProgress is told what a peer says of a call whose host listens. It is set
	// before the first call is submitted and must not block.
	onProgress func(id domain.CallID, progress []byte)
}

// load reads the configuration and says what somebody should know.
func (a *app) load(path string) (*config.File, error) {
	f, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	for _, w := range f.Warnings {
		a.progress("waybill: warning: %s", w)
	}
	return f, nil
}

func dataDir(f *config.File) harness.DataDir { return harness.DataDir(f.Data) }

// openNode takes the data directory, opens the log and starts the engine: the
// peers begin to be probed.
func (a *app) openNode(f *config.File) (*node, error) {
	n := &node{app: a, file: f, dir: dataDir(f), onProgress: func(domain.CallID, []byte) {}}
	if err := n.open(); err != nil {
		return nil, errors.Join(err, n.release())
	}
	return n, nil
}

func (n *node) open() (err error) {
	if err := n.dir.Exists(); err != nil {
		return err
	}
	if n.lock, err = n.dir.Lock(); err != nil {
		return err
	}
	if n.log, err = store.Open(n.dir.LogFile()); err != nil {
		return err
	}
	if !strings.HasPrefix(n.log.ID(), n.file.Node+"-") {
		n.app.progress("waybill: warning: node is %s, but the log is %s and keeps its id; a new node needs a data directory of its own",
			n.file.Node, n.log.ID())
	}
	n.heads, err = heads.New(n.app.ctx, heads.Config{Dir: n.dir, Log: n.log, Logger: n.app.logger, Publish: n.publishHead, Mark: mark})
	if err != nil {
		return err
	}
	if err := n.openPayloads(); err != nil {
		return err
	}
	n.views, err = projections.Open(n.app.ctx, n.dir.ViewsFile(), n.log.ID(), n.log.Head().Size)
	if err != nil {
		return err
	}
	return n.startEngine()
}

func (n *node) startEngine() error {
	lock, err := config.ReadLock(n.file.LockPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	digest, err := n.dir.Digester()
	if err != nil {
		return err
	}
	known, err := n.file.AllSecrets(os.LookupEnv)
	if err != nil {
		return err
	}
	secrets := redact.New(known)
	n.app.logger = slog.New(redact.Handler(n.app.logger.Handler(), secrets))
	n.engine, err = harness.StartEngine(n.app.ctx, harness.EngineConfig{
		Log: n.log, Config: n.file.Domain(lock, os.LookupEnv), Digest: digest, Redact: secrets.Redact, Payloads: n.kept(), Version: version, Logger: n.app.logger,
		HostInflight: n.file.Limits.HostInflight, HostRate: n.file.Limits.HostRate,
		Progress: func(id domain.CallID, progress []byte) { n.onProgress(id, progress) }, Mark: mark,
		NewPeers: func(report func(domain.Data, []byte, []byte)) (harness.Peers, error) {
			return n.newPeers(lock, report, digest, secrets)
		},
	})
	if err != nil {
		return err
	}
	n.engine.AttendFollower(n.views)
	n.app.warnSize(care.Measures{LogSize: care.LogSize(n.dir), Limit: n.file.Limits.LogSize})
	n.engine.Attend("size watch", func(ctx context.Context) error {
		return care.Watch(ctx, n.engine.Feed, n.dir, n.file.Limits.LogSize, n.app.logger)
	})
	n.engine.Attend(n.heads.Name(), func(ctx context.Context) error { return n.heads.Run(ctx, n.engine.Feed) })
	return nil
}

// publishHead hands a checkpoint to NATS, where there is one.
func (n *node) publishHead(note []byte) error {
	if publish := n.outlet.Load(); publish != nil {
		return (*publish)(note)
	}
	return nil
}

func (n *node) newPeers(lock *config.Lock, report func(domain.Data, []byte, []byte), digest func([]byte) domain.Payload, secrets *redact.Redactor) (harness.Peers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program for the watchdog: %w", err)
	}
	specs := n.file.Specs(lock, os.LookupEnv)
	for name, spec := range specs {
		spec.Redact = secrets.Redact
		if spec.Web != nil {
			spec.Web.Learn = secrets.Add // tokens are found while the service runs
		}
		specs[name] = spec
	}
	n.peers, err = peer.NewManager(peer.Config{Specs: specs, FrameLimit: int(n.file.Limits.Frame), Report: report, Digest: digest,
		Progress:   func(call string, progress jsontext.Value) { n.engine.Loop.Progress(call, progress) }, // only after a call was sent
		ClientName: "waybill", ClientVersion: version, Watchdog: []string{self, "watchdog"}, WatchdogEnv: watchdogEnv, Logger: n.app.logger, Mark: mark})
	return n.peers, err
}

// showStderr prints the end of what peers that are not ready wrote to their
// standard error, redacted. It is for the person at the terminal only.
func (n *node) showStderr(r domain.Report) {
	for _, p := range r.Peers {
		tail := strings.TrimSpace(string(n.peers.StderrTail(p.Name)))
		if p.State == "ready" || tail == "" {
			continue
		}
		lines := strings.Split(tail, "\n")
		for _, line := range lines[max(0, len(lines)-stderrLines):] {
			n.app.progress("%s: stderr: %s", p.Name, strings.ToValidUTF8(line, "?"))
		}
	}
}

// stop ends the engine in good order and gives the directory up.
func (n *node) stop(reason string) error {
	err := n.engine.Stop(reason)
	var halt *harness.HaltError
	if errors.As(err, &halt) {
		err = nil // whoever waited for the peers has it already
	}
	head := n.engine.Feed.Head()
	err = errors.Join(err, harness.CatchUpWithin(viewPatience, n.views, head))
	return errors.Join(err, n.engine.Close(), n.release())
}

func (n *node) release() error {
	var errs []error
	if n.views != nil {
		errs = append(errs, n.views.Close())
	}
	if n.payloads != nil {
		errs = append(errs, n.payloads.Close())
	}
	if n.log != nil {
		errs = append(errs, n.log.Close())
	}
	if n.lock != nil {
		errs = append(errs, n.lock.Release())
	}
	return errors.Join(errs...)
}
