package diskengine_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// place is a directory on a file system that an engine can be opened on again.
type place struct {
	dir string
	cfg diskengine.Config
}

func (p place) open(t testing.TB) engine.Engine {
	t.Helper()
	e, err := diskengine.Open(p.dir, &p.cfg)
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

func TestConformance(t *testing.T) {
	t.Parallel()
	clock := enginetest.NewClock()
	h := harness(clock, func(*testing.T) place {
		return place{"data", diskengine.Config{FS: vfs.NewMem(), Now: clock.Now, Logger: quiet, MemTableBytes: 1 << 20, CacheBytes: 1 << 20}}
	})
	h.Histories = 10
	enginetest.Run(t, h)
}
