package server

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/trend"
)

// How often a sampler asks.
const (
	lookEvery  = 250 * time.Millisecond // for the queues that are watched
	listEvery  = time.Second            // for all, while a viewer wants an overview
	askTimeout = 5 * time.Second        // of a round
	restShare  = 4                      // a round takes at most this part of the time
	keptFor    = time.Minute            // what was seen is kept for viewers that come back
)

// maxWatchedInAll bounds the queues that are watched by all viewers together.
const maxWatchedInAll = 256

// sampler looks at queues for all viewers together: one goroutine asks the engine, and runs
// only while there are viewers. Each row has a version, which grows over all rows. A viewer
// remembers the version it has seen, so that the sampler keeps nothing for it: a slow viewer
// gets the newest state when it reads again.
type sampler struct {
	c      *tarry.Client
	trends *trend.Recorder // nil: nothing keeps what happened
	most   int             // viewers

	watching atomic.Bool // there are viewers

	mu          sync.RWMutex
	viewers     int
	overviewers int
	watched     map[string]int      // by how many
	touched     map[string]struct{} // watched queues whose messages this server has changed
	end         context.CancelFunc
	ended       chan struct{}
	wake        chan struct{} // has a token when a viewer came
	tick        chan struct{} // closed when there is something new
	drop        *time.Timer   // has what was seen dropped when no viewer comes back

	epoch string // of the versions; "": nothing was seen
	seen
}

// seen is what a sampler has seen. Its goroutine alone changes it, under the lock.
type seen struct {
	rows    map[string]*row
	order   []stamp // by version, without rows that have changed since
	version uint64
	floor   uint64 // what changed before that may have been dropped
	listed  bool   // all queues were asked for since the goroutine began
	totals  []byte // of all queues; nil: not known
	up      bool   // the engine answered when it was last asked
	asked   bool   // it was
}

// stamp is when a row changed.
type stamp struct {
	version uint64
	row     *row
}

func newSampler(c *tarry.Client, trends *trend.Recorder, most int) *sampler {
	return &sampler{
		c: c, trends: trends, most: most, watched: make(map[string]int), touched: make(map[string]struct{}),
		wake: make(chan struct{}, 1), tick: make(chan struct{}), seen: seen{rows: make(map[string]*row)},
	}
}

// join adds a viewer, which has to leave, or returns the error to answer with.
func (s *sampler) join(queues []string, overview bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers >= s.most {
		return refusal(503, "unavailable", "as many watch as may", "try again later; tarry serve --max-viewers allows more")
	}
	more := 0
	for _, q := range queues {
		if s.watched[q] == 0 {
			more++
		}
	}
	if len(s.watched)+more > maxWatchedInAll {
		return refusal(503, "unavailable", "too many queues are watched", "try again with fewer queues, or watch the overview")
	}
	for _, q := range queues {
		s.watched[q]++
	}
	if overview {
		s.overviewers++
	}
	if s.viewers++; s.viewers == 1 {
		s.begin()
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// begin starts the goroutine, once that before it has ended.
func (s *sampler) begin() {
	if s.drop != nil {
		s.drop.Stop()
	}
	if s.epoch == "" {
		s.epoch = rand.Text()[:8]
	}
	ctx, cancel := context.WithCancel(context.Background())
	before, ended := s.ended, make(chan struct{})
	s.end, s.ended, s.listed, s.asked = cancel, ended, false, false
	s.watching.Store(true)
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		s.run(ctx)
	}()
}

// leave takes a viewer away. The last one waits for the goroutine to end.
func (s *sampler) leave(queues []string, overview bool) {
	s.mu.Lock()
	for _, q := range queues {
		if s.watched[q]--; s.watched[q] == 0 {
			delete(s.watched, q)
		}
	}
	if overview {
		s.overviewers--
	}
	s.viewers--
	if s.viewers > 0 {
		s.mu.Unlock()
		return
	}
	s.watching.Store(false)
	s.end()
	ended := s.ended
	s.drop = time.AfterFunc(keptFor, s.forget)
	s.mu.Unlock()
	<-ended
}

// forget drops what was seen, unless a viewer has come back.
func (s *sampler) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers == 0 {
		s.epoch, s.seen = "", seen{rows: make(map[string]*row)}
		clear(s.touched)
	}
}

// touch notes that this server may have changed messages of a queue in a way that its
// counts do not show.
func (s *sampler) touch(queue string) {
	if !s.watching.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[queue] > 0 {
		s.touched[queue] = struct{}{}
	}
}

// run asks until ctx ends.
func (s *sampler) run(ctx context.Context) {
	var looked, listed time.Time
	for ctx.Err() == nil {
		start := time.Now()
		queues, overview := s.wanted()
		if len(queues) > 0 && !start.Before(looked) {
			round := round{s: s, now: start}
			round.look(ctx, queues)
			round.publish()
			looked = start.Add(max(lookEvery, restShare*time.Since(start)))
		}
		if begun := time.Now(); overview && !begun.Before(listed) {
			round := round{s: s, now: begun}
			round.list(ctx)
			round.publish()
			listed = begun.Add(max(listEvery, restShare*time.Since(begun)))
		}
		next := time.Now().Add(time.Hour) // until a viewer comes
		if len(queues) > 0 {
			next = looked
		}
		if overview && listed.Before(next) {
			next = listed
		}
		rest := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-rest.C:
		}
		rest.Stop()
	}
}

// wanted is what is watched.
func (s *sampler) wanted() (queues []string, overview bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for q := range s.watched {
		queues = append(queues, q)
	}
	return queues, s.overviewers > 0
}

// taken takes the queues that were touched since it was last called.
func (s *sampler) taken() map[string]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := s.touched
	s.touched = make(map[string]struct{})
	return touched
}

// round is once that a sampler asks.
type round struct {
	s      *sampler
	now    time.Time
	fresh  []*row // rows that have changed, also new ones
	old    []*row // rows to be dropped
	slots  []trend.Slot
	totals []byte // nil: not all were listed
	failed bool
}

// look asks for the queues that are watched.
func (r *round) look(ctx context.Context, queues []string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	touched := r.s.taken() // what is touched from now on shows in the next round
	for _, q := range queues {
		info, err := r.s.c.Queue(ctx, q)
		if err != nil {
			r.failed = true
			return
		}
		_, changed := touched[q]
		r.see(&info, false, changed, figureWatched)
	}
}

// list asks for all queues.
func (r *round) list(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var t totals
	there := make(map[string]struct{}, len(r.s.rows))
	for q, err := range r.s.c.AllQueues(ctx) {
		if err != nil {
			r.failed = true
			return
		}
		there[q.Queue] = struct{}{}
		t.add(&q)
		r.see(&q, true, false, figureAll)
	}
	for name, row := range r.s.rows {
		if _, ok := there[name]; !ok {
			r.lose(row)
		}
	}
	r.totals = t.json()
}

// publish has viewers be told of what is new.
func (r *round) publish() {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	news := len(r.fresh) > 0 || r.totals != nil && (!s.listed || string(s.totals) != string(r.totals)) || !s.asked || s.up == r.failed
	for _, row := range r.fresh {
		s.version++
		row.version, row.json, row.fresh = s.version, row.next, false
		s.rows[row.queue] = row
		s.order = append(s.order, stamp{s.version, row})
	}
	if s.asked, s.up = true, !r.failed; r.totals != nil {
		s.listed, s.totals = true, r.totals
	}
	if s.overviewers == 0 { // else the next list tells what is not needed any more
		for name, row := range s.rows {
			if s.watched[name] == 0 {
				r.old = append(r.old, row)
			}
		}
	}
	for _, row := range r.old {
		s.floor = max(s.floor, row.version)
		delete(s.rows, row.queue)
	}
	if len(s.order) > 2*len(s.rows)+64 {
		kept := s.order[:0:0]
		for _, o := range s.order {
			if o.row.version == o.version && s.rows[o.row.queue] == o.row {
				kept = append(kept, o)
			}
		}
		s.order = kept
	}
	if news {
		close(s.tick)
		s.tick = make(chan struct{})
	}
}
