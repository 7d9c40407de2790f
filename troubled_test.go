package tarry_test

import (
	"context"
	"maps"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// trouble is what goes wrong with a call of an engine.
type trouble uint8

const (
	fine  trouble = iota
	fails         // ErrUnavailable, and nothing was done
	mute          // it was done, but the answer is lost: ErrUnavailable
	hangs         // it is done only once the trouble is over, whatever its context says
)

// troubled is an engine whose calls a test can have fail, lose their answers or
// hang. Calls are named as in package engine: "Push", "Lease", …
type troubled struct {
	*memengine.Engine
	caps func(*engine.Capabilities)

	mu       sync.Mutex
	troubles map[string]trouble
	over     chan struct{} // closed when the trouble is over
	hanging  int
}

func newTroubled() *troubled {
	return &troubled{Engine: memengine.New(nil), over: make(chan struct{})}
}

func init() { engine.Register("troubled", openTroubled) }

// toOpen is what the URL "troubled:" opens.
var toOpen atomic.Pointer[troubled]

func openTroubled(ctx context.Context, _ *url.URL) (engine.Engine, error) {
	return troubledCall(ctx, toOpen.Load(), "Open", func(context.Context) (engine.Engine, error) { return toOpen.Load(), nil })
}

// befall gives the calls named trouble, and all when none is named.
func (e *troubled) befall(what trouble, calls ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	troubles := maps.Clone(e.troubles)
	if troubles == nil {
		troubles = make(map[string]trouble)
	}
	if len(calls) == 0 {
		calls = []string{""}
	}
	for _, c := range calls {
		troubles[c] = what
	}
	e.troubles = troubles
}

// recover ends all trouble; calls that hang are done.
func (e *troubled) recover() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.troubles = nil
	close(e.over)
	e.over = make(chan struct{})
}

// hung returns how many calls hang.
func (e *troubled) hung() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hanging
}

// troubledCall makes a call with the trouble it is in. A call that hangs is then
// made on a context that has no end, as by a system call that nobody can stop.
func troubledCall[T any](ctx context.Context, e *troubled, name string, call func(context.Context) (T, error)) (T, error) {
	e.mu.Lock()
	what, ok := e.troubles[name]
	if !ok {
		what = e.troubles[""]
	}
	over := e.over
	if what == hangs {
		e.hanging++
	}
	e.mu.Unlock()
	var none T
	switch what {
	case fails:
		return none, &engine.Error{Err: engine.ErrUnavailable, Hint: "in trouble"}
	case mute:
		_, _ = call(ctx)
		return none, &engine.Error{Err: engine.ErrUnavailable, Hint: "in trouble"}
	case hangs:
		<-over
		e.mu.Lock()
		e.hanging--
		e.mu.Unlock()
		return call(context.WithoutCancel(ctx))
	}
	return call(ctx)
}

func (e *troubled) Capabilities() engine.Capabilities {
	caps := e.Engine.Capabilities()
	caps.Prompt = false
	if e.caps != nil {
		e.caps(&caps)
	}
	return caps
}

func (e *troubled) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return troubledCall(ctx, e, "Push", func(ctx context.Context) ([]engine.PushResult, error) { return e.Engine.Push(ctx, msgs) })
}

func (e *troubled) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return troubledCall(ctx, e, "PushAtomic", func(ctx context.Context) ([]engine.PushResult, error) { return e.Engine.PushAtomic(ctx, msgs) })
}

func (e *troubled) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	return troubledCall(ctx, e, "Lease", func(ctx context.Context) (engine.Grant, error) { return e.Engine.Lease(ctx, wants) })
}

// LeaseWait takes what is there at once, or tells after wait that nothing is.
func (e *troubled) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	return troubledCall(ctx, e, "LeaseWait", func(ctx context.Context) (engine.Waited, error) {
		wants := wantsOf(w)
		g, err := e.Engine.Lease(ctx, wants[:1])
		if err != nil || len(wants) > 1 || len(g.Queues[0].Messages) > 0 {
			return waitedOf(wants, g), err
		}
		select {
		case <-time.After(w.For):
			return waitedOf(wants, g), nil
		case <-ctx.Done():
			return engine.Waited{}, ctx.Err()
		}
	})
}

func (e *troubled) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	return troubledCall(ctx, e, "Claim", func(ctx context.Context) (engine.Lease, error) { return e.Engine.Claim(ctx, ref, want) })
}

func (e *troubled) Settle(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
	name := "Settle"
	if len(in) > 0 && in[0].Do == engine.Extend {
		name = "Extend"
	}
	return troubledCall(ctx, e, name, func(ctx context.Context) ([]engine.Settled, error) { return e.Engine.Settle(ctx, in) })
}

func (e *troubled) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	return troubledCall(ctx, e, "Cancel", func(ctx context.Context) ([]error, error) { return e.Engine.Cancel(ctx, refs) })
}

func (e *troubled) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	return troubledCall(ctx, e, "Reschedule", func(ctx context.Context) (engine.Info, error) { return e.Engine.Reschedule(ctx, ref, due) })
}

func (e *troubled) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	return troubledCall(ctx, e, "Get", func(ctx context.Context) (engine.Info, error) { return e.Engine.Get(ctx, ref) })
}

func (e *troubled) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	return troubledCall(ctx, e, "List", func(ctx context.Context) (engine.Page, error) { return e.Engine.List(ctx, q) })
}

func (e *troubled) Queue(ctx context.Context, queue string) (engine.QueueInfo, error) {
	return troubledCall(ctx, e, "Queue", func(ctx context.Context) (engine.QueueInfo, error) { return e.Engine.Queue(ctx, queue) })
}

func (e *troubled) Queues(ctx context.Context, after string, limit int) (queues []engine.QueueInfo, next string, err error) {
	queues, err = troubledCall(ctx, e, "Queues", func(ctx context.Context) (got []engine.QueueInfo, err error) {
		got, next, err = e.Engine.Queues(ctx, after, limit)
		return got, err
	})
	return queues, next, err
}

func (e *troubled) Forecast(ctx context.Context, queue string, step, span time.Duration) (engine.Forecast, error) {
	return troubledCall(ctx, e, "Forecast", func(ctx context.Context) (engine.Forecast, error) {
		return e.Engine.Forecast(ctx, queue, step, span)
	})
}

func (e *troubled) Pause(ctx context.Context, queue string, d time.Duration) error {
	_, err := troubledCall(ctx, e, "Pause", func(ctx context.Context) (struct{}, error) { return struct{}{}, e.Engine.Pause(ctx, queue, d) })
	return err
}

func (e *troubled) Resume(ctx context.Context, queue string) error {
	_, err := troubledCall(ctx, e, "Resume", func(ctx context.Context) (struct{}, error) { return struct{}{}, e.Engine.Resume(ctx, queue) })
	return err
}

func (e *troubled) Purge(ctx context.Context, queue string, also engine.PurgeAlso) (int64, error) {
	return troubledCall(ctx, e, "Purge", func(ctx context.Context) (int64, error) { return e.Engine.Purge(ctx, queue, also) })
}

func (e *troubled) Redrive(ctx context.Context, queue string, ids []engine.ID, limit int) (engine.Redriven, error) {
	return troubledCall(ctx, e, "Redrive", func(ctx context.Context) (engine.Redriven, error) {
		return e.Engine.Redrive(ctx, queue, ids, limit)
	})
}

func (e *troubled) Close() error {
	_, err := troubledCall(context.Background(), e, "Close", func(context.Context) (struct{}, error) { return struct{}{}, e.Engine.Close() })
	return err
}
