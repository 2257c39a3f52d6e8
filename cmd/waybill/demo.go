package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"waybill/cmd/waybill-audit/logfile"
	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/demo"
	"waybill/cmd/waybill/eventlist"
	"waybill/cmd/waybill/text"
	"waybill/domain"
	"waybill/harness/bus"
	"waybill/replay"
)

type demoCmd struct {
	Dir string `placeholder:"DIR" help:"Keep everything here; a temporary directory that is removed, if absent."`
}

// Help is shown under the usage.
func (demoCmd) Help() string {
	return "Example:\n  waybill demo --dir ./demo\n\nThree MCP servers are started as processes of their own: two modern ones that share a tool name and an old one."
}

// Run shows the whole job.
func (c demoCmd) Run(a *app) (err error) {
	dir := c.Dir
	if dir == "" {
		tmp, err := os.MkdirTemp("", "waybill-demo-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
		dir = tmp
	}
	file, err := writeDemo(dir)
	if err != nil {
		return err
	}
	d := &demonstration{app: a, file: file, started: time.Now()}
	return d.run()
}

// writeDemo writes the configuration of the demo, unless it is there.
func writeDemo(dir string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	b := "# The demo of waybill: three peers, each a process of its own.\nnats: {listen: \"127.0.0.1:0\"}\npeers:\n"
	for _, kind := range demo.Kinds {
		b += fmt.Sprintf("  %s:\n    command: %q\n    args: [demo-peer, %s]\n", kind, self, kind)
		if kind == "archive" {
			b += "    allow_legacy: true   # it speaks 2025-11-25, and we trust it\n"
		}
	}
	file := filepath.Join(dir, "waybill.yaml")
	return file, os.WriteFile(file, []byte(b), 0o600)
}

// demonstration is one run of the demo.
type demonstration struct {
	app     *app
	file    string
	started time.Time
	log     string // the log file
	client  *bus.Client
	shown   string // key of the call whose events are shown
}

func (d *demonstration) step(format string, v ...any) {
	fmt.Fprintf(d.app.out, "\n== %s\n", fmt.Sprintf(format, v...))
}

func (d *demonstration) run() error {
	flags := common{Config: d.file}
	d.step("waybill init: a log, its keys, NATS credentials")
	if err := (initCmd{flags}).Run(d.app); err != nil {
		return err
	}
	d.step("waybill pin: what each peer runs, by hash")
	if err := (pinCmd{flags}).Run(d.app); err != nil {
		return err
	}
	if err := d.serve(); err != nil {
		return err
	}
	return d.audit()
}

// serve runs the service, calls it over NATS as a host would, and stops it.
func (d *demonstration) serve() error {
	d.step("waybill serve: probe, list, merge")
	f, err := config.Load(d.file)
	if err != nil {
		return err
	}
	n, err := d.app.openNode(f)
	if err != nil {
		return err
	}
	d.log = n.dir.LogFile()
	s := newServer(n)
	err = s.start()
	if err == nil {
		err = d.useService(s)
	}
	return errors.Join(err, s.stop())
}

func (d *demonstration) useService(s *server) (err error) {
	if err := s.engine.WaitSettled(d.app.ctx); err != nil {
		return err
	}
	r, err := s.engine.Report(d.app.ctx)
	if err != nil {
		return err
	}
	text.Report(d.app.out, r)
	if !r.AllReady() {
		return errors.New("demo: not every peer is ready; the report says why")
	}
	d.client, err = bus.Dial(d.app.ctx, s.url(), credentialsDir(s.file), localHost, prefix)
	if err != nil {
		return err
	}
	defer d.client.Close()
	return d.calls()
}

func (d *demonstration) calls() error {
	d.step("calls over NATS, subject waybill.v1.call.%s", localHost)
	for _, c := range []struct{ request, want string }{
		{`{"tool":"search","arguments":{"query":"tea"}}`, "complete"},
		{`{"tool":"notes/search","arguments":{"query":"tea"}}`, "complete"},
		{`{"tool":"fetch_record","arguments":{"number":9007199254740993}}`, "complete"},
		{`{"tool":"library/search","arguments":{"query":"tea"}}`, "refused"},
	} {
		status, id, err := d.call(c.request)
		if err != nil {
			return err
		}
		if status != c.want {
			return fmt.Errorf("demo: the call ended %s, not %s", status, c.want)
		}
		if strings.Contains(c.request, "notes/") {
			d.shown = localHost + "/" + id
		}
	}
	return nil
}

// call prints one call and what came of it, in two lines.
func (d *demonstration) call(request string) (status, id string, err error) {
	ctx, cancel := context.WithTimeout(d.app.ctx, askPatience)
	defer cancel()
	b, _, err := d.client.Request(ctx, "call", []byte(request))
	if err != nil {
		return "", "", err
	}
	var r struct {
		CallID string        `json:"call_id"`
		Status domain.Status `json:"status"`
		Code   *domain.Code  `json:"code"`
		Reason string        `json:"reason"`
		Route  *struct {
			Peer    string `json:"peer"`
			Local   string `json:"local"`
			Version string `json:"version"`
		} `json:"route"`
		Result jsontext.Value `json:"result"`
		Seqs   []int64        `json:"seqs"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return "", "", err
	}
	fmt.Fprintf(d.app.out, "-> %s\n", request)
	if r.Route == nil {
		fmt.Fprintf(d.app.out, "<- %s (%s): %s\n", r.Status, *r.Code, r.Reason)
	} else {
		fmt.Fprintf(d.app.out, "<- %s from %s as %s (%s), events %v: %s\n", r.Status, r.Route.Peer, r.Route.Local, r.Route.Version, r.Seqs, textOf(r.Result))
	}
	return string(r.Status), r.CallID, nil
}

// textOf returns the text of a tool's result.
func textOf(result []byte) string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil || len(r.Content) == 0 {
		return string(result)
	}
	return r.Content[0].Text
}

// audit reads the log as a stranger would.
func (d *demonstration) audit() error {
	d.step("the events of one call (waybill events --call %s)", d.shown)
	l, err := logfile.Open(d.log)
	if err != nil {
		return err
	}
	defer l.Close()
	records, err := l.ByCall(d.app.ctx, d.shown)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := eventlist.Print(d.app.out, r, false); err != nil {
			return err
		}
	}
	return d.verify(l)
}

func (d *demonstration) verify(l logfile.Log) error {
	d.step("waybill-audit verify and replay")
	v, err := replay.Verify(d.app.ctx, l)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.app.out, "verify: %d events whole and unaltered, head %d, root %s\n", v.Size, v.Size, short(v.Root))
	r, err := replay.Replay(d.app.ctx, l)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.app.out, "replay: %d of %d decisions agree, head %d, root %s\n", r.Agreed, r.Decisions, r.Size, short(r.Root))
	if r.Size != v.Size || r.Root != v.Root {
		return errors.New("demo: verify and replay do not agree on the head")
	}
	fmt.Fprintf(d.app.out, "\ndone in %.1f s; %s\n", time.Since(d.started).Seconds(), d.next())
	return nil
}

func short(root [32]byte) string { return hex.EncodeToString(root[:8]) + "..." }

func (d *demonstration) next() string {
	dir := filepath.Dir(d.file)
	if strings.HasPrefix(filepath.Base(dir), "waybill-demo-") {
		return "keep it with --dir DIR"
	}
	return "look around with waybill peers -c " + d.file
}
