package diskengine_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestLongContentsStayWhole does to messages with long bodies, which are in an sstable, all that
// writes their contents again, after calls for which the beginning of a content was enough: each
// keeps its body.
func TestLongContentsStayWhole(t *testing.T) {
	type call = func(ctx context.Context, t *testing.T, e *diskengine.Engine, id engine.ID)
	leased := func(do engine.Action) call {
		return func(ctx context.Context, t *testing.T, e *diskengine.Engine, _ engine.ID) {
			settle(t, e, lease(t, e, "q", 1), do)
			must(t, e.Flush(ctx))
		}
	}
	ref := engine.Ref{Queue: "q", Key: "k"}
	for name, do := range map[string]call{
		"lease":   func(context.Context, *testing.T, *diskengine.Engine, engine.ID) {},
		"release": leased(engine.Release),
		"peek": func(ctx context.Context, t *testing.T, e *diskengine.Engine, _ engine.ID) {
			_, err := e.Peek(ctx, []string{"q"})
			must(t, err)
		},
		"redrive": func(ctx context.Context, t *testing.T, e *diskengine.Engine, id engine.ID) {
			leased(engine.Bury)(ctx, t, e, id)
			_, err := e.Redrive(ctx, "q", []engine.ID{id}, 0)
			must(t, err)
		},
		"reschedule": func(ctx context.Context, t *testing.T, e *diskengine.Engine, _ engine.ID) {
			_, err := e.Reschedule(ctx, ref, engine.When{})
			must(t, err)
		},
		"rearm": func(ctx context.Context, t *testing.T, e *diskengine.Engine, _ engine.ID) {
			must(t, pushAll(t, e, engine.Message{Queue: "q", Key: "k", OnConflict: engine.Rearm}))
		},
		"rearm as one": func(ctx context.Context, t *testing.T, e *diskengine.Engine, _ engine.ID) {
			_, err := e.PushAtomic(ctx, []engine.Message{{Queue: "q", Key: "k", OnConflict: engine.Rearm}})
			must(t, err)
		},
		"claim": func(ctx context.Context, t *testing.T, e *diskengine.Engine, _ engine.ID) {
			l, err := e.Claim(ctx, ref, engine.Want{TTR: time.Minute})
			must(t, err)
			settle(t, e, []engine.Lease{l}, engine.Release)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := place{disktest.New(nil), "data", diskengine.Config{Now: enginetest.NewClock().Now, Logger: quiet}, diskengine.Tune{}}
			e := p.open(t)
			m := message("q", "k", 0)
			m.Body = noise(100 << 10)
			r, err := e.Push(t.Context(), []engine.Message{m})
			must(t, err)
			must(t, e.Flush(t.Context()))
			do(t.Context(), t, e, r[0].ID)
			i, err := e.Get(t.Context(), ref)
			must(t, err)
			page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Ready, Limit: 1, Body: true})
			must(t, err)
			all := lease(t, e, "q", 1)
			if len(all) != 1 || len(page.Messages) != 1 {
				t.Fatalf("%d are leased, %d listed", len(all), len(page.Messages))
			}
			for _, got := range []engine.Info{i, page.Messages[0], all[0].Info} {
				if !bytes.Equal(got.Body, m.Body) {
					t.Errorf("a body of %d bytes has %d", len(m.Body), len(got.Body))
				}
			}
			must(t, e.Close())
		})
	}
}
