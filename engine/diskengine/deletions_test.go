package diskengine_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
)

// TestMarksComeBehindTheLog loses the power while a flush waits for the log, which is to tell what its deletion bitmaps
// say: that a message moved out of an sstable. The manifest is lost too, and a salvage has nothing but the files
// there are to go by: the message is kept.
func TestMarksComeBehindTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, gate := vfstest.New(nil), make(chan struct{})
		var moves func()
		p := newPlace(d, func(where string) {
			if where == "pass" && moves != nil {
				moves()
			}
		})
		p.cfg.Now = time.Now
		e := p.open(t)
		large := message("q", "large", time.Hour)
		large.Body = noise(80 << 10) // more than a segment of the log
		must(t, pushAll(t, e, message("q", "a", time.Hour), message("q", "b", time.Hour), large))
		must(t, e.Flush(t.Context()))
		time.Sleep(time.Second) // the log gives back what told of them
		must(t, pushAll(t, e, message("q", "c", time.Hour)))
		moves = func() {
			moves = nil
			d.Hook(func(c vfstest.Call) error {
				if c.Op == vfstest.Sync && strings.HasSuffix(c.Name, ".log") {
					<-gate
				}
				return nil
			})
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			if _, err := e.Reschedule(ctx, engine.Ref{Queue: "q", Key: "a"}, engine.When{In: 2 * time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		flushed := make(chan error)
		go func() { flushed <- e.Flush(t.Context()) }()
		time.Sleep(time.Minute)
		lost := d.Crash(vfstest.Nothing())
		close(gate)
		must(t, errors.Join(<-flushed, e.Close()))
		must(t, lost.Remove("/data/MANIFEST"))
		salvaged(t, lost, "/data", "/made")
		p.fs, p.dir = lost, "/made"
		e = p.open(t)
		for _, key := range []string{"a", "b", "c"} {
			if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key}); err != nil {
				t.Error(err)
			}
		}
		must(t, e.Close())
	})
}

// TestMarksOfAManifestThatMayCount has the name of a manifest not be made durable, so that nobody knows which one
// counts, and a merge fail after that: the deletion bitmaps that the new one names stay.
func TestMarksOfAManifestThatMayCount(t *testing.T) {
	d := vfstest.New(nil)
	p := newPlace(d, nil)
	p.tune.SpanBytes, p.tune.MergeTables = 1<<30, 1000
	e := p.open(t)
	for _, key := range []string{"a", "b"} {
		pushKeys(t, e, key, key+"1")
		must(t, e.Flush(t.Context()))
	}
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "a"}})
	must(t, errors.Join(err, errs[0]))
	pushKeys(t, e, "c")
	fails := func(op, end string) {
		d.Hook(func(c vfstest.Call) error {
			if c.Op == op && strings.HasSuffix(c.Name, end) {
				return syscall.EIO
			}
			return nil
		})
	}
	fails(vfstest.SyncDir, "data")
	if err := e.Flush(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Fatalf("flush: %v", err)
	}
	fails(vfstest.Write, ".marks")
	if err := e.Merge(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Fatalf("merge: %v", err)
	}
	d.Hook(nil)
	p.fs = d.Kill()
	again := p.open(t)
	if has, _ := whatLives(t, again); len(has) != 4 {
		t.Errorf("%d live: %v", len(has), has)
	}
	must(t, again.Close())
	_ = e.Close()
}
