package care

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"waybill/events"
	"waybill/harness"
	"waybill/store"
)

// What growth is measured over: the last days, and no less than an hour.
const (
	window      = 7 * 24 * time.Hour
	leastWindow = time.Hour
	day         = 24 * time.Hour
)

// What of a limit, or of a disk, is too much without a word.
const (
	// WarnShare is the share of limits.log_size above which a log is nearly full.
	WarnShare = 0.9
	// WarnDays is the number of days left below which somebody should act.
	WarnDays = 14
)

// What bounds a log.
const (
	BoundLimit = "limit" // limits.log_size
	BoundDisk  = "disk"
)

// Size is what a file, or a folder with all below it, takes.
type Size struct {
	Name  string `json:"name"` // below the data directory
	Bytes int64  `json:"bytes"`
}

// Measures say how large a log is and how long it can go on growing.
type Measures struct {
	Files    []Size `json:"files"`     // those that are there
	LogSize  int64  `json:"log_size"`  // bytes: log.db and what is not folded into it yet
	Limit    int64  `json:"log_limit"` // bytes: limits.log_size; 0 for none
	DiskFree int64  `json:"disk_free"` // bytes that this user may still write
	DiskSize int64  `json:"disk_size"`

	// BytesADay is what the log grows by a day: what was appended in the last
	// seven days, or since its first event. Nil while it is younger than an hour.
	BytesADay *int64 `json:"bytes_a_day"`
	// DaysLeft is when the limit is reached or the disk is full, whichever comes
	// first, at that rate, with the copies of the events counted for the disk. Nil
	// where the rate is not known or is none.
	DaysLeft *float64 `json:"days_left"`
	Bound    string   `json:"bound,omitempty"` // which one comes first
}

// Share is how much of the limit is used; 0 where there is none.
func (m Measures) Share() float64 {
	if m.Limit == 0 {
		return 0
	}
	return float64(m.LogSize) / float64(m.Limit)
}

// Measure looks at the files of a data directory and at the times of the events
// of its log, a few dozen short reads whatever the size. limit is limits.log_size.
func Measure(ctx context.Context, dir harness.DataDir, r *store.Reader, limit int64, now time.Time) (Measures, error) {
	m := Measures{Limit: limit, LogSize: LogSize(dir)}
	var err error
	if m.Files, err = sizes(dir); err != nil {
		return m, fmt.Errorf("look at the sizes of %s: %w", string(dir), err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(string(dir), &disk); err != nil {
		return m, fmt.Errorf("look at the disk of %s: %w", string(dir), err)
	}
	m.DiskFree, m.DiskSize = int64(disk.Bavail)*disk.Bsize, int64(disk.Blocks)*disk.Bsize
	return m, m.rate(ctx, r, now)
}

// LogSize is the size of a log in bytes, with what is not folded into its file
// yet; 0 where there is none.
func LogSize(dir harness.DataDir) (n int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(dir.LogFile() + suffix); err == nil {
			n += info.Size()
		}
	}
	return n
}

// sizes lists what is in the directory, in the order of names.
func sizes(dir harness.DataDir) ([]Size, error) {
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		return nil, err
	}
	out := []Size{}
	for _, e := range entries {
		n, err := below(filepath.Join(string(dir), e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, Size{e.Name(), n})
	}
	return out, nil
}

// below adds up the files in and below a path. What goes away meanwhile counts
// nothing.
func below(path string) (n int64, err error) {
	err = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				n += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return n, err
}

// rate finds how many events came in the window, and what that makes.
func (m *Measures) rate(ctx context.Context, r *store.Reader, now time.Time) error {
	head, err := r.Head(ctx)
	if err != nil || head.Size == 0 {
		return err
	}
	from := now.Add(-window)
	seq, err := firstSince(ctx, r, head.Size, from)
	if err != nil {
		return err
	}
	if seq == 1 {
		if from, err = timeOf(ctx, r, 1); err != nil {
			return err
		}
	}
	span := now.Sub(from)
	if span < leastWindow {
		return nil
	}
	perDay := float64(head.Size-seq+1) * float64(day) / float64(span)
	m.project(perDay/float64(head.Size), m.stored())
	return nil
}

// stored is what the directory holds that grows with the log: its own file and
// the copies of its events.
func (m *Measures) stored() (n int64) {
	for _, f := range m.Files {
		switch f.Name {
		case "views.db", "views.db-wal", "payloads.db", "payloads.db-wal", "jetstream":
			n += f.Bytes
		}
	}
	return n + m.LogSize
}

// project works out how long it goes on, where a day adds that share of what is
// stored.
func (m *Measures) project(share float64, stored int64) {
	bytes := int64(share * float64(m.LogSize))
	m.BytesADay = &bytes
	if bytes == 0 {
		return
	}
	left := float64(m.DiskFree) / (share * float64(stored))
	m.Bound = BoundDisk
	if m.Limit > 0 {
		if until := float64(max(m.Limit-m.LogSize, 0)) / float64(bytes); until < left {
			left, m.Bound = until, BoundLimit
		}
	}
	m.DaysLeft = &left
}

// firstSince returns the seq of the first event from a time on, or the one after
// the head. Where the clock of the machine was set back, it is near it.
func firstSince(ctx context.Context, r *store.Reader, head int64, from time.Time) (int64, error) {
	low, high := int64(1), head+1
	for low < high {
		mid := low + (high-low)/2
		at, err := timeOf(ctx, r, mid)
		if err != nil {
			return 0, err
		}
		if at.Before(from) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}

func timeOf(ctx context.Context, r *store.Reader, seq int64) (time.Time, error) {
	records, err := r.Read(ctx, seq-1, 1)
	if err != nil {
		return time.Time{}, err
	}
	if len(records) == 0 {
		return time.Time{}, fmt.Errorf("event %d is missing: run waybill-audit verify", seq)
	}
	_, e, err := events.Open(records[0].Bytes)
	if err != nil {
		return time.Time{}, fmt.Errorf("event %d: %w", seq, err)
	}
	return time.Unix(0, e.Time), nil
}
