package tarry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// plainEngine has of its abilities only what it is told.
type plainEngine struct {
	engine.Whole
	caps engine.Capabilities
}

func (e *plainEngine) Capabilities() engine.Capabilities { return e.caps }

// bareEngine says that it can do everything, and has no optional call.
type bareEngine struct{ engine.Engine }

// What an engine lacks is refused even if the engine says that it has it.
func TestCallsThatAnEngineDoesNotHave(t *testing.T) {
	for _, prompt := range []bool{true, false} {
		s := newStage()
		s.caps = func(c *engine.Capabilities) { c.Prompt = prompt }
		c := tarry.New(bareEngine{s}, nil)
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"push atomically": func() error { _, err := c.PushAtomic(ctx, []tarry.Draft{{Queue: "q"}}); return err },
			"claim":           func() error { _, err := c.Claim(ctx, tarry.ByKey("k").Of("q"), tarry.LeaseOptions{}); return err },
			"peek":            func() error { _, err := c.Peek(ctx, []string{"q"}); return err },
			"find":            func() error { _, err := c.Find(ctx, []tarry.ID{1}); return err },
			"list":            func() error { _, err := c.ListPage(ctx, tarry.ListQuery{Queue: "q", State: tarry.Ready}); return err },
			"queue":           func() error { _, err := c.Queue(ctx, "q"); return err },
			"queues":          func() error { _, _, err := c.Queues(ctx, "", 1); return err },
			"forecast":        func() error { _, err := c.Forecast(ctx, "q", time.Minute, time.Hour); return err },
			"pause":           func() error { return c.Pause(ctx, "q", 0) },
			"resume":          func() error { return c.Resume(ctx, "q") },
			"purge":           func() error { _, err := c.Purge(ctx, "q", 0); return err },
			"redrive":         func() error { _, err := c.Redrive(ctx, "q", nil, 0); return err },
			"settings":        func() error { _, _, err := c.Settings(ctx, "q"); return err },
			"configure":       func() error { _, err := c.Configure(ctx, "q", tarry.Settings{}, ""); return err },
		} {
			if err := call(); !errors.Is(err, tarry.ErrUnsupported) {
				t.Errorf("%s, prompt %v: %v", name, prompt, err)
			}
		}
		if err := errors.Join(c.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// What an engine cannot do is refused before it is asked, with what it lacks.
func TestWhatAnEngineLacksIsRefused(t *testing.T) {
	mem := memengine.New(nil)
	defer mem.Close()
	plain := &plainEngine{Whole: mem}
	plain.caps = engine.Capabilities{Name: "plain"}
	plain.caps.Keys, plain.caps.Get, plain.caps.Cancel, plain.caps.Reschedule, plain.caps.Claim, plain.caps.List, plain.caps.Purge = true, true, true, true, true, true, true
	plain.caps.MaxDelay = time.Hour
	fixed := &plainEngine{Whole: mem, caps: engine.Capabilities{Name: "fixed", Limits: engine.Limits{Delays: []time.Duration{time.Second, time.Minute}}}}
	c, f := tarry.New(plain, nil), tarry.New(fixed, nil)
	defer c.Close()
	defer f.Close()
	ctx := t.Context()
	push := func(c *tarry.Client, opts ...tarry.PushOption) error {
		_, err := c.Push(ctx, "q", nil, opts...)
		return err
	}
	ref := tarry.ByKey("k").Of("q")
	only := ref
	only.IfState = tarry.Ready
	if err := push(c, tarry.Key("k"), tarry.ExpireAfter(0), tarry.Remember(0)); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"priority":     func() error { return push(c, tarry.Priority(0)) },
		"expiry":       func() error { return push(c, tarry.ExpireAfter(time.Hour)) },
		"remember":     func() error { return push(c, tarry.Remember(time.Hour)) },
		"isolate":      func() error { return push(c, tarry.Isolate(true)) },
		"long delay":   func() error { return push(c, tarry.In(time.Hour+1)) },
		"far due":      func() error { return push(c, tarry.At(time.Now().Add(2*time.Hour))) },
		"put off":      func() error { _, err := c.Reschedule(ctx, ref, tarry.In(2*time.Hour)); return err },
		"other delay":  func() error { return push(f, tarry.In(2*time.Second)) },
		"instant":      func() error { return push(f, tarry.At(time.Now().Add(time.Minute))) },
		"remote lease": func() error { _, err := c.Claim(ctx, ref, tarry.LeaseOptions{Remote: true}); return err },
		"lease": func() error {
			_, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, LeaseOptions: tarry.LeaseOptions{Remote: true}})
			return err
		},
		"lease now": func() error {
			_, err := c.LeaseNow(ctx, []engine.Want{{Queue: "q", Max: 1, Remote: true}})
			return err
		},
		"cancel in a state": func() error { return c.Cancel(ctx, only) },
		"cancel many": func() error {
			r, err := c.CancelMany(ctx, []tarry.Ref{only})
			return errors.Join(err, r[0].Err)
		},
		"claim in a state": func() error { _, err := c.Claim(ctx, only, tarry.LeaseOptions{}); return err },
		"peek":             func() error { _, err := c.Peek(ctx, []string{"q"}); return err },
		"find":             func() error { _, err := c.Find(ctx, []tarry.ID{1}); return err },
		"priority of a settlement": func() error {
			r, err := c.Settle(ctx, []tarry.Settlement{{Token: "x", Do: engine.Release, Priority: new(uint32(1))}})
			return errors.Join(err, r[0].Err)
		},
		"newest first": func() error {
			_, err := c.ListPage(ctx, tarry.ListQuery{Queue: "q", State: tarry.Ready, Newest: true})
			return err
		},
		"a range": func() error {
			_, err := c.ListPage(ctx, tarry.ListQuery{Queue: "q", State: tarry.Ready, From: time.Now()})
			return err
		},
		"purge finished": func() error { _, err := c.Purge(ctx, "q", tarry.PurgeFinished); return err },
		"settings":       func() error { _, _, err := c.Settings(ctx, "q"); return err },
		"configure":      func() error { _, err := c.Configure(ctx, "q", tarry.Settings{Rate: 1}, ""); return err },
	} {
		var e *tarry.Error
		if err := call(); !errors.Is(err, tarry.ErrUnsupported) || !errors.As(err, &e) || e.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"the longest delay": push(c, tarry.In(time.Hour)),
		"a past due":        push(c, tarry.At(time.Now().Add(-time.Hour))),
		"one of the delays": push(f, tarry.In(time.Minute)),
		"no delay":          push(f),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Get(context.Background(), ref); err != nil {
		t.Errorf("the message that is left: %v", err)
	}
}
