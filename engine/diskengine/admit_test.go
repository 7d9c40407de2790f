package diskengine_test

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
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
)

// TestPushHearsThatTheStoreStopped pushes while there are too many runs, and has a manifest fail of
// which it is not known whether it counts: the push that waits for merges is told.
func TestPushHearsThatTheStoreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New(nil)
		p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeRuns: 1000}}
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
