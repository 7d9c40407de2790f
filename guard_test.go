package tarry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
)

func TestGuardDecidesWhenDue(t *testing.T) {
	for name, tc := range map[string]struct {
		guard   func(context.Context, *tarry.Message[string]) (bool, error)
		kind    tarry.EventKind
		handled int
	}{
		"holds":  {func(context.Context, *tarry.Message[string]) (bool, error) { return true, nil }, tarry.Acked, 1},
		"gone":   {func(context.Context, *tarry.Message[string]) (bool, error) { return false, nil }, tarry.Dropped, 0},
		"fails":  {func(context.Context, *tarry.Message[string]) (bool, error) { return true, errors.New("down") }, tarry.Retried, 0},
		"panics": {func(context.Context, *tarry.Message[string]) (bool, error) { panic("guard") }, tarry.Retried, 0},
		"snoozes": {func(context.Context, *tarry.Message[string]) (bool, error) { return false, tarry.Snooze(time.Hour) },
			tarry.Snoozed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *tarry.Client) {
				var rec record
				var handled list[string]
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe})
				tarry.Handle(w, bytesTopic.OnlyIf(tc.guard), func(_ context.Context, m *tarry.Message[string]) error {
					handled.add(m.Body)
					return nil
				})
				stop := run(t, w)
				p := push(t, c, "q", "x", tarry.Backoff(time.Hour))
				synctest.Wait()
				if handled.len() != tc.handled {
					t.Errorf("handled %v", handled.all())
				}
				rec.one(t, tc.kind)
				if tc.kind == tarry.Dropped {
					gone(t, c, p)
				}
				stop()
			})
		})
	}
}

func TestGuardsAreAskedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var trail list[string]
		ask := func(name string, holds bool) func(context.Context, *tarry.Message[string]) (bool, error) {
			return func(context.Context, *tarry.Message[string]) (bool, error) {
				trail.add(name)
				return holds, nil
			}
		}
		asked := bytesTopic.OnlyIf(ask("a", true))
		_ = asked.OnlyIf(ask("another topic's", false))
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, asked.OnlyIf(ask("b", false)).OnlyIf(ask("c", true)),
			func(context.Context, *tarry.Message[string]) error { trail.add("handler"); return nil })
		stop := run(t, w)
		push(t, c, "q", "x")
		synctest.Wait()
		if got := trail.all(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
			t.Errorf("asked %v, want a and b", got)
		}
		stop()
	})
}
