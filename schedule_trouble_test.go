package tarry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// Each trigger pushes a message, also one for a schedule that was removed and set anew.
func TestScheduleTriggerAfterRemoval(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		for n := range 3 {
			set(t, c, scheduled(t, "anew", "@hourly"))
			for range 2 {
				if _, err := c.TriggerSchedule(t.Context(), "anew"); err != nil {
					t.Fatal(err)
				}
			}
			if got := len(pushed(t, c)); got != 2*(n+1) {
				t.Errorf("%d triggers made %d messages", 2*(n+1), got)
			}
			if err := c.RemoveSchedule(t.Context(), "anew", ""); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A message of the schedules' queue that is no schedule fires nothing and dies.
func TestScheduleWithoutName(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		defer runSchedules(t, c)()
		if _, err := c.Push(t.Context(), tarry.ScheduleQueue, []byte(`{"Definition":{"Spec":"@every 1s","Queue":"reports"}}`), tarry.MaxAttempts(2)); err != nil {
			t.Fatal(err)
		}
		set(t, c, scheduled(t, "other", "@every 1m"))
		pass(5 * time.Minute)
		if got := len(pushed(t, c)); got != 5 {
			t.Errorf("%d messages came, five of them from the schedule", got)
		}
		if info, err := c.Queue(t.Context(), tarry.ScheduleQueue); err != nil || info.Dead != 1 {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// slowGet is an engine whose look-ups take a while.
type slowGet struct{ *memengine.Engine }

func (e *slowGet) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	time.Sleep(time.Millisecond)
	return e.Engine.Get(ctx, ref)
}

// Schedules that have much to do, and are tried again, hardly delay others.
func TestScheduleBesideManyForAFullQueue(t *testing.T) {
	bubbleOn(t, &slowGet{memengine.New(nil)}, func(t *testing.T, c *tarry.Client) {
		if _, err := c.Configure(t.Context(), "reports", tarry.Settings{MaxPending: 1}, ""); err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			full := scheduled(t, fmt.Sprint("full", i), "@every 1s")
			full.CatchUp = tarry.CatchUpAll
			set(t, c, full)
		}
		other := scheduled(t, "other", "@every 1s")
		other.Draft.Queue = "elsewhere"
		set(t, c, other)
		pass(time.Hour)
		defer runSchedules(t, c)()
		pass(time.Minute) // the first attempts
		for range 60 {
			pass(time.Second)
			info, err := c.Schedule(t.Context(), "other")
			if err != nil || len(info.Runs) == 0 || time.Since(info.Runs[0].Instant) > 4*time.Second {
				t.Fatalf("at %s: %+v, %v", time.Now(), info.Runs, err)
			}
		}
	})
}
