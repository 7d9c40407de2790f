package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/trend"
)

// How often a sampler asks the engine.
const (
	lookEvery  = 250 * time.Millisecond // for the watched queues
	listEvery  = time.Second            // for all queues, while a viewer wants an overview
	askTimeout = 5 * time.Second        // of each round
	restShare  = 4                      // rounds take at most 1/restShare of the time
	keptFor    = time.Minute            // how long rows are kept for viewers that come back
)

// maxWatchedInAll bounds the queues watched by name, by all viewers together.
const maxWatchedInAll = 256

// sampler looks at queues for all viewers together. One goroutine asks the engine, and runs
// only while there are viewers. Each change of a row gets the next version, counted over all
// rows. A viewer remembers the version it has seen, so the sampler keeps nothing for it. A
// slow viewer gets the newest state when it reads again.
type sampler struct {
	c      *tarry.Client
	trends *trend.Recorder // nil: the recent past is not kept
	most   int             // the most viewers

	mu          sync.RWMutex
	viewers     int
	overviewers int
	watched     map[string]int // by queue: how many viewers watch it
	end         context.CancelFunc
	ended       chan struct{}
	wake        chan struct{} // holds a token when a viewer has come
	tick        chan struct{} // closed when there is something new
	drop        *time.Timer   // drops the rows when no viewer comes back

	epoch string // of the versions; "": no rows are kept
	seen
}

// seen is the state that a sampler has read. Only its goroutine changes it, under the lock.
type seen struct {
	rows    map[string]*row
	order   []*row // by version
	version uint64
	floor   uint64 // changes up to this version may have been dropped
	listed  bool   // all queues were listed since the goroutine began
	totals  []byte // of all queues; nil: unknown
	up      bool   // the engine answered the last round
	asked   bool   // there was a round since the goroutine began
}

func newSampler(c *tarry.Client, trends *trend.Recorder, most int) *sampler {
	return &sampler{
		c: c, trends: trends, most: most, watched: make(map[string]int),
		wake: make(chan struct{}, 1), tick: make(chan struct{}), seen: seen{rows: make(map[string]*row)},
	}
}

// join adds a viewer, which must leave later, or returns the error to answer with.
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

// begin starts a goroutine, which waits for the previous one to end.
func (s *sampler) begin() {
	if s.drop != nil {
		s.drop.Stop()
	}
	s.epoch = cmp.Or(s.epoch, rand.Text()[:8])
	ctx, cancel := context.WithCancel(context.Background())
	before, ended := s.ended, make(chan struct{})
	s.end, s.ended, s.listed, s.asked = cancel, ended, false, false
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		s.run(ctx)
	}()
}

// leave removes a viewer. The last one waits for the goroutine to end.
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
	s.end()
	ended := s.ended
	s.drop = time.AfterFunc(keptFor, s.forget)
	s.mu.Unlock()
	<-ended
}

// forget drops the rows, unless a viewer has come back.
func (s *sampler) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers == 0 {
		s.epoch, s.seen = "", seen{rows: make(map[string]*row)}
	}
}

// touch notes that this server may have changed messages of a queue in a way that its
// counts do not show.
func (s *sampler) touch(queue string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if q := s.rows[queue]; q != nil {
		q.touched.Store(true)
	}
}

// run asks the engine until ctx ends.
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
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-time.After(time.Until(next)):
		}
	}
}

// wanted returns what the viewers want.
func (s *sampler) wanted() (queues []string, overview bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for q := range s.watched {
		queues = append(queues, q)
	}
	return queues, s.overviewers > 0
}

// round is one look at the engine.
type round struct {
	s      *sampler
	now    time.Time
	fresh  []*row // rows that are new or have changed
	old    []*row // rows to be dropped
	slots  []trend.Slot
	totals []byte // nil: not all queues were listed
	failed bool
}

// look asks for the watched queues.
func (r *round) look(ctx context.Context, queues []string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, q := range queues {
		info, err := r.s.c.Queue(ctx, q)
		if err != nil {
			r.failed = true
			return
		}
		r.see(&info, false, figureWatched)
	}
}

// list asks for all queues.
func (r *round) list(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var t wire.LiveTotals
	there := make(map[string]struct{}, len(r.s.rows))
	for q, err := range r.s.c.AllQueues(ctx) {
		if err != nil {
			r.failed = true
			return
		}
		there[q.Queue] = struct{}{}
		t.Queues++
		t.Scheduled += q.Scheduled
		t.Ready += q.Ready
		t.Leased += q.Leased
		t.Dead += q.Dead
		r.see(&q, true, figureAll)
	}
	for name, row := range r.s.rows {
		if _, ok := there[name]; !ok {
			r.lose(row)
		}
	}
	r.totals = wire.AppendJSON(nil, &t)
}

// publish shows the changes to viewers.
func (r *round) publish() {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	news := len(r.fresh) > 0 || r.totals != nil && (!s.listed || string(s.totals) != string(r.totals)) || !s.asked || s.up == r.failed
	if len(r.fresh) > 0 {
		s.order = slices.DeleteFunc(s.order, func(q *row) bool { return q.fresh })
	}
	for _, row := range r.fresh {
		s.version++
		row.version, row.json, row.fresh = s.version, row.next, false
		s.rows[row.queue] = row
	}
	s.order = append(s.order, r.fresh...)
	if s.asked, s.up = true, !r.failed; r.totals != nil {
		s.listed, s.totals = true, r.totals
	}
	if s.overviewers == 0 { // else the next list shows which rows can go
		for name, row := range s.rows {
			if s.watched[name] == 0 {
				r.old = append(r.old, row)
			}
		}
	}
	for _, row := range r.old {
		s.floor = max(s.floor, row.version)
		delete(s.rows, row.queue)
		row.version = 0
	}
	if len(r.old) > 0 {
		s.order = slices.DeleteFunc(s.order, func(q *row) bool { return q.version == 0 })
	}
	if news {
		close(s.tick)
		s.tick = make(chan struct{})
	}
}
