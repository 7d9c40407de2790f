package tarry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/tarrytest"
)

// How a program that waits for 48 hours is tested in milliseconds, with a worker that runs all
// the time, as in production.
func TestExample48Hours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type ride struct{ ID, Stars string }
		reviews := tarry.NewTopic[ride]("review.due")
		q := tarrytest.NewInBubble(t)
		w := tarry.NewWorker(q.Client, nil)
		rated := make(chan string, 2)
		tarry.Handle(w, reviews, func(_ context.Context, m *tarry.Message[ride]) error {
			rated <- m.Body.ID
			return nil
		})
		q.Start(t.Context(), w)

		for _, id := range []string{"rated by its rider", "forgotten"} {
			if _, err := reviews.Push(t.Context(), q.Client, ride{ID: id}, tarry.In(48*time.Hour), tarry.Key(id)); err != nil {
				t.Fatal(err)
			}
		}
		q.Advance(47 * time.Hour)
		if err := reviews.Cancel(t.Context(), q.Client, tarry.ByKey("rated by its rider")); err != nil {
			t.Fatal(err)
		}
		q.Advance(time.Hour - time.Nanosecond)
		if len(rated) != 0 {
			t.Fatalf("%q was handled early", <-rated)
		}
		q.Advance(time.Nanosecond)
		if len(rated) != 1 || <-rated != "forgotten" {
			t.Error("after 48 hours exactly the forgotten ride is to be rated")
		}
	})
}
