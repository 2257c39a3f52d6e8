package doctor

import (
	"errors"
	"path/filepath"

	"waybill/cmd/waybill/config"
	"waybill/harness/bus"
	"waybill/harness/care"
)

// lagging is how far the stream may be behind before that is worth a word.
const lagging = 10_000

// service asks the one that runs.
func (c *checkup) service() {
	if c.run == nil {
		return
	}
	s, err := c.Ask(c.ctx)
	switch {
	case err != nil:
		c.add(Error, "service_silent", c.run.URL, "look at its log; if it does not serve, end process and start it again", "the service (pid %d) does not answer: %v", c.run.PID, err)
	case s.Stream != "":
		c.add(Error, "stream", c.run.URL, "compare with waybill export --stream and waybill-audit verify --against; the log is the truth", "events are no longer published: %s", s.Stream)
	case s.Head-s.Published > lagging:
		c.add(Warning, "stream_behind", c.run.URL, "look whether NATS can be reached and has room", "%d events are not published yet", s.Head-s.Published)
	}
}

// size looks at how long the log can go on.
func (c *checkup) size() {
	if c.reader == nil {
		return
	}
	m, err := care.Measure(c.ctx, c.dir, c.reader, c.File.Limits.LogSize, c.Now)
	const move = "make room, or begin a new log: stop the service, waybill backup, move log.db away, waybill restore"
	if share := float64(m.DiskFree) / float64(max(m.DiskSize, 1)); m.DiskSize > 0 && m.DiskFree < leastFree {
		c.add(Error, "disk_full", string(c.dir), move, "%d MB are free on the disk (%.1f %%): calls are refused when there are none", m.DiskFree/1e6, share*100)
	} else if m.DiskSize > 0 && share < lowFree {
		c.add(Warning, "disk_low", string(c.dir), move, "%d MB are free on the disk (%.1f %%)", m.DiskFree/1e6, share*100)
	}
	if m.Share() > care.WarnShare {
		c.add(Warning, "log_size", c.dir.LogFile(), move+"; or raise limits.log_size", "the log has %.0f %% of limits.log_size", m.Share()*100)
	}
	if m.DaysLeft != nil && *m.DaysLeft < care.WarnDays {
		c.add(Warning, "days_left", c.dir.LogFile(), move, "at %d bytes a day the %s is reached in %.1f days", *m.BytesADay, m.Bound, *m.DaysLeft)
	}
	if err != nil {
		c.add(Note, "unmeasured", string(c.dir), "nothing, if the log has other findings: they are the reason", "size and growth cannot be found out: %v", err)
	}
}

// What is little room on a disk.
const (
	leastFree = 16 << 20 // bytes
	lowFree   = 0.05     // of the disk
)

// pins looks at which peers will not be started.
func (c *checkup) pins() {
	if !exists(c.File.LockPath()) {
		c.add(Warning, "no_pins", c.File.LockPath(), "run waybill pin, and review what it writes", "no peer is pinned, so none is started")
		return
	}
	lock, err := config.ReadLock(c.File.LockPath())
	if err != nil {
		c.add(Error, "pins_unreadable", c.File.LockPath(), "run waybill pin, and review what it writes", "%v", err)
		return
	}
	for _, p := range c.File.Domain(lock, c.Lookup).Peers {
		if p.Refusal != "" {
			c.add(Warning, string(p.Refusal), c.File.LockPath(), "look at what has changed; if it was meant, run waybill pin", "peer %s will not be started: %s", p.Name, p.RefusalReason)
		}
	}
}

// nats looks at the keys of the NATS users and at what an outside server reads.
func (c *checkup) nats() {
	if c.absent {
		return
	}
	creds, err := bus.LoadCredentials(c.Credentials)
	if err != nil {
		c.add(Error, "credentials", c.Credentials, "run waybill init: it makes what is missing", "%v", err)
		return
	}
	if creds.Operator().Public() == "" {
		c.add(Note, "no_operator", c.Credentials, "run waybill init: it makes the key", "there is no key for operators, so nobody can order anything")
	}
	if !creds.Curator().Valid() {
		c.add(Note, "no_curator", c.Credentials, "run waybill init: it makes the key", "there is no key of the curator, so dashboards have nothing to read")
	}
	if len(creds.HostNames()) == 0 {
		c.add(Warning, "no_host", c.Credentials, "run waybill init: it makes the key of the host local", "there is no key for a host, so nobody can call")
	}
	if c.reader == nil {
		return
	}
	if err := bus.CheckAccounts(c.Credentials, c.Prefix, c.reader.ID()); errors.Is(err, bus.ErrStaleAccounts) {
		severity := Note // the embedded server does not read it
		if c.File.NATS.URL != "" {
			severity = Error
		}
		c.add(severity, "accounts_stale", filepath.Join(c.Credentials, bus.AccountsFile), "run waybill init, which writes it anew unless it has been edited (then move it away before), and have the outside NATS server load the new one", "%v", err)
	}
}
