package care

import (
	"context"
	"log/slog"

	"waybill/harness"
)

// watchEvery is how many events may be appended between two looks at the size:
// 64 MB of the largest ones.
const watchEvery = 1024

// Watch warns while a log grows: when it is larger than WarnShare of the limit,
// and again at each further hundredth. Nothing is refused. It looks when Watch
// begins and after events were committed, and returns nil when ctx ends, or at
// once where there is no limit.
func Watch(ctx context.Context, feed *harness.Feed, dir harness.DataDir, limit int64, logger *slog.Logger) error {
	if limit == 0 {
		return nil
	}
	for warned := 0; ; {
		m := Measures{Limit: limit, LogSize: LogSize(dir)}
		if percent := int(m.Share() * 100); m.Share() > WarnShare && percent > warned {
			logger.Warn("the log is nearly as large as limits.log_size; calls go on, see waybill status", "size", m.LogSize, "limit", limit, "percent", percent)
			warned = percent
		}
		if err := feed.Wait(ctx, feed.Head()+watchEvery-1); err != nil {
			return nil //nolint:nilerr // the only error is the end of ctx
		}
	}
}
