package diskengine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestRevivedOrRemembered has a message be released or claimed that had died at the end of its lease, when
// another under its key was pushed and cancelled: whenever the power goes from then on, it is dead and the other
// remembered, or it holds the key and nothing is.
func TestRevivedOrRemembered(t *testing.T) {
	for _, how := range []struct{ flushed, claimed bool }{{}, {true, false}, {false, true}, {true, true}} {
		flushed := how.flushed
		t.Run(fmt.Sprintf("%+v", how), func(t *testing.T) {
			clock := enginetest.NewClock()
			place := func(d *disktest.Disk) place {
				return place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, Still: true}}
			}
			d := disktest.New(nil)
			e := place(d).open(t)
			flush := func() {
				if flushed {
					must(t, e.Flush(t.Context()))
				}
			}
			m := message("q", "a", 0)
			m.MaxAttempts, m.Remember = 1, 1000*time.Hour
			must(t, pushAll(t, e, m))
			flush()
			held := lease(t, e, "q", 1)
			clock.Advance(2 * time.Hour)
			must(t, pushAll(t, e, m))
			flush()
			ref := engine.Ref{Queue: "q", Key: "a"}
			if errs, err := e.Cancel(t.Context(), []engine.Ref{ref}); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
			flush()
			var losses []*disktest.Disk
			lose := func() {
				n := 0
				for chooser := range disktest.Every() {
					if losses = append(losses, d.Crash(chooser)); n == 16 {
						break
					}
					n++
				}
				losses = append(losses, d.Kill())
			}
			d.Hook(func(c disktest.Call) error {
				if c.Changes() {
					lose()
				}
				return nil
			})
			if how.claimed {
				_, err := e.Claim(t.Context(), engine.Ref{Queue: "q", ID: held[0].ID, IfState: engine.Dead}, engine.Want{Remote: true, TTR: time.Hour})
				must(t, err)
			} else {
				settle(t, e, held, engine.Release)
			}
			answered := len(losses)
			lose()
			flush()
			lose()
			d.Hook(nil)
			must(t, e.Close())
			revived := 0
			for i, d := range losses {
				e := place(d).open(t)
				got, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: held[0].ID})
				must(t, err)
				want, finished := held[0].ID, int64(0)
				if got.State == engine.Dead {
					want, finished = want+1, 1
				} else {
					revived++
				}
				if i >= answered && got.State == engine.Dead {
					t.Errorf("loss %d: what was answered is lost", i)
				}
				if info, err := e.Get(t.Context(), ref); err != nil || info.ID != want {
					t.Errorf("loss %d: %v under the key, want %v, %v", i, info.ID, want, err)
				}
				if n, err := e.Queue(t.Context(), "q"); err != nil || n.Finished != finished {
					t.Errorf("loss %d: %+v, %v, of one who is %v", i, n, err, got.State)
				}
				must(t, e.Close())
			}
			if revived == 0 || revived == len(losses) {
				t.Errorf("%d of %d revived", revived, len(losses))
			}
		})
	}
}
