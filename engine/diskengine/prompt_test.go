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
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestCallsEndWithTheirContexts makes each call on a disk that does not answer: it returns soon after
// its context has ended, and what it had leased can be had by others then.
func TestCallsEndWithTheirContexts(t *testing.T) {
	ref := engine.Ref{Queue: "q", Key: "a"}
	want := engine.Want{Queue: "q", Max: 1, TTR: time.Hour, Remote: true}
	for name, call := range map[string]func(context.Context, *diskengine.Engine) error{
		"push": func(ctx context.Context, e *diskengine.Engine) error {
			_, err := e.Push(ctx, []engine.Message{{Queue: "q"}})
			return err
		},
		"push atomically": func(ctx context.Context, e *diskengine.Engine) error {
			_, err := e.PushAtomic(ctx, []engine.Message{{Queue: "q"}})
			return err
		},
		"lease": func(ctx context.Context, e *diskengine.Engine) error {
			_, err := e.Lease(ctx, []engine.Want{want})
			return err
		},
		"claim": func(ctx context.Context, e *diskengine.Engine) error { _, err := e.Claim(ctx, ref, want); return err },
		"cancel": func(ctx context.Context, e *diskengine.Engine) error {
			_, err := e.Cancel(ctx, []engine.Ref{ref})
			return err
		},
		"reschedule": func(ctx context.Context, e *diskengine.Engine) error {
			_, err := e.Reschedule(ctx, ref, engine.When{In: time.Hour})
			return err
		},
		"purge": func(ctx context.Context, e *diskengine.Engine) error { _, err := e.Purge(ctx, "q", 0); return err },
		"pause": func(ctx context.Context, e *diskengine.Engine) error { return e.Pause(ctx, "q", 0) },
		"configure": func(ctx context.Context, e *diskengine.Engine) error {
			_, err := e.Configure(ctx, "q", engine.Settings{}, "")
			return err
		},
		"backup": func(ctx context.Context, e *diskengine.Engine) error { _, err := e.Backup(ctx, "backup"); return err },
	} {
		for _, stored := range []bool{false, true} { // in an sstable
			synctest.Test(t, func(t *testing.T) {
				d := disktest.New(nil)
				p := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}
				e := p.open(t)
				push(t, e, "a", 0)
				if stored {
					if err := e.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Second) // nothing is under way
				answer := make(chan struct{})
				d.Hook(func(c disktest.Call) error {
					if c.Changes() && filepath.Base(filepath.Dir(c.Name)) == "log" {
						<-answer
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				done := make(chan error, 1)
				begun := time.Now()
				go func() { done <- call(ctx, e) }()
				select {
				case err := <-done:
					if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 2*time.Second {
						t.Errorf("%s: after %v %v", name, time.Since(begun), err)
					}
				case <-time.After(time.Minute):
					t.Errorf("%s does not return", name)
				}
				close(answer)
				if name == "lease" || name == "claim" {
					if again := lease(t, e, "q", 1); len(again) != 1 || again[0].Attempt != 1 {
						t.Errorf("%s: what was leased for nobody is not there: %+v", name, again)
					}
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
