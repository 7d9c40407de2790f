package diskengine_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedDir); dir != "" {
		fmt.Println("stopped", runUntilKilled(dir))
		return
	}
	leaktest.Main(m)
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// place is a directory on a file system that an engine can be opened on again.
type place struct {
	fs   vfs.FS
	dir  string
	cfg  diskengine.Config
	tune diskengine.Tune
}

func (p place) open(t testing.TB) *diskengine.Engine {
	t.Helper()
	e, err := diskengine.OpenOn(p.fs, p.dir, &p.cfg, p.tune)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// harness opens each engine in a new place and remembers where, to open it again.
func harness(clock *enginetest.Clock, newPlace func(t *testing.T) place) enginetest.Harness {
	places := make(map[engine.Engine]place)
	return enginetest.Harness{
		Clock: clock,
		Open: func(t *testing.T) engine.Engine {
			p := newPlace(t)
			e := p.open(t)
			places[e] = p
			return e
		},
		Reopen: func(t *testing.T, e engine.Engine) engine.Engine {
			p := places[e]
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			again := p.open(t)
			places[again] = p
			return again
		},
	}
}

// small lets flushes and merges happen all the time.
var small = diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: 1 << 10, BlockBytes: 512, MergeTables: 3, HeadBytes: 64}

// scarce has no memory for what is about to be leased in more than one queue.
var scarce = diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: 16 << 10, BlockBytes: 512, NearBytes: 1, HeadBytes: 64}

func TestConformance(t *testing.T) {
	for name, tune := range map[string]diskengine.Tune{"recent": {SegmentBytes: 1 << 20}, "flushed": small, "forgotten": scarce} {
		t.Run(name, func(t *testing.T) {
			clock := enginetest.NewClock()
			h := harness(clock, func(t *testing.T) place {
				tune.OnHeap = true
				tune.Sound = func(err error) { panic(err) }
				return place{disktest.New(&disktest.Config{}), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, tune}
			})
			h.Histories = 10
			enginetest.Run(t, h)
		})
	}
}
