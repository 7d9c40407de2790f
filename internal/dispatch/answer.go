package dispatch

import (
	"context"
	"maps"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// answer collects the results of one lease. Guarded by Dispatcher.mu.
type answer struct {
	engine.Waited
	began       time.Time      // when the lease began, by our clock
	sent        time.Time      // when the first of the messages was requested, likewise
	left        int            // messages that it can still take
	extraQueues int            // how many queues beyond left are asked for a message each
	bytes       int            // of bodies so far
	of          map[string]int // messages that it can still take of single queues with a lower maximum
	told        map[string]int // index of a queue in Told
	err         error
	ended       bool
	done        chan struct{} // closed at the end
}

func newAnswer(w *engine.Wait) *answer {
	return &answer{began: time.Now(), left: w.Max, of: maps.Clone(w.Room), done: make(chan struct{})}
}

// room returns how many messages of a queue to request while taken are on the way, and
// whether the answer is full for every queue.
func (a *answer) room(queue string, taken int) (n int, full bool) {
	if a.ended || taken >= a.left+a.extraQueues {
		return 0, true
	}
	return min(max(a.left-taken, 1), a.leftOf(queue)), false
}

// leftOf returns how many more messages of a queue the answer takes from a finished call.
func (a *answer) leftOf(queue string) int {
	if n, less := a.of[queue]; less {
		return min(n, a.left)
	}
	return a.left
}

// widen makes the next call ask more queues than there is room for, since the last calls
// brought too little. Messages beyond the room are released.
func (a *answer) widen() { a.extraQueues = min(max(1, 2*a.extraQueues), wantsMax) }

func (a *answer) add(leases []engine.Lease, now, sent time.Time) {
	a.left -= len(leases)
	a.Messages = append(a.Messages, leases...)
	if now.After(a.Now) { // concurrent calls may be answered in any order
		a.Now = now
	}
	if a.sent.IsZero() || sent.Before(a.sent) {
		a.sent = sent
	}
	for i := range leases {
		l := &leases[i]
		if n, ok := a.of[l.Queue]; ok {
			a.of[l.Queue] = n - 1
		}
		a.bytes += len(l.Body)
	}
	if a.left <= 0 || a.bytes >= engine.AnswerBytes {
		a.end()
	}
}

func (a *answer) fail(err error) {
	if a.err == nil && len(a.Messages) == 0 {
		a.err = err
	}
	a.end()
}

func (a *answer) end() {
	if !a.ended {
		a.ended = true
		close(a.done)
	}
}

// tell returns the report on a queue, which it adds if there is none yet.
func (a *answer) tell(queue string) *engine.Told {
	i, known := a.told[queue]
	if !known {
		if a.told == nil {
			a.told = make(map[string]int)
		}
		i = len(a.Told)
		a.told[queue], a.Told = i, append(a.Told, engine.Told{Queue: queue})
	}
	return &a.Told[i]
}

func (a *answer) noted(queue string, expired, died int) {
	t := a.tell(queue)
	t.Expired += expired
	t.Died += died
}

// result returns an answer to which nothing more can come. If ctx has ended, it releases the
// messages instead. Called without a lock.
func (d *Dispatcher) result(ctx context.Context, a *answer) (engine.Waited, error) {
	if err := ctx.Err(); err != nil {
		d.GiveBack(a.Messages)
		return engine.Waited{}, &engine.Error{Op: "lease", Err: err}
	}
	if len(a.Messages) > 0 {
		a.Waited.Waited = max(0, a.sent.Sub(a.began))
		return a.Waited, nil
	}
	return a.Waited, a.err
}

// Lease leases once, and waits up to w.For for the first message. The engine is asked at
// least once. When ctx ends, messages that were leased meanwhile are released.
func (d *Dispatcher) Lease(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	if lw, ok := d.eng.(engine.LeaseWaiter); ok && d.caps.LeaseWait {
		return d.leaseThere(ctx, lw, w)
	}
	t, err := d.Stand(w.Queues)
	if err != nil {
		return engine.Waited{}, err
	}
	defer t.Leave()
	return t.Lease(ctx, w)
}
