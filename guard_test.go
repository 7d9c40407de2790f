package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
				tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
					handled.add(m.Body)
					return nil
				}, tarry.OnlyIf(tc.guard))
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
		ask := func(name string, holds bool) tarry.HandleOption {
			return tarry.OnlyIf(func(context.Context, *tarry.Message[string]) (bool, error) {
				trail.add(name)
				return holds, nil
			})
		}
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { trail.add("handler"); return nil },
			ask("a", true), ask("b", false), ask("c", true))
		stop := run(t, w)
		push(t, c, "q", "x")
		synctest.Wait()
		if got := trail.all(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
			t.Errorf("asked %v, want a and b", got)
		}
		stop()
	})
}

func TestGuardOfAnotherTypeIsRefusedAtRegistration(t *testing.T) {
	c := tarry.New(newStage(), nil)
	defer c.Close()
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "queue q: the topic's bodies are of type string") || !strings.Contains(said, "Message[int]") {
			t.Errorf("panicked with %q", said)
		}
	}()
	tarry.Handle(tarry.NewWorker(c, nil), bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil },
		tarry.OnlyIf(func(context.Context, *tarry.Message[int]) (bool, error) { return true, nil }))
}
