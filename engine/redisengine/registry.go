package redisengine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/attempt"
)

// registry stores the names of queues in use, for lists and for tokens that have only a
// fingerprint. It is only an index: messages are pushed and leased even if its master is
// dead. Every engine that pushes to a queue or leases from it registers the queue, again
// every hour. An empty queue that was not registered for some time is forgotten.
type registry struct {
	names, seen, prints, tidied string // keys

	mu      sync.Mutex
	noted   map[string]noted
	epoch   int               // raised when a server may have lost data
	wanted  map[string]*queue // to register with the next attempt
	tried   chan struct{}     // closed after that attempt
	running bool              // an attempt is in progress
	failing bool              // the last one failed
}

// noted is what is known of a registered queue.
type noted struct {
	at    time.Time
	epoch int
	err   error // another queue has the same fingerprint
}

const (
	noteAgain   = time.Hour
	forgetAfter = 2 * noteAgain
	// noteTimeout is how long a push waits for the registration of a new queue.
	noteTimeout = 500 * time.Millisecond
	// scriptNames is the number of queues that one script registers.
	scriptNames = 500
)

func newRegistry(prefix string) *registry {
	base := prefix + ":{queues}:"
	return &registry{
		names: base + "names", seen: base + "seen", prints: base + "prints", tidied: base + "tidied",
		noted: make(map[string]noted), wanted: make(map[string]*queue),
	}
}

func (r *registry) keys() []string { return []string{r.names, r.seen, r.prints} }

// doubt makes every queue register again at its next use: a server that comes back may have
// lost them.
func (r *registry) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch++
}

// refusals returns the queues that cannot be used, with the reasons; usually nil.
func (r *registry) refusals(queues []*queue) (refused map[*queue]error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range queues {
		if err := r.noted[q.name].err; err != nil {
			if refused == nil {
				refused = make(map[*queue]error)
			}
			refused[q] = err
		}
	}
	return refused
}

// want selects the queues that need registering. If any is new and the last attempt did not
// fail, tried is closed after the next attempt. begin reports that the caller must start
// one.
func (r *registry) want(now time.Time, queues []*queue) (tried <-chan struct{}, begin bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := false
	for _, q := range queues {
		n, ok := r.noted[q.name]
		if ok && n.epoch == r.epoch && elapsed(n.at, now) < noteAgain {
			continue
		}
		fresh = fresh || !ok
		if len(r.wanted) == 0 {
			r.tried = make(chan struct{})
		}
		r.wanted[q.name] = q
	}
	if fresh && !r.failing {
		tried = r.tried
	}
	begin = len(r.wanted) > 0 && !r.running
	r.running = r.running || begin
	return tried, begin
}

// fail records that the registry cannot be reached, until an attempt succeeds.
func (r *registry) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = true
}

// take returns the queues of the next attempt; none when there is nothing to do.
func (r *registry) take() (queues []*queue, epoch int, tried chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.wanted {
		queues = append(queues, q)
	}
	clear(r.wanted)
	r.running = len(queues) > 0
	return queues, r.epoch, r.tried
}

// conclude records the result of an attempt.
func (r *registry) conclude(queues []*queue, errs []error, epoch int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = err != nil
	if err != nil {
		if len(r.wanted) == 0 {
			r.tried = make(chan struct{})
		}
		for _, q := range queues {
			r.wanted[q.name] = q
		}
		return
	}
	if len(r.noted) >= maxQueues {
		clear(r.noted)
	}
	now := time.Now()
	for i, q := range queues {
		r.noted[q.name] = noted{now, epoch, errs[i]}
	}
}

// note registers queues in the background. It waits for new ones, so that a queue is
// normally registered before its first message is stored. The wait is short, and skipped
// while the registry cannot be reached.
func (e *Engine) note(ctx context.Context, queues ...*queue) {
	tried, begin := e.registry.want(time.Now(), queues)
	if begin {
		e.tasks.Go(e.keepNoting)
	}
	if tried == nil {
		return
	}
	timer := time.NewTimer(noteTimeout + e.slack)
	defer timer.Stop()
	select {
	case <-tried:
	case <-timer.C:
		e.registry.fail() // the next caller need not wait
	case <-ctx.Done():
	}
}

// keepNoting retries until all queues are registered or the engine is closed.
func (e *Engine) keepNoting() {
	r := e.registry
	pause := attempt.Pause{Least: retryPauseMin, Most: time.Second}
	for {
		queues, epoch, tried := r.take()
		if len(queues) == 0 {
			return
		}
		errs, err := e.register(queues)
		r.conclude(queues, errs, epoch, err)
		close(tried)
		switch {
		case e.ctx.Err() != nil:
			return // their next use registers them
		case err != nil:
			pause.Wait(e.ctx)
		default:
			pause.Reset()
			e.tidyNow()
		}
	}
}

// register registers queues, once. An error says that another queue has the fingerprint.
func (e *Engine) register(queues []*queue) ([]error, error) {
	var reqs []request
	for from := 0; from < len(queues); from += scriptNames {
		args := []string{""}
		for _, q := range queues[from:min(from+scriptNames, len(queues))] {
			args = append(args, q.name, q.print.String())
		}
		reqs = append(reqs, request{script: registerScript, keys: e.registry.keys(), args: args})
	}
	errs := make([]error, 0, len(queues))
	for _, r := range e.eval(e.ctx, reqs, attempt.Once(answerTimeout+e.slack)) {
		if r.err != nil {
			return nil, r.err
		}
		for _, v := range r.values {
			var err error
			if name, _ := v.ToString(); name != queues[len(errs)].name {
				err = fmt.Errorf("%w: the names %q and %q have the same fingerprint; rename the new queue", engine.ErrInvalid, name, queues[len(errs)].name)
			}
			if errs = append(errs, err); len(errs) == len(queues) {
				return errs, nil
			}
		}
	}
	return nil, errAnswer
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
	r := e.send(ctx, []rueidis.Completed{e.client.B().Hmget().Key(e.registry.prints).Field(fields...).Build()})[0]
	if r.err != nil {
		return found, r.err
	}
	names, err := r.message.ToArray()
	if err != nil || len(names) != len(ask) {
		return found, errAnswer
	}
	for i, print := range ask {
		if name, err := names[i].ToString(); err == nil {
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
	r := e.send(ctx, []rueidis.Completed{
		e.client.B().Zrangebylex().Key(e.registry.names).Min(from).Max("+").Limit(0, int64(limit)).Build(),
	})[0]
	if r.err != nil {
		return nil, r.err
	}
	return r.message.AsStrSlice()
}

// forgetQueues removes empty queues from the registry, unless they were registered lately.
func (e *Engine) forgetQueues(ctx context.Context, names []string) {
	if len(names) == 0 {
		return
	}
	args := []string{"", string(appendInt(nil, int64(forgetAfter/time.Second)))}
	for _, name := range names {
		args = append(args, name, fingerprintOf(name).String())
	}
	// After a failure, the next cleanup finds them again.
	gone, _ := e.eval1(ctx, request{script: forgetScript, keys: e.registry.keys(), args: args})
	var qs []question
	for i := range gone {
		name, _ := gone[i].ToString()
		for _, s := range e.queue(name).shards {
			qs = append(qs, question{script: clearScript, shard: s, args: with()})
		}
	}
	e.ask(ctx, qs, e.patient())
}
