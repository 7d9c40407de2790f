package diskengine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// moving is an engine in a bubble with a large message, which takes another place in memory whenever it is wound
// back.
type moving struct {
	*testing.T
	*diskengine.Engine
	spare int         // bytes that were kept at most, of it and others
	over  atomic.Bool // the test is: what the background does yet moves nothing
}

const movingSize = 1 << 20

func (m *moving) push() {
	m.Helper()
	large := message("q", "large", time.Hour)
	large.Body, large.OnConflict = noise(movingSize), engine.Replace // the background may have flushed, and so moved it, before
	if err := pushAll(m.T, m, large); err != nil {
		m.Fatal(err)
	}
}

func (m *moving) rearm() {
	m.Helper()
	again := message("q", "large", time.Hour)
	again.OnConflict = engine.Rearm
	err := pushAll(m.T, m, again)
	if m.over.Load() {
		return
	}
	if err != nil {
		m.Error(err)
	}
	m.spare = max(m.spare, int(enginetest.FigureOf(m.T, m.Engine, "disk_memory_bytes", "spare")))
}

func inMotion(t *testing.T, memory int64, between func(m *moving, where string), fn func(m *moving)) {
	synctest.Test(t, func(t *testing.T) {
		m := &moving{T: t}
		tune := diskengine.Tune{Between: func(where string) { between(m, where) }}
		m.Engine = place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MemoryBytes: memory}, tune}.open(t)
		synctest.Wait() // until the background has looked
		defer m.over.Store(true)
		fn(m)
		m.over.Store(true)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLargeMessagesThatMoveTakeNoMore winds a large message back again and again, which takes hardly any
// log, so that nothing is flushed for it: the memory that it took before is given back.
func TestLargeMessagesThatMoveTakeNoMore(t *testing.T) {
	inMotion(t, 64<<20, func(*moving, string) {}, func(m *moving) {
		m.push()
		for range 100 {
			m.rearm()
			synctest.Wait()
		}
		if n := int(enginetest.FigureOf(t, m.Engine, "disk_flushes", "")); n > 0 || m.spare > 10*movingSize {
			t.Errorf("%d MiB are kept of one message of %d, with %d flushes", m.spare>>20, movingSize>>20, n)
		}
	})
}

// TestLargeMessagesThatMoveDuringAFlush does so while others are written to an sstable.
func TestLargeMessagesThatMoveDuringAFlush(t *testing.T) {
	passes := 0
	between := func(m *moving, where string) {
		if where == "pass" {
			passes++
			for range 5 {
				m.rearm()
			}
		}
	}
	inMotion(t, diskengine.LeastMemory, between, func(m *moving) {
		small := make([]engine.Message, 1000)
		for i := range small {
			small[i] = message("small", fmt.Sprint(i), time.Hour)
		}
		if err := pushAll(m.T, m, small...); err != nil {
			m.Fatal(err)
		}
		if err := m.Seal(m.Context()); err != nil {
			m.Fatal(err)
		}
		m.push()
		if err := m.Flush(m.Context()); err != nil {
			m.Fatal(err)
		}
		if passes < 8 || m.spare > diskengine.LeastMemory+7*movingSize {
			m.Errorf("%d MiB are kept of one message of %d, which moved %d times", m.spare>>20, movingSize>>20, 5*passes)
		}
	})
}
