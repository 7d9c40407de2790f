package tarrytest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/tarrytest"
)

// reminders is what a shop wants of tarry.
type reminders interface {
	Push(context.Context, Ride, ...tarry.PushOption) (tarry.Pushed, error)
	Rearm(context.Context, string, tarry.Due, Ride, ...tarry.PushOption) (tarry.Pushed, error)
	Reschedule(context.Context, tarry.Ref, tarry.Due) (tarry.Info, error)
	Cancel(context.Context, tarry.Ref) error
}

func TestRecorder(t *testing.T) {
	q := tarrytest.New(t)
	var shop reminders = tarrytest.NewRecorder(q, rides)
	ctx, key := t.Context(), tarry.ByKey("7")

	p, err := shop.Push(ctx, Ride{ID: "7"}, tarry.In(time.Hour), tarry.Key("7"), tarry.Header("a", "b"))
	if err != nil || p.Outcome != tarry.Created || p.State != tarry.Scheduled || !p.Due.Equal(q.Now().Add(time.Hour)) {
		t.Errorf("%+v, %v", p, err)
	}
	tarrytest.RequirePushed(t, q, rides, Ride{ID: "7"}, tarry.In(time.Hour), tarry.Key("7"), tarry.Header("a", "b"))
	if again, err := shop.Push(ctx, Ride{}, tarry.Key("7")); !errors.Is(err, tarry.ErrExists) || again.ID != p.ID {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := shop.Rearm(ctx, "7", tarry.In(2*time.Hour), Ride{}); err != nil {
		t.Error(err)
	}
	tarrytest.RequirePushed(t, q, rides, Ride{ID: "7"}, tarry.In(2*time.Hour))
	if info, err := shop.Reschedule(ctx, key, tarry.In(3*time.Hour)); err != nil || info.ID != p.ID {
		t.Errorf("%+v, %v", info, err)
	}
	tarrytest.RequirePushed(t, q, rides, Ride{ID: "7"}, tarry.In(3*time.Hour))

	// When told to, pushes fail, and do nothing.
	broken := errors.New("the disk is full")
	q.Fail(broken)
	_, pushed := shop.Push(ctx, Ride{ID: "8"})
	_, rearmed := shop.Rearm(ctx, "9", tarry.In(0), Ride{ID: "9"})
	_, atomic := q.PushAtomic(ctx, []tarry.Draft{tarry.NewDraft("rides", []byte("10"))})
	for what, err := range map[string]error{"push": pushed, "rearm": rearmed, "atomic": atomic} {
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	q.Fail(nil)
	tarrytest.RequirePushed(t, q, rides, Ride{ID: "7"}, tarry.In(3*time.Hour))
	if err := shop.Cancel(ctx, key); err != nil {
		t.Error(err)
	}
	tarrytest.RequireNothingPushed(t, q)
}

// TestClientsOfTheSameStore has a client with a Config of its own.
func TestClientsOfTheSameStore(t *testing.T) {
	q := tarrytest.New(t)
	traced := tarry.New(q.Engine(), &tarry.Config{PushMiddleware: []tarry.PushMiddleware{
		func(next tarry.PushFunc) tarry.PushFunc {
			return func(ctx context.Context, call tarry.PushCall) ([]tarry.Pushed, error) {
				call.Drafts[0].Headers = append(call.Drafts[0].Headers, tarry.MessageHeader{Name: "trace", Value: "1"})
				return next(ctx, call)
			}
		},
	}})
	defer traced.Close()
	if _, err := rides.Push(t.Context(), traced, Ride{}); err != nil {
		t.Fatal(err)
	}
	tarrytest.RequirePushed(t, q, rides, Ride{}, tarry.Header("trace", "1"))
	var h handled
	w := tarry.NewWorker(traced, nil)
	tarry.Handle(w, rides, h.handle)
	if got := q.Work(t.Context(), w); got.Acked != 1 {
		t.Errorf("%+v", got)
	}
}
