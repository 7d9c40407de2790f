package rabbitengine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// LeaseWait waits for deliveries. They keep flowing for two seconds after the last wait;
// then unused messages are returned.
func (e *Engine) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	const op = "lease"
	if err := e.gate.Enter(ctx, op); err != nil {
		return engine.Waited{}, err
	}
	defer e.gate.Leave()
	if w.Remote {
		return engine.Waited{}, lacks(op, engine.Ref{}, noRemote)
	}
	if w.For <= 0 {
		return e.ask(ctx, &w)
	}
	arrived := make(chan struct{}, 1)
	queues := e.awaited(&w, arrived)
	defer e.unawaited(queues, arrived)
	over := time.After(w.For)
	for {
		s, err := e.current(ctx, op, w.Queues[0])
		if err != nil {
			return engine.Waited{}, err
		}
		told, err := e.streams(ctx, s, queues, &w)
		if err != nil {
			if s.over() {
				continue
			}
			return engine.Waited{}, err
		}
		got := e.collect(queues, &w)
		if got.Told = append(got.Told, told...); len(got.Messages) > 0 || len(got.Told) > 0 {
			return got, nil
		}
		select {
		case <-arrived:
		case <-s.ctx.Done():
		case <-over:
			return got, nil
		case <-ctx.Done():
			return engine.Waited{}, &engine.Error{Op: op, Err: ctx.Err()}
		case <-e.closing.Done():
			return engine.Waited{}, &engine.Error{Op: op, Err: engine.ErrClosed, Hint: "the engine was closed"}
		}
	}
}

// ask is a LeaseWait that does not wait.
func (e *Engine) ask(ctx context.Context, w *engine.Wait) (engine.Waited, error) {
	var out engine.Waited
	left := w.Max
	for _, name := range w.Queues {
		n := room(w, name, left)
		if n == 0 {
			continue
		}
		g := e.leaseOne(ctx, engine.Want{Queue: name, Max: n, TTR: w.TTR})
		if g.Err != nil || g.Died > 0 {
			out.Told = append(out.Told, engine.Told{Queue: name, Died: g.Died, Err: g.Err})
		}
		out.Messages = append(out.Messages, g.Messages...)
		left -= len(g.Messages)
	}
	out.Now = e.now([]engine.Granted{{Messages: out.Messages}})
	return out, nil
}

// awaited registers a wait for queues, and returns those with room.
func (e *Engine) awaited(w *engine.Wait, arrived chan struct{}) []*queue {
	e.mu.Lock()
	defer e.mu.Unlock()
	var queues []*queue
	for _, name := range w.Queues {
		if room(w, name, w.Max) == 0 {
			continue
		}
		q := e.of(name)
		q.polls++
		q.waiters[arrived] = struct{}{}
		queues = append(queues, q)
	}
	return queues
}

// unawaited records that a poll of queues has ended.
func (e *Engine) unawaited(queues []*queue, arrived chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, q := range queues {
		q.polls--
		q.polled = now
		delete(q.waiters, arrived)
	}
	e.stir()
}

// spread is how many times the requested number of messages may be fetched over all queues.
const spread = 4

// streams starts the flow of queues. It reports queues that have none.
func (e *Engine) streams(ctx context.Context, s *session, queues []*queue, w *engine.Wait) (told []engine.Told, err error) {
	for _, q := range queues {
		n := max(1, min(room(w, q.name, w.Max), spread*w.Max/len(queues)))
		if err := e.stream(ctx, s, q, n); err != nil {
			if s.over() || notFound(err) {
				return nil, fault("lease", q.name, err)
			}
			told = append(told, engine.Told{Queue: q.name, Err: fault("lease", q.name, err)})
		}
	}
	return told, nil
}

// collect leases the fetched messages of queues, beginning with another queue each time.
func (e *Engine) collect(queues []*queue, w *engine.Wait) (out engine.Waited) {
	e.mu.Lock()
	e.lapse()
	size := 0
	for i, at := 0, rand.IntN(max(1, len(queues))); i < len(queues); i++ {
		q := queues[(at+i)%len(queues)]
		t := taking{e: e, q: q, max: room(w, q.name, w.Max-len(out.Messages)), ttr: w.TTR, size: size}
		t.all()
		size = t.size
		out.Messages = append(out.Messages, t.got...)
		if q.died > 0 {
			out.Told, q.died = append(out.Told, engine.Told{Queue: q.name, Died: q.died}), 0
		}
	}
	e.mu.Unlock()
	out.Now = e.now([]engine.Granted{{Messages: out.Messages}})
	return out
}

// room returns how many messages of a queue a wait takes. left is how many it may still take
// in all.
func room(w *engine.Wait, queue string, left int) int {
	if n, ok := w.Room[queue]; ok {
		return min(n, left)
	}
	return left
}
