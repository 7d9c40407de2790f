package tarry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
)

// How a program that waits for 48 hours is tested in milliseconds: inside a
// synctest bubble, with an engine in memory.
func TestExample48Hours(t *testing.T) {
	wall := time.Now()
	synctest.Test(t, func(t *testing.T) {
		type ride struct{ ID, Stars string }
		reviews := tarry.NewTopic[ride]("review.due")
		c := tarry.New(memengine.New(nil), nil)
		defer c.Close()
		w := tarry.NewWorker(c, nil)
		rated := make(chan string, 2)
		tarry.Handle(w, reviews, func(_ context.Context, m *tarry.Message[ride]) error {
			rated <- m.Body.ID
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()

		for _, id := range []string{"rated by its rider", "forgotten"} {
			if _, err := reviews.Push(ctx, c, ride{ID: id}, tarry.In(48*time.Hour), tarry.Key(id)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(47 * time.Hour)
		if err := reviews.Cancel(ctx, c, tarry.ByKey("rated by its rider")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait()
		if len(rated) != 0 {
			t.Fatalf("%q was handled early", <-rated)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(rated) != 1 || <-rated != "forgotten" {
			t.Error("after 48 hours exactly the forgotten ride is to be rated")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Logf("48 hours took %s", time.Since(wall))
}
