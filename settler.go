package tarry

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/coalesce"
	"github.com/tarryhq/tarry/internal/dispatch"
)

// settler tells the engine what became of deliveries: while a call is under way the
// results of others gather, and the next call takes them all. On an engine across a
// network they do so for a moment more; what cannot wait that moment makes the next call
// at once. When a full call's
// worth has gathered, or the call under way is slow, a second one is made beside it. A
// call that fails is repeated until the leases concerned are over; single results that an
// engine does not take yet are told again apart.
//
// Its goroutines live only while there is something to tell.
type settler struct {
	eng  engine.Engine
	pace time.Duration // from when a call begins to when the next does, unless there is a hurry
	log  *slog.Logger
	told func(ds []*delivery, out []engine.Settled)

	ctx    context.Context
	giveUp context.CancelFunc

	mu      sync.Mutex
	waiting []*delivery
	busy    int           // lanes
	slow    int           // lanes whose calls are slow
	aside   int           // batches beside the lanes
	empty   chan struct{} // not nil: to be closed when nothing is under way
	next    time.Time     // when the next call is made, unless there is a hurry
	hurried bool          // there is
	hurry   chan struct{} // holds one token: there has come to be
}

const (
	settleBatch = 1000
	settleLanes = 2

	// settleSlow is after how long a call no longer keeps others waiting: it may hang, and
	// their leases run out.
	settleSlow = 100 * time.Millisecond

	// settleWorth is how many results are worth a call at once.
	settleWorth = 256
	// settleLeft is how long the lease of a result that can wait lasts at least.
	settleLeft = time.Second

	// settleLeast is how long a call may take at least.
	settleLeast = 250 * time.Millisecond

	// settlePace is the pace across a network: a few calls that tell much leave engine
	// and network to those who lease.
	settlePace = 5 * time.Millisecond
)

func newSettler(c *Client, log *slog.Logger, told func([]*delivery, []engine.Settled)) *settler {
	var pace time.Duration
	if c.caps.Recheck > 0 { // its hints may be lost: it is elsewhere
		pace = settlePace
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &settler{eng: c.eng, pace: pace, log: log, told: told, ctx: ctx, giveUp: cancel, hurry: make(chan struct{}, 1)}
}

// add hands in a delivery that has been concluded. It does not block.
func (s *settler) add(d *delivery) {
	s.mu.Lock()
	s.waiting = append(s.waiting, d)
	if len(s.waiting) >= settleWorth || !d.canWait() {
		s.hasten()
	}
	s.widen()
	s.mu.Unlock()
}

// widen opens a lane where that is due. Called with s.mu held.
func (s *settler) widen() {
	if len(s.waiting) == 0 || s.busy == settleLanes {
		return
	}
	if s.busy == s.slow || len(s.waiting) >= settleBatch {
		s.busy++
		go s.run()
	}
}

// canWait reports whether the result of a delivery may be told a moment later: one
// that ends its message, unless the lease is about to end.
func (d *delivery) canWait() bool {
	return d.settle.Do == engine.Ack &&
		(d.term.endless() || d.term.end().Sub(d.started.Add(d.took)) >= settleLeft)
}

// hasten has the next call made at once. Called with s.mu held.
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

// gather waits until the next call is due.
func (s *settler) gather() {
	s.mu.Lock()
	wait := time.Until(s.next)
	if s.hurried || len(s.waiting) == 0 {
		wait = 0
	}
	s.mu.Unlock()
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.hurry:
	case <-timer.C:
	}
}

func (s *settler) run() {
	for {
		runtime.Gosched() // whoever can hand in now should: it makes the calls fewer
		s.gather()
		s.mu.Lock()
		n := min(len(s.waiting), settleBatch)
		if n == 0 {
			s.busy--
			s.over()
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
		s.next = time.Now().Add(s.pace)
		s.mu.Unlock()
		s.watch(func() { s.settle(batch, false) })
	}
}

// watch runs a call, and has others pass it once it is slow.
func (s *settler) watch(call func()) {
	slow, over := false, false
	timer := time.AfterFunc(settleSlow, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !over {
			slow = true
			s.slow++
			s.widen()
		}
	})
	call()
	if timer.Stop() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if over = true; slow {
		s.slow--
	}
}

// flush waits until all is told; after the time given it gives up what is left.
func (s *settler) flush(patience time.Duration) {
	defer s.giveUp()
	s.mu.Lock()
	if s.busy == 0 && s.aside == 0 {
		s.mu.Unlock()
		return
	}
	s.hasten()
	empty := make(chan struct{})
	s.empty = empty
	s.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-empty:
	case <-timer.C:
		s.giveUp()
		<-empty
	}
}

// setAside goes on with those of a batch that the engine has refused one by one, so that
// the others do not wait for them.
func (s *settler) setAside(batch []*delivery) {
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
		s.over()
		s.mu.Unlock()
	}()
}

// over tells who waits for it that nothing is under way. Called with s.mu held.
func (s *settler) over() {
	if s.busy == 0 && s.aside == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// settle tells one batch; aside: parts of it have been refused before.
func (s *settler) settle(batch []*delivery, aside bool) {
	for fails := 0; len(batch) > 0; fails++ {
		if fails > 0 || aside {
			s.rest(dispatch.FailPause(max(0, fails-1)))
		}
		tokens := make([]engine.Settlement, len(batch))
		for i, d := range batch {
			tokens[i] = d.settle
		}
		ctx, cancel := context.WithTimeout(engine.Gathered(s.ctx), patience(batch))
		out, err := s.eng.Settle(ctx, tokens)
		cancel()
		if err == nil {
			if batch = s.sort(batch, out); !aside {
				s.setAside(batch)
				return
			}
			continue
		}
		s.log.Warn("results could not be told to the engine", "count", len(batch), "error", err)
		batch = s.sort(batch, failedAll(len(batch), err))
	}
}

// patience is how long a call that tells a batch may take: a quarter of what the leases
// have left, so that one that hangs is repeated while it is of use.
func patience(batch []*delivery) time.Duration {
	p, now := coalesce.Timeout, time.Now()
	for _, d := range batch {
		if !d.term.endless() {
			p = min(p, max(d.term.end().Sub(now)/4, settleLeast))
		}
	}
	return p
}

func failedAll(n int, err error) []engine.Settled {
	out := make([]engine.Settled, n)
	for i := range out {
		out[i].Err = err
	}
	return out
}

// sort tells what has an answer, and returns what is to be tried again.
func (s *settler) sort(batch []*delivery, out []engine.Settled) (again []*delivery) {
	now := time.Now()
	told := batch
	for i, d := range batch {
		if !s.worthRepeating(out[i].Err) || d.term.ended(now) {
			if again != nil {
				told, out[len(told)] = append(told, d), out[i]
			}
			continue
		}
		if again == nil {
			told = batch[:i:i]
			again = make([]*delivery, 0, len(batch)-i)
		}
		d.retold = true
		again = append(again, d)
	}
	s.told(told, out[:len(told)])
	return again
}

// worthRepeating tells failures to reach the engine from its answers.
func (s *settler) worthRepeating(err error) bool {
	if err == nil || s.ctx.Err() != nil {
		return false
	}
	for _, final := range [...]error{ErrLeaseLost, ErrClosed, ErrInvalid, ErrNotFound, ErrUnsupported} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
}

// rest pauses between two calls.
func (s *settler) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}
