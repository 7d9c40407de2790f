package tarrytest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/tarrytest"
)

// Shop is the code under test: it rates a ride five stars after 48 hours, unless its rider
// has rated it.
type Shop struct {
	client *tarry.Client
	stars  map[string]int
}

func (s *Shop) Finish(ctx context.Context, r Ride) error {
	_, err := rides.Push(ctx, s.client, r, tarry.In(48*time.Hour), tarry.Key(r.ID))
	return err
}

func (s *Shop) Rate(ctx context.Context, id string, stars int) error {
	s.stars[id] = stars
	return rides.Cancel(ctx, s.client, tarry.ByKey(id))
}

func (s *Shop) Worker() *tarry.Worker {
	w := tarry.NewWorker(s.client, nil)
	tarry.Handle(w, rides, func(_ context.Context, m *tarry.Message[Ride]) error {
		s.stars[m.Body.ID] = 5
		return nil
	})
	return w
}

func NewShop(c *tarry.Client) *Shop { return &Shop{c, make(map[string]int)} }

func TestUnratedRide(t *testing.T) {
	q := tarrytest.New(t)
	shop, ctx := NewShop(q.Client), t.Context()

	if err := shop.Finish(ctx, Ride{ID: "7"}); err != nil {
		t.Fatal(err)
	}
	tarrytest.RequirePushed(t, q, rides, Ride{ID: "7"}, tarry.In(48*time.Hour), tarry.Key("7"))

	q.Advance(48*time.Hour - time.Millisecond)
	if q.Work(ctx, shop.Worker()); shop.stars["7"] != 0 {
		t.Error("rated early")
	}
	q.Advance(time.Millisecond)
	if q.Work(ctx, shop.Worker()); shop.stars["7"] != 5 {
		t.Error("not rated after 48 hours")
	}
}

func TestRatedRide(t *testing.T) {
	q := tarrytest.New(t)
	shop, ctx := NewShop(q.Client), t.Context()

	if err := errors.Join(shop.Finish(ctx, Ride{ID: "7"}), shop.Rate(ctx, "7", 3)); err != nil {
		t.Fatal(err)
	}
	tarrytest.RequireNothingPushed(t, q)
	if q.WorkAll(ctx, shop.Worker()); shop.stars["7"] != 3 {
		t.Error("the rider's rating is lost")
	}
}

func Example() {
	_ = func(t *testing.T) {
		q := tarrytest.New(t)
		shop, ctx := NewShop(q.Client), t.Context()

		if err := shop.Finish(ctx, Ride{ID: "7"}); err != nil {
			t.Fatal(err)
		}
		tarrytest.RequirePushed(t, q, rides, Ride{ID: "7"}, tarry.In(48*time.Hour), tarry.Key("7"))

		q.Advance(48 * time.Hour)
		q.Work(ctx, shop.Worker())
		if shop.stars["7"] != 5 {
			t.Error("not rated after 48 hours")
		}
	}
}

// A worker that runs for the whole test sees each retry when it is due.
func ExampleClient_Start() {
	_ = func(t *testing.T) {
		q := tarrytest.New(t)
		shop, ctx := NewShop(q.Client), t.Context()
		q.Start(ctx, shop.Worker())

		if err := shop.Finish(ctx, Ride{ID: "7"}); err != nil {
			t.Fatal(err)
		}
		q.Advance(7 * 24 * time.Hour)
		if shop.stars["7"] != 5 {
			t.Error("not rated within a week")
		}
	}
}
