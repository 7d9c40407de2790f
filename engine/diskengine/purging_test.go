package diskengine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestPurgeEndsWithTheEngine closes an engine while a queue is purged: who asked for it is told so, and
// the rest is removed when the store is opened again.
func TestPurgeEndsWithTheEngine(t *testing.T) {
	d := vfstest.New(nil)
	p := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}
	e := p.open(t)
	purged, read := purgeUnderWay(t, d, e)
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	if err := <-purged; !errors.Is(err, engine.ErrClosed) {
		t.Errorf("the purge: %v", err)
	}
	close(read)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	e = p.open(t)
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Scheduled != 0 || i.Leased != 1 {
		t.Errorf("%+v is left: %v", i, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// purgeUnderWay fills queue q, of whom one is leased, and has a purge of it come to the reading of an sstable,
// which ends when read is closed.
func purgeUnderWay(t *testing.T, d *vfstest.Disk, e *diskengine.Engine) (purged chan error, read chan struct{}) {
	t.Helper()
	for i := range 100 {
		push(t, e, fmt.Sprint(i), time.Hour)
	}
	push(t, e, "leased", 0)
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease(t, e, "q", 1) // whom the purge spares, so that it reads who is who
	var first atomic.Bool
	begun := make(chan struct{})
	purged, read = make(chan error, 1), make(chan struct{})
	d.Hook(func(c vfstest.Call) error {
		if c.Op == vfstest.Read && strings.HasSuffix(c.Name, ".run") && first.CompareAndSwap(false, true) {
			close(begun)
			<-read
		}
		return nil
	})
	go func() {
		_, err := e.Purge(t.Context(), "q", 0)
		purged <- err
	}()
	<-begun
	return purged, read
}

// TestPurgeOutlivesAFlush flushes while a purge is under way, so that the log behind its record goes, and
// ends without closing: the purge is carried out by who opens the store, and spares what came since.
func TestPurgeOutlivesAFlush(t *testing.T) {
	for name, left := range map[string]func(*vfstest.Disk) *vfstest.Disk{
		"killed":   (*vfstest.Disk).Kill,
		"no power": func(d *vfstest.Disk) *vfstest.Disk { return d.Crash(vfstest.Nothing()) },
	} {
		d := vfstest.New(nil)
		p := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}
		e := p.open(t)
		purged, read := purgeUnderWay(t, d, e)
		push(t, e, "1", time.Hour) // the key of one that is gone
		push(t, e, "new", time.Hour)
		for range 2 {
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		after := p
		after.fs = left(d)
		close(read)
		if err := <-purged; err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = after.open(t)
		if i, err := e.Queue(t.Context(), "q"); err != nil || i.Scheduled != 2 || i.Leased != 1 {
			t.Errorf("%s: %+v is left: %v", name, i, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeathAmidAPurgeOfTheDead: a message dies while the dead of its queue are purged, of whom as many may stay
// as there were. It stays, though it died in the same instant and has the smaller id.
func TestDeathAmidAPurgeOfTheDead(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		clock := enginetest.NewClock()
		var e *diskengine.Engine
		var held []engine.Lease
		var once sync.Once
		p := place{vfstest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10}}
		p.tune.Between = func(where string) {
			if where == "purge" {
				once.Do(func() { settle(t, e, held, engine.Bury) })
			}
		}
		e = p.open(t)
		_, err := e.Configure(t.Context(), "q", engine.Settings{DeadMax: 1}, "")
		must(t, err)
		must(t, pushAll(t, e, message("q", "a", 0)))
		held = lease(t, e, "q", 1)
		must(t, pushAll(t, e, message("q", "b", 0)))
		settle(t, e, lease(t, e, "q", 1), engine.Bury)
		if flushed {
			must(t, e.Flush(t.Context()))
		}
		if n, err := e.Purge(t.Context(), "q", engine.PurgeDead); err != nil || n != 1 {
			t.Errorf("%d are purged, %v", n, err)
		}
		if m, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: held[0].ID}); err != nil || m.State != engine.Dead {
			t.Errorf("%+v, %v", m, err)
		}
		must(t, errors.Join(e.Sound(), e.Close()))
	}
}
