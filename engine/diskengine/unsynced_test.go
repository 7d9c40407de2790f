package diskengine_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
)

// TestNothingIsToldBeforeItIsDurable has a push wait for its sync: no call that has seen its message
// answers before.
func TestNothingIsToldBeforeItIsDurable(t *testing.T) {
	ref := engine.Ref{Queue: "q", Key: "a"}
	for name, call := range map[string]func(context.Context, *diskengine.Engine) error{
		"a lease in this process": func(ctx context.Context, e *diskengine.Engine) error {
			g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1, TTR: time.Hour}})
			if err == nil && len(g.Queues[0].Messages) != 1 {
				err = engine.ErrNotFound
			}
			return err
		},
		"a lease for another one": func(ctx context.Context, e *diskengine.Engine) error {
			g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1, TTR: time.Hour, Remote: true}})
			if err == nil && len(g.Queues[0].Messages) != 1 {
				err = engine.ErrNotFound
			}
			return err
		},
		"a claim": func(ctx context.Context, e *diskengine.Engine) error {
			_, err := e.Claim(ctx, ref, engine.Want{Queue: "q", TTR: time.Hour})
			return err
		},
		"a push that keeps it": func(ctx context.Context, e *diskengine.Engine) error {
			r, err := e.Push(ctx, []engine.Message{{Queue: "q", Key: "a", OnConflict: engine.Keep}})
			if err == nil && r[0].Outcome != engine.Kept {
				err = engine.ErrNotFound
			}
			return err
		},
		"a push that is refused": func(ctx context.Context, e *diskengine.Engine) error {
			r, err := e.Push(ctx, []engine.Message{{Queue: "q", Key: "a"}})
			if err == nil && !errors.Is(r[0].Err, engine.ErrExists) {
				err = engine.ErrNotFound
			}
			return err
		},
		"a look-up": func(ctx context.Context, e *diskengine.Engine) error { _, err := e.Get(ctx, ref); return err },
		"a list": func(ctx context.Context, e *diskengine.Engine) error {
			l, err := e.List(ctx, engine.ListQuery{Queue: "q", State: engine.Ready, Limit: 10})
			if err == nil && len(l.Messages) != 1 {
				err = engine.ErrNotFound
			}
			return err
		},
		"a count": func(ctx context.Context, e *diskengine.Engine) error {
			i, err := e.Queue(ctx, "q")
			if err == nil && i.Ready != 1 {
				err = engine.ErrNotFound
			}
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := disktest.New(nil)
			e := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
			defer func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			push(t, e, "before", time.Hour)
			time.Sleep(10 * time.Second) // nothing is under way
			sync := make(chan struct{})
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Sync && filepath.Base(filepath.Dir(c.Name)) == "log" {
					<-sync
				}
				return nil
			})
			defer d.Hook(nil)
			pushed := make(chan struct{})
			go func() {
				push(t, e, "a", 0)
				close(pushed)
			}()
			synctest.Wait()
			told := make(chan error, 1)
			go func() { told <- call(t.Context(), e) }()
			synctest.Wait()
			select {
			case err := <-told:
				t.Errorf("%s answers before the message is durable: %v", name, err)
				close(sync)
			default:
				close(sync)
				if err := <-told; err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			<-pushed
		})
	}
}
