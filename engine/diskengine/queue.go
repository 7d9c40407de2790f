package diskengine

import (
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// queue is the part of a queue that is in memory, guarded by store.Store.Mu.
type queue struct {
	name string
	num  uint32
	gone bool    // it was forgotten, and another may have its name
	pos  wal.Pos // the last entry of the log that changed it
	ms   int64   // when it was last visited, by the engine's clock

	// Numbers of messages and remembered keys. A live message is leased or pending. ready
	// counts the pending ones before front.
	live, leased, ready    int64
	dead, finished, listed int64

	readyQueue
	weight int64            // bytes of memory of the heap and the cursors when last weighed
	leases *memtable.Leases // of all queues
	ends   int64            // no lease ends before this

	// Those of dead messages are in the order in which they died, of remembered keys in that in
	// which they are forgotten, of listed messages in that in which they ended.
	cursors [memtable.Areas]store.Cursors
	oldest  int64 // none that is listed ended before this

	pause    int64           // until when; 0: it is not paused
	settings *rules.Settings // nil: never configured

	nextDue       int64 // the last NextDue of an answer; never: there was none
	hint          bool  // watchers get a hint
	expired, died int   // messages that no answer of Lease has counted yet
}

func (e *Engine) newQueue(name string, num uint32) *queue {
	q := &queue{name: name, num: num, nextDue: never, leases: e.leases, ends: never, oldest: memtable.First.At}
	q.front = memtable.First
	for a := range memtable.Areas {
		q.cursors[a].Area = a
	}
	return q
}

// count returns the counter of an area.
func (q *queue) count(a memtable.Area) *int64 {
	switch a {
	case memtable.Dead:
		return &q.dead
	case memtable.Finished:
		return &q.finished
	case memtable.Listed:
		return &q.listed
	}
	return &q.live
}

// empty reports whether the queue holds nothing that a caller could ask for.
func (q *queue) empty() bool {
	return q.live+q.dead+q.finished+q.listed == 0 && q.pause == 0 && q.settings == nil
}

// namesAfter returns at most n names of queues after a name, in order.
func (e *Engine) namesAfter(after string, n int) []string {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	return e.names.After(nil, after, n)
}

// visit returns a queue brought up to the present; nil: there is none. If create is set it
// makes one.
func (c *call) visit(name string, create bool) (*queue, error) {
	if q := c.visited; q != nil && q.name == name {
		return q, nil
	}
	q := c.e.queues[name]
	if q == nil {
		if !create {
			return nil, nil
		}
		if c.e.nextQueue > memtable.MaxQueue {
			return nil, &engine.Error{Op: c.op, Queue: name, Err: engine.ErrLimit,
				Hint: "the store has used up its numbers for queues, which are never given twice; tarry copy brings what waits to a new store"}
		}
		q = c.make(name)
	}
	err := c.refresh(q)
	if err == nil {
		c.visited = q
	}
	return q, err
}

// make makes a queue and names it in the log.
func (c *call) make(name string) *queue {
	e := c.e
	q := e.newQueue(name, e.nextQueue)
	e.nextQueue++
	e.queues[name], e.numbered[q.num] = q, q
	e.nums.Store(name, q.num)
	e.names.Add(name)
	c.group = (&record.Name{Queue: q.num, Name: []byte(name)}).Append(c.group)
	c.touch(q)
	return q
}

// refresh brings a queue up to the present: a message with a lapsed lease waits again, or is
// dead.
func (c *call) refresh(q *queue) error {
	if c.ms < q.ms {
		q.rewind()
	}
	q.ms = c.ms
	if q.pause != 0 && q.pause <= c.ms {
		q.pause = 0
	}
	if err := c.lapseAll(q); err != nil {
		return err
	}
	if q.settings != nil && q.settings.DeadMax > 0 && q.dead > q.settings.DeadMax {
		return c.dropDead(q)
	}
	return nil
}

// hinted passes on the queue's hint, if any, that something may be leased sooner than the last
// answer said.
func (c *call) hinted(q *queue) {
	if q.hint {
		q.hint = false
		c.hints = append(c.hints, q.name)
	}
}

// arrives notes that something may be leased from an instant on.
func (q *queue) arrives(at int64) {
	if at < q.nextDue {
		q.nextDue, q.hint = at, true
	}
}

// forget forgets those of some queues that are empty and idle: programs that make a queue for
// each user must not fill the memory with names.
func (c *call) forget(names []string) {
	for _, name := range names {
		q := c.e.queues[name]
		if q == nil || !q.empty() || c.ms-q.ms < idleQueue.Milliseconds() {
			continue
		}
		q.gone = true
		c.e.weigh(q)
		delete(c.e.queues, name)
		c.e.nums.Delete(name)
		c.e.names.Remove(name)
		delete(c.e.numbered, q.num)
		c.group = (&record.Name{Queue: q.num}).Append(c.group)
	}
}

// idleQueue is how long an empty queue is kept after the last call.
const idleQueue = time.Minute
