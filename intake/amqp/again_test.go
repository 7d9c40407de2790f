package amqp

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	rabbit "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/intake"
)

// The connection is lost after the push and before the ack.
func TestWhatComesAgainIsPushedOnce(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	proxy := rabbittest.StartProxy(t, at)
	declareQuorum(t, ch, "tarry.delayed")
	declare(t, ch, "orders", "work", "fanout", "")
	const n = 50
	for i := range n {
		id := fmt.Sprint(i)
		copied := rabbit.Table{"x-delivery-count": int64(7)} // from another queue
		publish(t, ch, "", "tarry.delayed", rabbit.Publishing{MessageId: id, Headers: copied})
		publish(t, ch, "", "tarry.delayed", rabbit.Publishing{Headers: rabbit.Table{"x-tarry-key": id}})
	}
	publish(t, ch, "", "tarry.delayed", rabbit.Publishing{})
	var cut atomic.Int64
	i := delayed(t, at)
	i.Source = with(t, proxy.URL(), "queue", "tarry.delayed", "prefetch", "20")
	w := beginWith(t, "mem:", tarry.Config{PushMiddleware: []tarry.PushMiddleware{func(next tarry.PushFunc) tarry.PushFunc {
		return func(ctx context.Context, call tarry.PushCall) ([]tarry.Pushed, error) {
			pushed, err := next(ctx, call)
			if cut.Add(1) <= 5 {
				proxy.Cut()
			}
			return pushed, err
		}
	}}}, i)
	st := w.Awaits("all are taken", func(st intake.Status) bool {
		return st.Pushed >= 2*n+1 && st.Unacked == 0 && st.State == intake.Running
	})
	came := make(map[string]int)
	for range st.Pushed {
		d := take(t, ch, "orders")
		if name := fmt.Sprint(d.MessageId, d.Headers["x-tarry-key"]); name != fmt.Sprint(nil) {
			came[name]++
		}
		if d.Headers[counts[0]] != nil || d.Headers[counts[1]] != nil {
			t.Errorf("it came with the headers %v", d.Headers)
		}
	}
	for name, times := range came {
		if times > 1 {
			t.Errorf("%s came %d times", name, times)
		}
	}
	if _, more, err := ch.Get("orders", true); more || err != nil {
		t.Errorf("more came than were pushed: %v", err)
	}
	st = w.Status()[0]
	if again := st.Pushed - (2*n + 1); again < 0 || again > 5 || st.Redelivered == 0 || st.Doubles == 0 || again > st.Redelivered {
		t.Errorf("the status is %+v", st)
	}
	t.Logf("%+v", st.Counts)
}

// While the store takes nothing, the intake holds what it has, up to prefetch.
func TestAStoreThatTakesNothing(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	declare(t, ch, "tarry.delayed", "", "", "")
	declare(t, ch, "orders", "work", "fanout", "")
	const n = 100
	for i := range n {
		publish(t, ch, "", "tarry.delayed", rabbit.Publishing{MessageId: fmt.Sprint(i)})
	}
	var full atomic.Bool
	full.Store(true)
	i := delayed(t, at)
	i.Source = with(t, at, "queue", "tarry.delayed", "prefetch", "30")
	w := beginWith(t, "mem:", tarry.Config{PushMiddleware: []tarry.PushMiddleware{func(next tarry.PushFunc) tarry.PushFunc {
		return func(ctx context.Context, call tarry.PushCall) ([]tarry.Pushed, error) {
			if full.Load() {
				return nil, &tarry.Error{Op: "push", Err: tarry.ErrNoSpace, Hint: "free some"}
			}
			return next(ctx, call)
		}
	}}}, i)
	w.fails(intake.CodeStore, "")
	st := w.Awaits("it holds its prefetch", func(st intake.Status) bool { return st.Unacked == 30 })
	if st.Taken != 30 || st.Hint != "free some" {
		t.Errorf("the status is %+v", st)
	}
	full.Store(false)
	for range n {
		take(t, ch, "orders")
	}
	w.Awaits("it runs", func(st intake.Status) bool { return st.State == intake.Running && st.Pushed == n && st.Unacked == 0 })
	awaitNone(t, at, "tarry.delayed")
}

// An intake that ends acks what it has pushed, and leaves the rest.
func TestTheEndOfAnIntakeUnderLoad(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	declareQuorum(t, ch, "tarry.delayed")
	const n = 20_000
	go func() {
		for i := range n {
			if err := ch.PublishWithContext(context.Background(), "", "tarry.delayed", false, false, rabbit.Publishing{MessageId: fmt.Sprint(i), Headers: rabbit.Table{"x-delay": int32(3600_000)}}); err != nil {
				return
			}
		}
	}()
	source := with(t, at, "queue", "tarry.delayed")
	store := "disk:" + t.TempDir()
	var taken, pushed, doubles int64
	for pushed < n {
		w := begin(t, store, intake.Intake{Queue: "q", Source: source})
		before := pushed
		w.Awaits("some are pushed", func(st intake.Status) bool { return before+st.Pushed >= min(before+3000, n) })
		w.end()
		last := w.Status()[0]
		taken, pushed, doubles = taken+last.Taken, pushed+last.Pushed, doubles+last.Doubles
	}
	if pushed != n {
		t.Errorf("%d of %d messages were pushed", pushed, n)
	}
	t.Logf("taken %d, doubles %d", taken, doubles)
	if doubles > 0 {
		t.Errorf("%d messages came again although they were pushed before the end", doubles)
	}
}
