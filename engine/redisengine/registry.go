package redisengine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/duration"
)

// registry stores the names of queues in use, for lists and for tokens that have only a
// fingerprint. It is only an index: messages are pushed and leased even if its master is
// dead. Every engine that pushes to a queue or leases from it registers the queue, again
// every hour. An empty queue that was not registered for some time is forgotten.
type registry struct {
	names, seen, prints, tidied string // keys

	mu      sync.Mutex
	noted   map[string]time.Time // when queues were last registered
	missed  map[string]*queue    // for registerMissed
	running bool                 // registerMissed is running
	failing bool                 // the registry did not answer
	doubted time.Time            // what was registered before may be lost
}

const (
	noteAgain   = time.Hour
	forgetAfter = 2 * noteAgain
	// noteTimeout is how long a call waits for the registration of its queues.
	noteTimeout = 500 * time.Millisecond
	// noteRetry is the pause between attempts while the registry does not answer.
	noteRetry = time.Second
	// scriptNames is the number of queues that one script registers.
	scriptNames = 500
)

func newRegistry(prefix string) *registry {
	base := prefix + ":{queues}:"
	return &registry{
		names: base + "names", seen: base + "seen", prints: base + "prints", tidied: base + "tidied",
		noted: make(map[string]time.Time), missed: make(map[string]*queue),
	}
}

func (r *registry) keys() []string { return []string{r.names, r.seen, r.prints} }

// doubt makes every queue register again at its next use: a server that comes back may have
// lost them.
func (r *registry) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubted = time.Now()
}

// due returns the queues to register before they are used, and those to register later. The
// latter are all while the registry does not answer, and those that were registered a moment
// ago.
func (r *registry) due(now time.Time, queues []*queue) (due, later []*queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range queues {
		at := r.noted[q.name] // never, if it is not there
		age := elapsed(at, now)
		switch {
		case age < noteAgain && at.After(r.doubted):
		case r.failing || age < noteRetry: // a server may fail call after call
			later = append(later, q)
		default:
			due = append(due, q)
		}
	}
	return due, later
}

// note registers queues, so that a queue is normally registered before its first message is
// stored.
func (e *Engine) note(ctx context.Context, queues ...*queue) {
	due, later := e.registry.due(time.Now(), queues)
	failed := false
	if len(due) > 0 {
		short, cancel := context.WithTimeout(ctx, noteTimeout+e.slack)
		defer cancel()
		if failed = e.register(short, due) != nil; failed {
			later = append(later, due...)
		}
	}
	if len(later) > 0 {
		e.registerLater(later, failed)
	}
}

// registerLater registers queues in the background. failed: the registry did not answer.
func (e *Engine) registerLater(queues []*queue, failed bool) {
	r := e.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = r.failing || failed
	for _, q := range queues {
		r.missed[q.name] = q
	}
	if !r.running {
		r.running = true
		e.tasks.Go(e.registerMissed)
	}
}

// registerMissed tries until all missed queues are registered. Once the engine is closed, it
// tries a last time: others find the queue of a token by its registration.
func (e *Engine) registerMissed() {
	r := e.registry
	for {
		duration.Sleep(e.ctx, noteRetry)
		r.mu.Lock()
		queues := slices.Collect(maps.Values(r.missed))
		clear(r.missed)
		r.running = len(queues) > 0
		r.mu.Unlock()
		if len(queues) == 0 {
			return
		}
		failed := e.register(context.WithoutCancel(e.ctx), queues) != nil
		if failed && e.ctx.Err() != nil {
			return
		}
		if failed {
			e.registerLater(queues, true)
		}
	}
}

// register registers queues, once.
func (e *Engine) register(ctx context.Context, queues []*queue) error {
	r := e.registry
	var reqs []request
	for part := range slices.Chunk(queues, scriptNames) {
		args := []string{""}
		for _, q := range part {
			args = append(args, q.name, q.print.String())
		}
		reqs = append(reqs, request{script: registerScript, keys: r.keys(), args: args})
	}
	sent := time.Now() // what a server loses after it has answered may be doubted before the answer is read
	for _, a := range e.eval(ctx, reqs, calls.Once(answerTimeout+e.slack)) {
		if a.err != nil {
			return a.err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = false
	if len(r.noted) >= maxQueues {
		clear(r.noted)
	}
	for _, q := range queues {
		r.noted[q.name] = sent
	}
	if sent.Sub(e.opened) >= tidyAge {
		e.tasks.Go(e.tidyNow)
	}
	return nil
}

// known returns the queue of a fingerprint if this process has used it, else nil.
func (e *Engine) known(print fingerprint) *queue {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.printed[print]
}

// queuesOf returns the queues of fingerprints, nil for an unknown one. It asks Redis for
// those that this engine does not know.
func (e *Engine) queuesOf(ctx context.Context, prints []fingerprint) (map[fingerprint]*queue, error) {
	found := make(map[fingerprint]*queue)
	var ask []fingerprint
	e.mu.RLock()
	for _, print := range prints {
		q := e.printed[print]
		if _, again := found[print]; q == nil && !again {
			ask = append(ask, print)
		}
		found[print] = q
	}
	e.mu.RUnlock()
	if len(ask) == 0 {
		return found, nil
	}
	fields := make([]string, len(ask))
	for i, print := range ask {
		fields[i] = print.String()
	}
	ctx, cancel := context.WithTimeout(ctx, downTimeout+e.slack)
	defer cancel()
	a := e.send(ctx, e.client.B().Hmget().Key(e.registry.prints).Field(fields...).Build())[0]
	if a.err == nil && len(a.values) != len(ask) {
		a.err = errAnswer
	}
	if a.err != nil {
		return found, a.err
	}
	for i, print := range ask {
		if name, err := a.values[i].ToString(); err == nil {
			found[print] = e.queue(name)
		}
	}
	return found, nil
}

// names returns queue names in order, after a given one.
func (e *Engine) names(ctx context.Context, after string, limit int) ([]string, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	ctx, cancel := context.WithTimeout(ctx, patience+e.slack)
	defer cancel()
	a := e.send(ctx, e.client.B().Zrangebylex().Key(e.registry.names).Min(from).Max("+").Limit(0, int64(limit)).Build())[0]
	names := make([]string, len(a.values))
	for i := range names {
		names[i], _ = a.values[i].ToString() // members of a set are strings
	}
	return names, a.err
}

// forgetEmpty removes the empty among queues from the registry, unless they were registered
// lately.
func (e *Engine) forgetEmpty(ctx context.Context, queues []counted) {
	args := []string{string(appendInt(nil, int64(forgetAfter/time.Second)))}
	none := len(args)
	for i := range queues {
		if name := queues[i].Queue; isEmpty(&queues[i]) {
			args = append(args, name, fingerprintOf(name).String())
		}
	}
	if len(args) == none {
		return
	}
	// After a failure, the next cleanup finds them again.
	gone := e.eval1(ctx, e.patient(), forgetScript, e.registry.keys(), args...).values
	var reqs []request
	for i := range gone {
		name, _ := gone[i].ToString()
		for _, s := range e.queue(name).shards {
			reqs = append(reqs, request{script: clearScript, shard: s, args: with()})
		}
	}
	e.ask(ctx, reqs, e.patient())
}
