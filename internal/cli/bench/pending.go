package bench

import (
	"context"
	"time"
)

// pending pushes n messages due over the next 48 hours, and measures the memory and disk they
// take once all is quiet.
func (t *trial) pending(ctx context.Context) error {
	before, diskBefore := t.settledRSS(), t.disk()
	t.result.Batch = fillBatch
	var h histogram
	start := time.Now()
	err := t.each(ctx, "pushed", t.N, fillBatch, &h, t.pushing(key, dueWithin48h))
	if err != nil {
		return err
	}
	t.result.took(time.Since(start), t.N)
	t.result.latencies(&h)
	t.result.RSS, t.result.Disk = t.settledRSS(), t.disk()
	t.result.RSSPerMessage = round(float64(max(t.result.RSS-before, 0))/float64(t.N), 1)
	t.result.DiskPerMessage = round(float64(max(t.result.Disk-diskBefore, 0))/float64(t.N), 1)
	return nil
}
