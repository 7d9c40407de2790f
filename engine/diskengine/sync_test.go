package diskengine

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/tarryhq/tarry/engine"
)

// TestSyncsAreAwaitedFromTheStart pushes so much in one batch that the log is written and
// synced while the batch still goes to memory: already that sync is one which somebody
// waits for.
func TestSyncsAreAwaitedFromTheStart(t *testing.T) {
	var e *Engine
	var counting atomic.Bool
	var syncs, alone atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
		if counting.Load() && sync && filepath.Ext(op.Path) == ".log" {
			if syncs.Add(1); e.store.disk.awaited.Load() == 0 {
				alone.Add(1)
			}
		}
		return nil
	}))
	var err error
	if e, err = Open("data", &Config{FS: fs, Logger: quietLog, MinFreeBytes: -1}); err != nil {
		t.Fatal(err)
	}
	msgs := make([]engine.Message, 10_000)
	for i := range msgs {
		msgs[i] = waiting(fmt.Sprint(i), time.Hour)
	}
	counting.Store(true)
	pushAll(t, e, msgs)
	counting.Store(false)
	if syncs.Load() == 0 || alone.Load() > 0 {
		t.Errorf("nobody waited for %d of %d syncs", alone.Load(), syncs.Load())
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
