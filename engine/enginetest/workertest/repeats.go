package workertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// span is the period of the pushes and cancels of RunRepeats.
const span = 400 * time.Millisecond

// RunRepeats makes a producer push each order three times and cancel half of them twice, at
// random moments before, during and after handling. Two workers for each of the engines,
// which share one store, handle the queue. Since keys are remembered, each order must be
// handled once or cancelled once. It may run in a synctest bubble. The engines stay open.
func RunRepeats(t *testing.T, orders int, engines ...engine.Engine) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := &repeats{t: t, queue: fmt.Sprintf("orders-%d", seed), states: make(map[string]*order), over: make(chan struct{}), left: orders}
	topic := tarry.NewTopic[string](r.queue)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	var workers sync.WaitGroup
	for _, e := range engines {
		for range 2 {
			c := tarry.New(e, nil)
			defer c.Close()
			r.clients = append(r.clients, c)
			w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 4})
			tarry.Handle(w, topic, r.handle)
			workers.Go(func() {
				if err := w.Run(ctx); err != nil {
					t.Errorf("worker: %v", err)
				}
			})
		}
	}
	var producers sync.WaitGroup
	for i := range orders {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		producers.Go(func() { r.produce(topic, fmt.Sprint("order/", i), rng) })
	}
	producers.Wait()
	select {
	case <-r.over:
	case <-time.After(2 * time.Minute):
		r.mu.Lock()
		t.Errorf("%d of %d orders have not ended", r.left, orders)
		r.mu.Unlock()
	}
	stop()
	workers.Wait()
	r.check(orders)
}

// repeats is the history of the orders.
type repeats struct {
	t       *testing.T
	queue   string
	clients []*tarry.Client

	mu     sync.Mutex
	states map[string]*order
	left   int
	over   chan struct{} // closed when no order is left
}

type order struct{ created, handled, cancelled int }

// note changes the record of an order, and reports whether the order had ended before.
func (r *repeats) note(key string, change func(*order)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.states[key]
	if o == nil {
		o = new(order)
		r.states[key] = o
	}
	ended := o.handled+o.cancelled > 0
	if change(o); ended || o.handled+o.cancelled == 0 {
		return
	}
	if r.left--; r.left == 0 {
		close(r.over)
	}
}

func (r *repeats) handle(_ context.Context, m *tarry.Message[string]) error {
	r.note(m.Key, func(o *order) {
		if o.cancelled > 0 {
			r.t.Errorf("%s is handled, though it was cancelled", m.Key)
		}
		o.handled++
	})
	time.Sleep(time.Duration(m.ID%8) * time.Millisecond)
	return nil
}

// produce pushes an order three times, and may cancel it.
func (r *repeats) produce(topic *tarry.Topic[string], key string, rng *rand.Rand) {
	due := tarry.In(time.Duration(rng.Int64N(int64(span / 2))))
	push := func(c *tarry.Client, on tarry.Conflict) {
		p, err := topic.Push(r.t.Context(), c, key, due, tarry.Key(key), tarry.OnConflict(on), tarry.Remember(time.Hour))
		if err != nil && (on == tarry.Keep || !errors.Is(err, tarry.ErrExists)) {
			r.t.Errorf("push of %s: %v", key, err)
		}
		if p.Outcome == tarry.Created {
			r.note(key, func(o *order) { o.created++ })
		}
	}
	cancel := func(c *tarry.Client) {
		switch err := topic.Cancel(r.t.Context(), c, tarry.ByKey(key)); {
		case err == nil:
			r.note(key, func(o *order) { o.cancelled++ })
		case !errors.Is(err, tarry.ErrNotFound) && !errors.Is(err, tarry.ErrLeased):
			r.t.Errorf("cancel of %s: %v", key, err)
		}
	}
	acts := []func(c *tarry.Client){}
	for range 3 {
		on := []tarry.Conflict{tarry.Reject, tarry.Keep}[rng.IntN(2)]
		acts = append(acts, func(c *tarry.Client) { push(c, on) })
	}
	if rng.IntN(2) == 0 {
		acts = append(acts, cancel, cancel)
	}
	var all sync.WaitGroup
	for _, act := range acts {
		c, at := r.clients[rng.IntN(len(r.clients))], time.Duration(rng.Int64N(int64(span)))
		all.Go(func() {
			time.Sleep(at)
			act(c)
		})
	}
	all.Wait()
}

func (r *repeats) check(orders int) {
	done := map[string]int{}
	for key, o := range r.states {
		if o.created != 1 || o.handled+o.cancelled != 1 {
			r.t.Errorf("%s was made %d times, handled %d times, cancelled %d times", key, o.created, o.handled, o.cancelled)
		}
		done["handled"] += o.handled
		done["cancelled"] += o.cancelled
	}
	r.t.Logf("of %d orders %v", orders, done) // on a busy machine every cancel may be too late
	q, err := r.clients[0].Queue(r.t.Context(), r.queue)
	if err != nil || q.Scheduled+q.Ready+q.Leased+q.Dead != 0 || q.Finished != int64(orders) {
		r.t.Errorf("left is %+v, %v; %d orders are to be remembered", q, err, orders)
	}
}
