package diskengine

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/tarryhq/tarry/engine"
)

// queue is one queue. Its lock guards everything below it.
type queue struct {
	e    *Engine
	name string
	num  uint32

	mu     sync.Mutex
	counts counts
	seq    uint64 // the last batch applied

	gone bool // forgotten: holds nothing and never will
	kept bool // vacant, yet not to be forgotten
	idle int  // rounds of tidy since the last call

	near     near
	loadedTo position // what waits below is in near, nothing else is
	loads    uint64   // how often loadedTo changed
	loading  bool     // the loader reads from loadedTo on without the lock
	journal  []nearOp // what changed at or above loadedTo meanwhile
	kicked   bool     // the loader will come

	forgets int64  // at or before the time at which the first memory is forgotten; persisted
	rules   *rules // nil: there are no settings
	behind  bool   // the loader is to drop what is over

	mark    position // at or below every due entry; persisted
	lowest  position // least put since the loader began to look for a new mark
	removed int      // due entries removed since then

	names  names
	leases leaseTable
	sweeps []*sweep // purges and redrives under way
	pause  int64    // until when; 0: not paused, forGood: without end

	told    int64 // the NextDue last told; what is put below it is worth a hint
	expired int   // dropped since a Lease last told
	died    int   // lapsed into death since a Lease last told
}

const forGood = math.MaxInt64

func newQueue(e *Engine, name string, num uint32, now int64) *queue {
	return &queue{
		e: e, name: name, num: num, near: newNear(now), loadedTo: position{at: now + ahead},
		forgets: forGood, mark: lastPosition, lowest: lastPosition, leases: newLeaseTable(), told: math.MaxInt64,
	}
}

func (q *queue) paused(now int64) bool { return now < q.pause }

// queue returns the queue of that name, or nil.
func (e *Engine) queue(name string) *queue {
	e.queuesMu.RLock()
	defer e.queuesMu.RUnlock()
	return e.byName[name]
}

// queues returns all queues.
func (e *Engine) queues() []*queue {
	e.queuesMu.RLock()
	defer e.queuesMu.RUnlock()
	return slices.Collect(maps.Values(e.byNumber))
}

// lockQueue returns the queue of that name with its lock held, and creates it when
// there is none.
func (e *Engine) lockQueue(name string) (*queue, error) {
	for {
		q, err := e.makeQueue(name)
		if err != nil {
			return nil, err
		}
		q.mu.Lock()
		if !q.gone {
			return q, nil
		}
		q.mu.Unlock()
	}
}

// lockQueues returns the queues of some names, locked in the order of their numbers.
func (e *Engine) lockQueues(names []string) ([]*queue, error) {
	queues := make([]*queue, len(names))
	for {
		for i, name := range names {
			var err error
			if queues[i], err = e.makeQueue(name); err != nil {
				return nil, err
			}
		}
		slices.SortFunc(queues, func(a, b *queue) int { return cmp.Compare(a.num, b.num) })
		gone := false
		for _, q := range queues {
			q.mu.Lock()
			gone = gone || q.gone
		}
		if !gone {
			return queues, nil
		}
		unlock(queues)
	}
}

func unlock(queues []*queue) {
	for _, q := range queues {
		q.mu.Unlock()
	}
}

// makeQueue returns the queue of that name and creates it when there is none. The
// entry of a new one is durable no later than any batch of that queue.
func (e *Engine) makeQueue(name string) (*queue, error) {
	if q := e.queue(name); q != nil {
		return q, nil
	}
	e.queuesMu.Lock()
	defer e.queuesMu.Unlock()
	if q := e.byName[name]; q != nil {
		return q, nil
	}
	num := e.lastQueue + 1
	b := e.store.db.NewBatch()
	defer b.Close()
	if err := b.Set(append([]byte{kindQueue}, name...), appendHead(nil, 0, num)[1:], nil); err != nil {
		return nil, err
	}
	if err := e.store.applyLazily(b); err != nil {
		return nil, err
	}
	q := newQueue(e, name, num, e.now().ms)
	e.lastQueue = num
	e.byName[name], e.byNumber[num] = q, q
	return q, nil
}

// newID returns an id that was never used. Ids are reserved in blocks; the entry
// that says so is durable no later than any batch with such an id.
func (e *Engine) newID() (engine.ID, error) {
	e.idsMu.Lock()
	defer e.idsMu.Unlock()
	if e.nextID >= e.idsReserved {
		b := e.store.db.NewBatch()
		defer b.Close()
		reserve := e.nextID + idBlock
		if err := b.Set([]byte{kindIDs}, appendID(nil, reserve), nil); err != nil {
			return 0, err
		}
		if err := e.store.applyLazily(b); err != nil {
			return 0, err
		}
		e.idsReserved = reserve
	}
	e.nextID++
	return e.nextID - 1, nil
}

// unusedID is above all ids given so far.
func (e *Engine) unusedID() engine.ID {
	e.idsMu.Lock()
	defer e.idsMu.Unlock()
	return e.nextID
}

const idBlock = 1 << 16

// catchUp brings a queue up to date with the clock: what is due becomes ready and
// leases past their deadline lapse, a chunk of them. The caller waits for p and goes on with the
// clock returned: others may have seen a later one while it waited for the lock,
// and only a clock that really stepped back turns the queue back.
func (q *queue) catchUp(now clock, p *pending) (clock, error) {
	if now.ms < q.near.now {
		now = q.e.now()
	}
	q.idle = 0
	q.near.advance(now.ms)
	if q.whole() && q.loadedTo.at < now.ms+horizon {
		q.moveLoadedTo(position{at: now.ms + ahead})
	}
	done, err := q.lapse(now, p)
	if err == nil {
		err = q.tidyUp(now, p)
	}
	if err != nil {
		return now, err
	}
	if !done || q.wantsLoader(now.ms) {
		q.e.kick(q)
	}
	return now, nil
}

// pending is what a call has to wait for before it answers.
type pending struct {
	store   *store
	batches []applied
	sees    uint64 // the answer rests on batches up to this one
	hints   []string
}

// see notes that the answer rests on what q holds.
func (p *pending) see(q *queue) { p.sees = max(p.sees, q.seq) }

// wait returns when everything the answer rests on is durable.
func (p *pending) wait() error {
	var first error
	for _, a := range p.batches {
		if err := p.store.wait(a); err != nil && first == nil {
			first = err
		}
	}
	p.batches = nil
	if first != nil {
		return first
	}
	return p.store.syncTo(p.sees)
}
