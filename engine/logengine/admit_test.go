package logengine_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine"
	"github.com/tarryhq/tarry/engine/logengine/internal/disk/disktest"
)

// TestPushHearsThatTheStoreStopped pushes while there are too many runs, and has a manifest fail of
// which it is not known whether it counts: the push that waits for merges is told.
func TestPushHearsThatTheStoreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New(nil)
		p := place{d, "data", logengine.Config{Logger: quiet, MinFreeBytes: -1}, logengine.Tune{SegmentBytes: 64 << 10, MergeRuns: 1000}}
		e := p.open(t)
		for i := range 257 {
			push(t, e, fmt.Sprint(i), time.Hour)
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Rename && strings.HasPrefix(filepath.Base(c.Name), "MANIFEST") {
				return syscall.EIO
			}
			return nil
		})
		pushed := make(chan error, 1)
		go func() {
			_, err := e.Push(t.Context(), []engine.Message{message("q", "late", time.Hour)})
			pushed <- err
		}()
		synctest.Wait()
		select {
		case err := <-pushed:
			t.Errorf("a push waits for no merge: %v", err)
			return
		default:
		}
		if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "0"}}); err != nil || errs[0] != nil { // a run is to be left out
			t.Fatal(errs, err)
		}
		select {
		case err := <-pushed:
			if !errors.Is(err, engine.ErrUnavailable) {
				t.Errorf("the push: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the store has stopped, and a push waits for ever")
		}
		if err := e.Close(); err != nil {
			t.Log(err) // why it stopped
		}
	})
}

// TestPurgeEndsWithTheEngine closes an engine while a queue is purged: who asked for it is told so, and
// the rest is removed when the store is opened again.
func TestPurgeEndsWithTheEngine(t *testing.T) {
	d := disktest.New(nil)
	p := place{d, "data", logengine.Config{Logger: quiet}, logengine.Tune{SegmentBytes: 64 << 10}}
	e := p.open(t)
	for i := range 100 {
		push(t, e, fmt.Sprint(i), time.Hour)
	}
	push(t, e, "leased", 0)
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease(t, e, "q", 1) // whom the purge spares, so that it reads who is who
	begun, read := make(chan struct{}, 1), make(chan struct{})
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
			select {
			case begun <- struct{}{}:
			default:
			}
			<-read
		}
		return nil
	})
	purged, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := e.Purge(t.Context(), "q", 0)
		purged <- err
	}()
	<-begun
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
