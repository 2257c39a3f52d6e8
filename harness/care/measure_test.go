package care_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"waybill/harness"
	"waybill/harness/care"
	"waybill/store"
)

func measure(t *testing.T, dir harness.DataDir, limit int64, at time.Time) care.Measures {
	t.Helper()
	r, err := store.OpenReader(dir.LogFile())
	noErr(t, err)
	defer r.Close()
	m, err := care.Measure(t.Context(), dir, r, limit, at)
	noErr(t, err)
	return m
}

// The rate is that of the last seven days: one event an hour is 24 a day, and
// what came before has no part in it.
func TestMeasureProjectsTheLastDays(t *testing.T) {
	const hours = 10 * 24
	dir, _ := newDir(t, hours, 0)
	noErr(t, os.Mkdir(string(dir)+"/jetstream", 0o700))
	noErr(t, os.WriteFile(string(dir)+"/jetstream/block", make([]byte, 100), 0o600))
	size := care.LogSize(dir)
	m := measure(t, dir, 2*size, now)
	perDay := float64(size) / hours * 24
	if m.LogSize != size || m.BytesADay == nil || float64(*m.BytesADay) < perDay*0.99 || float64(*m.BytesADay) > perDay*1.02 {
		t.Fatalf("%+v, want about %.0f bytes a day", m, perDay)
	}
	if m.Bound != care.BoundLimit || *m.DaysLeft < 9.8 || *m.DaysLeft > 10.1 || m.Share() != 0.5 {
		t.Errorf("%f days to the %s, share %f, want 10 to the limit", *m.DaysLeft, m.Bound, m.Share())
	}
	files := map[string]int64{}
	for _, f := range m.Files {
		files[f.Name] = f.Bytes
	}
	if files["jetstream"] != 100 || files["log.db"] != size || files["keys"] == 0 {
		t.Errorf("files %v", files)
	}
	m = measure(t, dir, 0, now)
	if m.Bound != care.BoundDisk || *m.DaysLeft <= 0 || m.DiskFree <= 0 || m.Share() != 0 {
		t.Errorf("without a limit: %+v", m)
	}
	if m := measure(t, dir, size/2, now); *m.DaysLeft != 0 || m.Share() != 2 {
		t.Errorf("over the limit: %f days left, share %f", *m.DaysLeft, m.Share())
	}
	if m := measure(t, dir, 0, now.Add(30*24*time.Hour)); *m.BytesADay != 0 || m.DaysLeft != nil {
		t.Errorf("idle for a month: %+v", m)
	}
}

func TestMeasureOfAYoungLogPromisesNothing(t *testing.T) {
	for _, size := range []int{0, 1} {
		dir, _ := newDir(t, size, 0)
		if m := measure(t, dir, 1<<30, now.Add(30*time.Minute)); m.BytesADay != nil || m.DaysLeft != nil || m.LogSize == 0 {
			t.Errorf("%d events: %+v", size, m)
		}
	}
}

// The warning comes above nine tenths, once for each hundredth, and never without
// a limit.
func TestWatchWarnsWhileTheLogGrows(t *testing.T) {
	dir, _ := newDir(t, 1, 0)
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	if err := care.Watch(t.Context(), harness.NewFeed(0), dir, 0, logger); err != nil || out.Len() > 0 {
		t.Errorf("without a limit: %v, %s", err, out.String())
	}
	size := care.LogSize(dir)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		feed, ended := harness.NewFeed(0), make(chan error, 1)
		go func() { ended <- care.Watch(ctx, feed, dir, size*2, logger) }()
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("warned at a half: %s", out.String())
		}
		for i, bytes := range []int64{size * 2 * 89 / 100, size*2*93/100 + 1, size*2*93/100 + 2, size*2*97/100 + 1} {
			noErr(t, os.Truncate(dir.LogFile(), bytes))
			feed.Advance(int64(i+1) * 1024)
			synctest.Wait()
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if said := out.String(); strings.Count(said, "\n") != 2 || !strings.Contains(said, "percent=93") || !strings.Contains(said, "percent=97") || !strings.Contains(said, "limits.log_size") {
		t.Errorf("said %s", said)
	}
}
