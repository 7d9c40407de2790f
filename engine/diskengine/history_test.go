package diskengine_test

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// countdown lets the n-th operation from when it was armed fail.
type countdown struct{ left, happened atomic.Int64 }

func (c *countdown) arm(n int) {
	c.happened.Store(0)
	c.left.Store(int64(n))
}

func (c *countdown) disarm() bool {
	c.left.Store(0)
	return c.happened.Load() > 0
}

func (c *countdown) strike() error {
	if c.left.Load() > 0 && c.left.Add(-1) == 0 {
		c.happened.Add(1)
		return syscall.EIO
	}
	return nil
}

// readFS has reads that fail.
type readFS struct {
	vfs.FS
	reads *countdown
}

func (f readFS) Unwrap() vfs.FS { return f.FS }

func (f readFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.reads.strike(); err != nil {
		return nil, err
	}
	file, err := f.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return readFile{file, f.reads}, nil
}

type readFile struct {
	vfs.File
	reads *countdown
}

func (f readFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.reads.strike(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// TestHistoriesWithFaults runs the suite's histories on a store whose reads or
// writes fail now and then. So small a cache and so small tables make it read.
func TestHistoriesWithFaults(t *testing.T) {
	t.Parallel()
	type disk struct {
		place
		reads, writes countdown
	}
	clock := enginetest.NewClock()
	disks := map[engine.Engine]*disk{}
	var struck atomic.Int64
	fault := func(name string, on func(d *disk) *countdown) enginetest.Fault {
		return enginetest.Fault{
			Name: name,
			Arm:  func(e engine.Engine, n int) { on(disks[e]).arm(n) },
			Disarm: func(e engine.Engine) bool {
				happened := on(disks[e]).disarm()
				if happened {
					struck.Add(1)
				}
				return happened
			},
		}
	}
	again := func(t *testing.T, e engine.Engine) engine.Engine {
		d := disks[e]
		_ = e.Close() // it may have failed
		e = d.open(t)
		disks[e] = d
		return e
	}
	read := fault("a read fails", func(d *disk) *countdown { return &d.reads })
	read.Harmless = true
	write := fault("a write fails", func(d *disk) *countdown { return &d.writes })
	write.Reopen, write.Most = again, 3
	enginetest.RunFaults(t, enginetest.Harness{
		Clock: clock,
		Open: func(t *testing.T) engine.Engine {
			d := &disk{}
			fs := &faultFS{FS: readFS{vfs.NewMem(), &d.reads}, before: func(op, _ string) error {
				if op == "write" || op == "sync" {
					return d.writes.strike()
				}
				return nil
			}}
			d.place = place{"data", diskengine.Config{FS: fs, Now: clock.Now, Logger: quiet, MemTableBytes: 16 << 10, CacheBytes: 1}}
			e := d.open(t)
			disks[e] = d
			return e
		},
		Reopen:    again,
		Faults:    []enginetest.Fault{read, write},
		Histories: 10,
	})
	t.Logf("%d calls met a fault", struck.Load())
	if struck.Load() < 50 && os.Getenv("TARRY_TEST_SEED") == "" {
		t.Errorf("only %d calls met a fault", struck.Load())
	}
}
