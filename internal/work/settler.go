package work

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/dispatch"
	"github.com/tarryhq/tarry/internal/duration"
)

// settler sends the results of deliveries to the engine in batches: results gather while a
// call is under way, and the next call takes them all. Where the engine has a pace they gather
// a moment longer, unless a result is urgent. When a full batch has gathered, or the
// call under way is slow, a second call is made beside it. A failed call is repeated until
// the leases are over. Single results that the engine could not take for now are sent again
// apart from the others.
//
// Its goroutines live only while there is something to send.
type settler struct {
	eng  engine.Engine
	pace time.Duration // the engine's
	room *dispatch.Room
	log  *slog.Logger
	done func(ds []*Delivery, out []engine.Settled)

	ctx    context.Context
	giveUp context.CancelFunc

	mu      sync.Mutex
	waiting []*Delivery
	lanes   calls.Lanes
	aside   int           // batches retried beside the lanes
	empty   chan struct{} // not nil: closed when nothing is under way
	last    time.Time     // when the last call began
	hurried bool          // the next call is urgent
	hurry   chan struct{} // holds a token when the next call becomes urgent
}

const (
	settleBatch = 1000
	settleLanes = 2

	// settleSlow is how long a call may take before it is slow. It may then hang, so other
	// results go out beside it before their leases expire.
	settleSlow = 100 * time.Millisecond

	// settleWorth is how many results are worth an immediate call.
	settleWorth = 256
	// settleLeft is how much of its lease must be left after a result has waited.
	settleLeft = time.Second

	// ackPaces is how many paces acks may gather, where nobody waits for what they free.
	ackPaces = 6

	// settleLeast is the shortest timeout of a call.
	settleLeast = 250 * time.Millisecond
)

func newSettler(cfg *Config, room *dispatch.Room, done func([]*Delivery, []engine.Settled)) *settler {
	ctx, cancel := context.WithCancel(context.Background())
	s := &settler{eng: cfg.Engine, pace: cfg.Caps.Pace, room: room, log: cfg.Logger, done: done, ctx: ctx, giveUp: cancel, hurry: make(chan struct{}, 1)}
	s.lanes = calls.Lanes{
		Mu: &s.mu, Most: settleLanes, Worth: settleBatch, Slow: settleSlow,
		Waiting: func() int { return len(s.waiting) },
		Open:    func() { go s.run() },
	}
	return s
}

// add queues a finished delivery. It does not block.
func (s *settler) add(d *Delivery) {
	s.mu.Lock()
	s.waiting = append(s.waiting, d)
	if len(s.waiting) >= settleWorth || !d.canWait(ackPaces*s.pace) {
		s.hasten()
	}
	s.lanes.Widen()
	s.mu.Unlock()
}

// canWait reports whether the result of a delivery may be sent so much later: an ack may, if
// enough of its lease is left then.
func (d *Delivery) canWait(long time.Duration) bool {
	return d.settle.Do == engine.Ack &&
		(d.term.endless() || d.term.end().Sub(d.started.Add(d.took)) >= settleLeft+long)
}

// hasten makes the next call happen at once. Called with s.mu held.
func (s *settler) hasten() {
	if s.hurried {
		return
	}
	s.hurried = true
	select {
	case s.hurry <- struct{}{}:
	default:
	}
}

// gather waits for the next call to be due.
func (s *settler) gather() {
	s.mu.Lock()
	pace := s.pace
	if s.room.Held.Load() == 0 {
		pace *= ackPaces
	}
	left := time.Until(s.last.Add(pace))
	if s.hurried || len(s.waiting) == 0 {
		left = 0
	}
	s.mu.Unlock()
	if left > 0 {
		duration.Await(s.hurry, left)
	}
}

func (s *settler) run() {
	for {
		runtime.Gosched() // let handlers add results first: it saves calls
		s.gather()
		s.mu.Lock()
		n := min(len(s.waiting), settleBatch)
		if n == 0 {
			s.lanes.Running--
			s.checkEmpty()
			s.mu.Unlock()
			return
		}
		batch := s.waiting[:n:n]
		s.waiting = s.waiting[n:]
		if len(s.waiting) == 0 {
			s.waiting, s.hurried = nil, false
			select {
			case <-s.hurry:
			default:
			}
		}
		s.last = time.Now()
		s.mu.Unlock()
		s.lanes.Call(func() { s.settle(batch, false) })
	}
}

// flush waits until all results are sent; after patience it gives up the rest.
func (s *settler) flush(patience time.Duration) {
	defer s.giveUp()
	s.mu.Lock()
	if s.lanes.Running == 0 && s.aside == 0 {
		s.mu.Unlock()
		return
	}
	s.hasten()
	empty := make(chan struct{})
	s.empty = empty
	s.mu.Unlock()
	if !duration.Await(empty, patience) {
		s.giveUp()
		<-empty
	}
}

// setAside retries those results of a batch that the engine could not take for now. It does
// so beside the lanes, so that other results do not wait for them.
func (s *settler) setAside(batch []*Delivery) {
	if len(batch) == 0 {
		return
	}
	s.mu.Lock()
	s.aside++
	s.mu.Unlock()
	go func() {
		s.settle(batch, true)
		s.mu.Lock()
		s.aside--
		s.checkEmpty()
		s.mu.Unlock()
	}()
}

// checkEmpty closes empty when nothing is under way. Called with s.mu held.
func (s *settler) checkEmpty() {
	if s.lanes.Running == 0 && s.aside == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// settle sends one batch. With aside the batch has been set aside: settle pauses first, and
// repeats it until it is done.
func (s *settler) settle(batch []*Delivery, aside bool) {
	for fails := 0; len(batch) > 0; fails++ {
		if fails > 0 || aside {
			duration.Sleep(s.ctx, dispatch.FailPause(max(0, fails-1)))
		}
		tokens := make([]engine.Settlement, len(batch))
		for i, d := range batch {
			tokens[i] = d.settle
		}
		ctx, cancel := context.WithTimeout(engine.Gathered(s.ctx), patience(batch))
		out, err := s.eng.Settle(ctx, tokens)
		cancel()
		if err == nil {
			if batch = s.splitFinal(batch, out); !aside {
				s.setAside(batch)
				return
			}
			continue
		}
		s.log.Warn("results could not be sent to the engine", "count", len(batch), "error", err)
		batch = s.splitFinal(batch, calls.FailedAll(len(batch), err))
	}
}

// patience returns the timeout of a batch's call: a quarter of the shortest remaining
// lease, so that a call that hangs can be repeated in time.
func patience(batch []*Delivery) time.Duration {
	p, now := calls.Timeout, time.Now()
	for _, d := range batch {
		if !d.term.endless() {
			p = min(p, max(d.term.end().Sub(now)/4, settleLeast))
		}
	}
	return p
}

// splitFinal reports the final results, and returns the deliveries to try again.
func (s *settler) splitFinal(batch []*Delivery, out []engine.Settled) (again []*Delivery) {
	now := time.Now()
	final := batch
	for i, d := range batch {
		if !s.worthRepeating(out[i].Err) || d.term.ended(now) {
			if again != nil {
				final, out[len(final)] = append(final, d), out[i]
			}
			continue
		}
		if again == nil {
			final = batch[:i:i]
			again = make([]*Delivery, 0, len(batch)-i)
		}
		d.resent = true
		again = append(again, d)
	}
	s.done(final, out[:len(final)])
	return again
}

// worthRepeating reports whether to send a result again that failed with err: not after a
// final answer of the engine, and not once the settler has given up.
func (s *settler) worthRepeating(err error) bool {
	if err == nil || s.ctx.Err() != nil {
		return false
	}
	for _, final := range [...]error{engine.ErrLeaseLost, engine.ErrClosed, engine.ErrInvalid, engine.ErrNotFound, engine.ErrUnsupported} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
}
