package diskengine

import (
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

var _ engine.Measurer = (*Engine)(nil)

// Figures implements engine.Measurer. Sizes are as of a moment ago, or of before the disk
// began to hang.
func (e *Engine) Figures() []engine.Figure {
	l, d, m := figure.Of("disk"), e.store.disk, e.sampled()
	l.Times("sync_seconds", "How long syncs of the log took.", &d.measured.syncs)
	l.TotalBy("written_bytes", "Bytes written, to the log, to tables and to other files.", "file",
		figure.By{Label: "log", Value: float64(d.measured.log.Load())},
		figure.By{Label: "table", Value: float64(d.measured.tables.Load())},
		figure.By{Label: "other", Value: float64(d.measured.other.Load())})
	l.Total("retries", "Operations tried again that failed for want of space or of file descriptors.", float64(d.measured.again.Load()))
	l.Total("background_failures", "Flushes and compactions that failed.", float64(d.measured.failures.Load()))
	l.Flag("stopped", "Whether a failure of the disk has stopped the store until it is opened again.", e.store.failed() != nil)
	l.Flag("full", "Whether pushes are refused because too little space is free.", e.space.low.Load() || e.ballast.out.Load())
	pending := time.Duration(0)
	if op, ok := d.slowest(); ok {
		pending = max(0, time.Since(op.since))
	}
	l.Gauge("operation_seconds", "For how long the oldest operation that the disk has not answered is under way; 0: there is none.", pending.Seconds())
	m.add(l)
	return l.All()
}

// sizes are what Pebble and the file system told of them.
type sizes struct {
	pebble.Metrics
	usage bool // the file system tells its free space
	free  uint64
}

func (s *sizes) add(l *figure.List) {
	if s.usage {
		l.Gauge("free_bytes", "Free space of the file system.", float64(s.free))
	}
	l.Gauge("used_bytes", "Space that logs and tables take.", float64(s.DiskSpaceUsage()))
	l.Gauge("log_bytes", "What the log holds that is in no table yet.", float64(s.WAL.Size))
	var bytes, tables []figure.By
	for i := range s.Levels {
		level := strconv.Itoa(i)
		bytes = append(bytes, figure.By{Label: level, Value: float64(s.Levels[i].TablesSize)})
		tables = append(tables, figure.By{Label: level, Value: float64(s.Levels[i].TablesCount)})
	}
	l.GaugeBy("level_bytes", "Size of the tables of each level.", "level", bytes...)
	l.GaugeBy("level_tables", "Tables of each level.", "level", tables...)
	l.Gauge("compaction_debt_bytes", "What is estimated to be merged until the levels are in shape.", float64(s.Compact.EstimatedDebt))
	l.Total("flushes", "Tables in memory written to disk.", float64(s.Flush.Count))
	l.Total("compactions", "Merges of tables.", float64(s.Compact.Count))
	l.GaugeBy("memory_bytes", "Memory that recent writes and blocks read from disk take.", "use",
		figure.By{Label: "recent", Value: float64(s.MemTable.Size + s.MemTable.ZombieSize)},
		figure.By{Label: "cache", Value: float64(s.BlockCache.Size)})
	l.Total("cache_hits", "Blocks found in the cache.", float64(s.BlockCache.Hits))
	l.Total("cache_misses", "Blocks read from disk.", float64(s.BlockCache.Misses))
}

// samples are taken beside the calls of Figures, as Pebble has whoever asks it wait while
// the disk hangs.
type samples struct {
	mu    sync.Mutex
	last  sizes
	began time.Time
	under chan struct{} // closed when the one under way has ended; nil: there is none
}

const (
	sampleEvery  = 100 * time.Millisecond // how far samples are apart
	sampleWithin = 50 * time.Millisecond  // how long one is waited for
)

// sampled returns a sample that is not old, if that can be had.
func (e *Engine) sampled() *sizes {
	s := &e.samples
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under == nil && time.Since(s.began) >= sampleEvery && e.calls.TryEnter() {
		s.began, s.under = time.Now(), make(chan struct{})
		go e.sample(s.under)
	}
	if under := s.under; under != nil {
		s.mu.Unlock()
		timer := time.NewTimer(sampleWithin)
		select {
		case <-under:
		case <-timer.C:
		}
		timer.Stop()
		s.mu.Lock()
	}
	last := s.last
	return &last
}

// sample takes one, and ends the call that it is.
func (e *Engine) sample(over chan struct{}) {
	defer e.calls.Leave()
	now := sizes{Metrics: *e.store.db.Metrics()}
	usage, err := e.cfg.FS.GetDiskUsage(e.dir.path)
	now.free = usage.AvailBytes
	e.samples.mu.Lock()
	defer e.samples.mu.Unlock()
	if now.usage = err == nil || e.samples.last.usage; err != nil {
		now.free = e.samples.last.free
	}
	e.samples.last, e.samples.under = now, nil
	close(over)
}
