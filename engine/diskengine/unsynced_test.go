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
		"a claim in a state": func(ctx context.Context, e *diskengine.Engine) error {
			in := ref
			in.IfState = engine.Ready
			_, err := e.Claim(ctx, in, engine.Want{Queue: "q", TTR: time.Hour})
			return err
		},
		"a peek": func(ctx context.Context, e *diskengine.Engine) error {
			first, err := e.Peek(ctx, []string{"q"})
			if err == nil && first[0].Key != "a" {
				err = engine.ErrNotFound
			}
			return err
		},
		"a find": func(ctx context.Context, e *diskengine.Engine) error {
			queues, err := e.Find(ctx, []engine.ID{e.NextID() - 1})
			if err == nil && queues[0] != "q" {
				err = engine.ErrNotFound
			}
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
		seesWhatIsDurable(t, name, func(t *testing.T, e *diskengine.Engine) (func(), func(context.Context) error) {
			push(t, e, "before", time.Hour)
			return func() { push(t, e, "a", 0) }, func(ctx context.Context) error { return call(ctx, e) }
		})
	}
}

// TestNoEndIsToldBeforeItIsDurable has an ack of a message whose key is remembered wait for its sync: no call
// that has seen that the message has ended answers before.
func TestNoEndIsToldBeforeItIsDurable(t *testing.T) {
	ref := engine.Ref{Queue: "q", Key: "a"}
	for name, call := range map[string]func(ctx context.Context, e *diskengine.Engine, token string) error{
		"a push that keeps the end": func(ctx context.Context, e *diskengine.Engine, _ string) error {
			r, err := e.Push(ctx, []engine.Message{{Queue: "q", Key: "a", OnConflict: engine.Keep}})
			if err == nil && (r[0].Outcome != engine.Kept || r[0].State != engine.Finished) {
				err = engine.ErrNotFound
			}
			return err
		},
		"a push that is refused": func(ctx context.Context, e *diskengine.Engine, _ string) error {
			r, err := e.Push(ctx, []engine.Message{{Queue: "q", Key: "a"}})
			if err == nil && !errors.Is(r[0].Err, engine.ErrExists) {
				err = engine.ErrNotFound
			}
			return err
		},
		"an atomic push that is refused": func(ctx context.Context, e *diskengine.Engine, _ string) error {
			if _, err := e.PushAtomic(ctx, []engine.Message{{Queue: "q", Key: "a"}}); !errors.Is(err, engine.ErrExists) {
				return errors.Join(engine.ErrNotFound, err)
			}
			return nil
		},
		"a settlement that comes too late": func(ctx context.Context, e *diskengine.Engine, token string) error {
			s, err := e.Settle(ctx, []engine.Settlement{{Token: token, Do: engine.Release}})
			if err == nil && !errors.Is(s[0].Err, engine.ErrLeaseLost) {
				err = engine.ErrNotFound
			}
			return err
		},
		"a cancel that finds nothing": func(ctx context.Context, e *diskengine.Engine, _ string) error {
			errs, err := e.Cancel(ctx, []engine.Ref{ref})
			if err == nil && !errors.Is(errs[0], engine.ErrNotFound) {
				err = engine.ErrLeased
			}
			return err
		},
		"a look-up": func(ctx context.Context, e *diskengine.Engine, _ string) error {
			i, err := e.Get(ctx, ref)
			if err == nil && i.State != engine.Finished {
				err = engine.ErrNotFound
			}
			return err
		},
		"a find that finds nothing": func(ctx context.Context, e *diskengine.Engine, _ string) error {
			queues, err := e.Find(ctx, []engine.ID{e.NextID() - 1})
			if err == nil && queues[0] != "" {
				err = engine.ErrExists
			}
			return err
		},
		"a claim": func(ctx context.Context, e *diskengine.Engine, _ string) error {
			if _, err := e.Claim(ctx, ref, engine.Want{Queue: "q"}); !errors.Is(err, engine.ErrNotFound) {
				return errors.Join(engine.ErrExists, err)
			}
			return nil
		},
	} {
		seesWhatIsDurable(t, name, func(t *testing.T, e *diskengine.Engine) (func(), func(context.Context) error) {
			m := message("q", "a", 0)
			m.Remember = time.Hour
			if err := pushAll(t, e, m); err != nil {
				t.Fatal(err)
			}
			got := lease(t, e, "q", 1)
			return func() { settle(t, e, got, engine.Ack) }, func(ctx context.Context) error { return call(ctx, e, got[0].Token) }
		})
	}
}

// TestClaimThatChangesWaits claims what is scheduled or dead: the answer waits until it is durable that the message
// is ready, unlike that to a claim of a ready one.
func TestClaimThatChangesWaits(t *testing.T) {
	for _, state := range []engine.State{engine.Scheduled, engine.Dead} {
		seesWhatIsDurable(t, "a claim of what is "+state.String(), func(t *testing.T, e *diskengine.Engine) (func(), func(context.Context) error) {
			if state == engine.Dead {
				push(t, e, "a", 0)
				settle(t, e, lease(t, e, "q", 1), engine.Bury)
			} else {
				push(t, e, "a", time.Hour)
			}
			return func() {}, func(ctx context.Context) error {
				_, err := e.Claim(ctx, engine.Ref{Queue: "q", ID: e.NextID() - 1, IfState: state}, engine.Want{})
				return err
			}
		})
	}
}

// seesWhatIsDurable has a change wait for its sync: a call that has seen it does not answer before. Both are
// what prepare returns.
func seesWhatIsDurable(t *testing.T, name string, prepare func(*testing.T, *diskengine.Engine) (change func(), call func(context.Context) error)) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New(nil)
		e := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		change, call := prepare(t, e)
		time.Sleep(10 * time.Second) // nothing is under way
		sync := make(chan struct{})
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Sync && filepath.Base(filepath.Dir(c.Name)) == "log" {
				<-sync
			}
			return nil
		})
		defer d.Hook(nil)
		changed := make(chan struct{})
		go func() {
			change()
			close(changed)
		}()
		synctest.Wait()
		told := make(chan error, 1)
		go func() { told <- call(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-told:
			t.Errorf("%s answers before what it has seen is durable: %v", name, err)
			close(sync)
		default:
			close(sync)
			if err := <-told; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		<-changed
	})
}
