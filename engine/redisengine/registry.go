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

// registry keeps the names of queues in use, for lists, and for tokens in the hands of
// who does not know the queue. It is an index and no more: on a cluster it may be on a
// master that is dead, and messages are pushed and leased all the same. Whoever pushes
// to a queue or leases from it has it noted, again every hour; one found empty that
// nobody has noted for some time is forgotten.
type registry struct {
	names, seen, prints, tidied string // keys

	mu      sync.Mutex
	noted   map[string]noted
	epoch   int               // raised when a server may have forgotten
	wanted  map[string]*queue // to be noted with the next attempt
	tried   chan struct{}     // closed after that
	running bool              // somebody makes attempts
	failing bool              // the last one failed
}

// noted is what is known of a queue that has been noted.
type noted struct {
	at    time.Time
	epoch int
	err   error // another queue has the same fingerprint
}

const (
	noteAgain   = time.Hour
	forgetAfter = 2 * noteAgain
	// notePatience is how long a push waits until a queue that is new here is noted.
	notePatience = 500 * time.Millisecond
	// scriptNames is how many queues one script notes.
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

// doubt has every queue noted anew when it is next used: a server that comes back may
// have forgotten.
func (r *registry) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch++
}

// refusals says which queues cannot be used, and why; mostly nil.
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

// want notes which queues are to be noted. It returns what is closed when that has been
// tried, if any of them is new and the last attempt did not fail, and whether somebody
// has to begin with attempts.
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

// fail notes that the registry is out of reach, until an attempt succeeds.
func (r *registry) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = true
}

// take returns what an attempt is about; nothing: there is no more to do.
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

// conclude takes in what came of an attempt.
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

// note has queues noted, in the background. It waits for those that are new here, so
// that normally a queue is in the registry before its first message is; but not long,
// and not while the registry is known to be out of reach.
func (e *Engine) note(ctx context.Context, queues ...*queue) {
	tried, begin := e.registry.want(time.Now(), queues)
	if begin {
		e.tasks.Go(e.keepNoting)
	}
	if tried == nil {
		return
	}
	timer := time.NewTimer(notePatience)
	defer timer.Stop()
	select {
	case <-tried:
	case <-timer.C:
		e.registry.fail() // let the next not wait, too
	case <-ctx.Done():
	}
}

// keepNoting tries until all that is wanted is noted, or the engine closed.
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
			return // whoever uses them next notes them
		case err != nil:
			pause.Wait(e.ctx)
		default:
			pause.Reset()
			e.tidyNow()
		}
	}
}

// register notes queues, once. Of each it tells whether its fingerprint is another's.
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
	for _, r := range e.eval(e.ctx, reqs, attempt.Once(answerPatience)) {
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

// known returns the queue of a print if this process has met it, else nil.
func (e *Engine) known(print fingerprint) *queue {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.printed[print]
}

// queuesOf finds the queues of fingerprints, nil for one that is not known, asking for
// all that this engine has not met.
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
	ctx, cancel := context.WithTimeout(ctx, downPatience)
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

// names returns queue names in order, behind one.
func (e *Engine) names(ctx context.Context, after string, limit int) ([]string, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := e.send(ctx, []rueidis.Completed{
		e.client.B().Zrangebylex().Key(e.registry.names).Min(from).Max("+").Limit(0, int64(limit)).Build(),
	})[0]
	if r.err != nil {
		return nil, r.err
	}
	return r.message.AsStrSlice()
}

// forgetQueues removes queues that were found empty from the registry, unless they have
// been noted lately.
func (e *Engine) forgetQueues(ctx context.Context, names []string) {
	if len(names) == 0 {
		return
	}
	args := []string{"", string(appendInt(nil, int64(forgetAfter/time.Second)))}
	for _, name := range names {
		args = append(args, name, fingerprintOf(name).String())
	}
	// If it fails they are found again the next time.
	gone, _ := e.eval1(ctx, request{script: forgetScript, keys: e.registry.keys(), args: args})
	var qs []question
	for i := range gone {
		name, _ := gone[i].ToString()
		for _, s := range e.queue(name).shards {
			qs = append(qs, question{script: clearScript, shard: s, args: with()})
		}
	}
	e.ask(ctx, qs, patient())
}
