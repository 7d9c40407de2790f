package sqlengine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// work holds what a transaction has read and changed. Rules change rows in memory. write
// compares them with the rows as read, and writes the tables and counts.
type work struct {
	e      *Engine
	ctx    context.Context
	tx     Tx
	op     string
	now    time.Time
	opened time.Time // when now was read, by the clock of this process
	ms     int64

	heads  []Heads
	queues map[int64]*queue // by number
	locked []int64          // queues that are locked, or will be in the next try
	rows   map[engine.ID]*row
	order  []*row // rows in the order of reading
	keys   map[Name]*keyState
	quiet  bool // no hints: the answer tells the caller

	ahead     []Range // read with the opening
	readAhead [][]*Row

	left func() []Heads // the heads of queues at the end of the transaction, if asked for
}

// queue is a queue in a work.
type queue struct {
	*Heads
	dirty   bool // to be saved
	died    bool // there are newly dead messages
	freed   bool // the work ended a lease before its deadline, and the queue has in_flight
	endings endings
	listed  int64    // messages added to the history
	least   int64    // when there may be something because of this work; never: not because of it
	low     LowBound // lower bound of the rows written
}

// row is a message in a work.
type row struct {
	Row
	was   Row    // as read; its ID is 0 for a new message
	gone  bool   // deleted, or of the kind Finished
	whole bool   // policy or content has changed
	late  bool   // gone, and dead before: it leaves a memory of its key
	by    string // the canceller, for the history
}

// keyState is what the work knows about a key.
type keyState struct {
	holder *row    // the live message with the key; nil: none
	stored *Memory // as read
	memory *Memory // as it will be; nil: none
}

// How often a transaction runs if others undo it, and how long it may be repeated.
const (
	tries       = 20
	triesWithin = 5 * time.Second
)

// condition reports whether a call must lock a queue with these settings.
type condition func(*engine.Settings) bool

// errMustLock rolls back a transaction that found a queue which it must lock.
var errMustLock = fmt.Errorf("%w: a queue is to be locked", ErrInternal)

// do runs a transaction over queues, repeats it if others undo it, and then gives hints. It
// locks the rows in first, and the queues with settings for which only returns true; nil: none.
// fn starts afresh each time.
func (e *Engine) do(ctx context.Context, op string, queues []int64, first First, only condition, fn func(*work) error) error {
	if only != nil {
		first.Lock = e.cache.withSettings(queues, only)
	}
	var w *work
	err := e.repeat(ctx, op, first.Timeout, func() error {
		err := e.in(ctx, op, func(tx Tx) (err error) {
			if w, err = e.openFor(ctx, tx, op, queues, first); err != nil {
				return err
			}
			if only != nil {
				if err := w.mustLock(w.queuesWhere(func(q *queue) bool { return only(&q.Settings) })); err != nil {
					return err
				}
			}
			if err := fn(w); err != nil {
				return err
			}
			if err := w.boundDead(); err != nil {
				return err
			}
			err = w.write()
			w.lookAhead()
			return err
		})
		if err == errMustLock {
			first.Lock = w.locked
		}
		return err
	})
	if err != nil {
		return err
	}
	e.fold(len(w.order))
	if e.cfg.later != nil {
		e.cfg.later(w.conclude)
	} else {
		w.conclude()
	}
	return nil
}

// repeat runs a transaction until others do not undo it. Without a timeout, waiting for locks
// in vain does not count as a try. With a timeout it fails with ErrBusy.
func (e *Engine) repeat(ctx context.Context, op string, timeout LockTimeout, try func() error) error {
	pause := calls.Pause{Least: time.Millisecond, Most: 100 * time.Millisecond}
	begun := time.Now()
	for n := 1; ; n++ {
		err := try()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrBusy) && timeout != NoTimeout:
			return err
		case errors.Is(err, ErrBusy) && pause.Wait(ctx):
			n--
		case err == errMustLock && n < tries:
		case !errors.Is(err, ErrAgain) && err != errMustLock:
			return e.gone(op, err)
		case n == tries || time.Since(begun) > triesWithin:
			if a, ok := errors.AsType[*again](err); ok {
				return a.reason
			}
			return &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: "other transactions undid it each time: try again"}
		case !pause.Wait(ctx):
			return &engine.Error{Op: op, Err: context.Cause(ctx)}
		}
	}
}

// queuesWhere returns the queues for which only returns true, in order.
func (w *work) queuesWhere(only func(*queue) bool) (queues []int64) {
	for num, q := range w.queues {
		if only(q) {
			queues = append(queues, num)
		}
	}
	slices.Sort(queues)
	return queues
}

// mustLock rolls the transaction back unless queues are locked. The next try locks them.
func (w *work) mustLock(queues []int64) error {
	all := sorted(slices.Concat(w.locked, queues))
	if len(all) == len(w.locked) {
		return nil
	}
	w.locked = all
	return errMustLock
}

// look runs a transaction that changes nothing.
func (e *Engine) look(ctx context.Context, op string, queues []int64, first First, fn func(*work) error) error {
	return e.repeat(ctx, op, NoTimeout, func() error {
		return e.in(ctx, op, func(tx Tx) error {
			w, err := e.openFor(ctx, tx, op, queues, first)
			if err != nil {
				return err
			}
			return fn(w)
		})
	})
}

// openFor opens a transaction over queues. Only a lease needs their first rows, unless first
// says otherwise.
func (e *Engine) openFor(ctx context.Context, tx Tx, op string, queues []int64, first First) (*work, error) {
	if first.Whole {
		first.From = lowestOf(queues)
		return e.open(ctx, tx, op, first)
	}
	if op != "lease" {
		first.Queues = queues
		return e.open(ctx, tx, op, first)
	}
	l := e.cache.beginLook(queues, 0)
	first.From = l.from
	w, err := e.open(ctx, tx, op, first)
	if err != nil {
		e.cache.endLook(l, nil, 0, 0)
		return nil, err
	}
	e.cache.endLook(l, w.heads, w.ms, 0)
	return w, nil
}

// open opens a transaction, and returns a work with everything it read.
func (e *Engine) open(ctx context.Context, tx Tx, op string, first First) (*work, error) {
	opened, err := tx.Open(ctx, first)
	if err != nil {
		return nil, err
	}
	now, heads := e.clock(opened.Now), opened.Heads
	w := &work{
		e: e, ctx: ctx, tx: tx, op: op, now: now, opened: time.Now(), ms: now.UnixMilli(),
		heads: heads, locked: first.Lock, ahead: first.Ranges, readAhead: opened.Ranges,
		queues: make(map[int64]*queue, len(heads)),
		rows:   make(map[engine.ID]*row),
		keys:   make(map[Name]*keyState),
	}
	w.addQueues(heads)
	if len(w.queues) < len(first.From)+len(first.Queues) && w.op != "settle" { // tokens come from outside and may name any queue
		return nil, ErrGone
	}
	for _, name := range first.Names {
		w.keys[name] = new(keyState)
	}
	w.remember(opened.Memories)
	for _, r := range opened.Rows {
		if w.queues[r.Queue] != nil { // an id may be that of a message of any queue
			w.adopt([]*Row{r})
		}
	}
	return w, nil
}

// addQueues adds queues that were read.
func (w *work) addQueues(heads []Heads) {
	w.e.cache.saw(heads)
	for i := range heads {
		h := &heads[i]
		if h.Paused != 0 && h.Paused <= w.ms {
			h.Paused = 0
		}
		w.queues[h.Num] = &queue{Heads: h, least: never, low: highest(h.Num)}
	}
}

// remember adds memories that were read to the states of their keys.
func (w *work) remember(memories []Memory) {
	for i := range memories {
		m := &memories[i]
		s := w.keys[m.Name]
		s.stored = m
		if m.Forgotten > w.ms {
			s.memory = m
		}
	}
}

// adopt adds rows that were read and locked, and brings them up to date. A row that the work
// already has stays as it is.
func (w *work) adopt(read []*Row) []*row {
	adopted := make([]*row, len(read))
	fresh := make([]row, len(read))
	if len(w.rows) == 0 {
		w.rows = make(map[engine.ID]*row, len(read))
		w.order = slices.Grow(w.order, len(read))
	}
	for i, r := range read {
		x := w.rows[r.ID]
		if x == nil {
			x = &fresh[i]
			*x = row{Row: *r, was: *r}
			w.enter(x)
			w.takeKey(x)
			w.advance(x)
		}
		adopted[i] = x
	}
	return adopted
}

func (w *work) enter(x *row) {
	w.rows[x.ID] = x
	w.order = append(w.order, x)
}

// takeKey makes a live row the holder of its key.
func (w *work) takeKey(x *row) {
	if x.Key == "" || x.Kind >= Dead {
		return
	}
	name := Name{x.Queue, x.Key}
	s := w.keys[name]
	if s == nil {
		s = new(keyState)
		w.keys[name] = s
	}
	s.holder = x
}

// freeKey frees the key of a row.
func (w *work) freeKey(x *row) {
	if s := w.keys[Name{x.Queue, x.Key}]; s != nil && s.holder == x {
		s.holder = nil
	}
}

func byName(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Key, b.Key))
}

// find reads and locks the holders of keys, except for keys that the work has read.
func (w *work) find(names []Name) error {
	var missing []Name
	for _, name := range names {
		if w.keys[name] == nil {
			w.keys[name] = new(keyState)
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	slices.SortFunc(missing, byName)
	rows, memories, err := w.tx.ByKey(w.ctx, missing, Wait, false)
	if err != nil {
		return err
	}
	w.remember(memories)
	w.adopt(rows)
	return nil
}

// findAgain reads once more the keys that seemed to be free. If PostgreSQL had to wait for a
// transaction that deleted the holder and added another, the first statement saw neither.
// Only a later statement sees the new holder. Then it bounds the dead.
func (w *work) findAgain(names []Name) error {
	for _, name := range names {
		if s := w.keys[name]; s.holder == nil && (s.memory == nil || s.memory == s.stored) {
			delete(w.keys, name)
		}
	}
	if err := w.find(names); err != nil {
		return err
	}
	return w.boundDead()
}

// soon notes that a queue may have something at an instant.
func (q *queue) soon(at int64) { q.least = min(q.least, at) }

// sooner returns when a queue may have something for others because of the work.
func (q *queue) sooner() int64 { return max(q.least, q.Paused) }

// write writes all changes. It frees keys before other rows take them.
func (w *work) write() error {
	dirty := w.queuesWhere(func(q *queue) bool { return q.dirty })
	if err := w.mustLock(dirty); err != nil {
		return err // saving a queue without its lock could undo another's change
	}
	var inserted, buried, moved, ranked, replaced, late []*Row
	var deleted, over []engine.ID
	var finished, lastly, brief []*row
	t := tallies{}
	for _, x := range w.order {
		fresh, past := x.was.ID == 0, x.Kind == Finished
		if fresh && x.gone && !past {
			continue
		}
		if !fresh {
			t.count(&x.was, -1)
		}
		if !x.gone || past {
			t.count(&x.Row, 1)
		}
		if x.ranked() && (!x.gone || past) {
			ranked = append(ranked, &x.Row)
		}
		q := w.queues[x.Queue]
		if x.was.Kind == Leased && x.was.Ends > w.ms && (x.gone || x.Kind != Leased) && boundsFlight(&q.Settings) {
			q.freed = true
			q.soon(w.ms)
		}
		switch {
		case fresh && past:
			brief = append(brief, x)
		case fresh:
			inserted = append(inserted, &x.Row)
		case x.gone && x.late:
			// A push that did not see the new memory may be taking the key now. The row takes
			// the key first, so that one of the two transactions is undone.
			if late = append(late, x.waiting()); past {
				lastly = append(lastly, x)
			} else {
				over = append(over, x.ID)
			}
		case past && x.moved():
			finished = append(finished, x)
		case past:
		case x.gone:
			deleted = append(deleted, x.ID)
		case x.whole:
			replaced = append(replaced, &x.Row)
		case x.moved() && x.Kind == Dead:
			buried = append(buried, &x.Row)
		case x.moved():
			moved = append(moved, &x.Row)
		}
		if x.gone || !fresh && !x.whole && !x.moved() {
			continue
		}
		if low := &q.low.From[x.Kind]; x.Place().Compare(*low) < 0 {
			*low = x.Place()
		}
		if x.Kind != Dead {
			q.soon(x.Ends)
		}
	}
	forgotten, remembered := w.memories(t)
	slices.Sort(deleted)
	byID := func(a, b *Row) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(late, byID)
	slices.SortFunc(buried, byID)
	slices.SortFunc(moved, byID)
	slices.SortFunc(ranked, byID)
	slices.SortFunc(replaced, byID)
	slices.SortFunc(inserted, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
	})
	for _, num := range dirty {
		w.queues[num].dirty = false
		w.tx.SaveQueue(w.ctx, &w.queues[num].Queue)
	}
	w.tx.Forget(w.ctx, forgotten)
	w.tx.Delete(w.ctx, deleted)
	w.finish(finished)
	w.tx.Move(w.ctx, buried)
	for _, x := range brief { // one by one, because some may have the same key
		w.tx.Insert(w.ctx, []*Row{x.waiting()})
		w.finish([]*row{x})
	}
	w.tx.Move(w.ctx, late)
	w.tx.Move(w.ctx, moved)
	w.tx.Rank(w.ctx, ranked)
	w.tx.Replace(w.ctx, replaced)
	w.tx.Insert(w.ctx, inserted)
	w.tx.Delete(w.ctx, sorted(over))
	w.finish(lastly)
	w.tx.Remember(w.ctx, remembered)
	w.tx.Tally(w.ctx, t.changes())
	return nil
}

// clean records that everything is written: the rows count as read.
func (w *work) clean() {
	for _, x := range w.order {
		x.was, x.whole = x.Row, false
	}
	w.order = slices.DeleteFunc(w.order, func(x *row) bool { return x.gone })
	for _, s := range w.keys {
		s.stored = s.memory
	}
}

// moved reports whether a column that changes with the state has changed.
func (x *row) moved() bool { return x.Kind != x.was.Kind || x.Ends != x.was.Ends || x.changed() }

// changed is moved for other columns than kind and ends.
func (x *row) changed() bool {
	a, b := &x.Row, &x.was
	same := a.Due == b.Due && a.Expires == b.Expires && a.Attempt == b.Attempt && a.Worker == b.Worker && bytes.Equal(a.Failures, b.Failures)
	return !same || (a.Nonce == nil) != (b.Nonce == nil) || a.Nonce != nil && *a.Nonce != *b.Nonce
}

// ranked reports whether only the priority of a stored policy has changed.
func (x *row) ranked() bool {
	return x.was.ID != 0 && !x.whole && x.Policy.Priority != x.was.Policy.Priority
}

// memories returns the keys to forget and the memories to write.
func (w *work) memories(t tallies) (forgotten []Name, remembered []Memory) {
	for name, s := range w.keys {
		if s.stored == s.memory {
			continue
		}
		if s.stored != nil {
			forgotten = append(forgotten, name)
			t[tallyOf{name.Queue, CountFinished, 0}]--
		}
		if s.memory != nil {
			remembered = append(remembered, *s.memory)
			low := &w.queues[name.Queue].low
			low.Forgotten = min(low.Forgotten, s.memory.Forgotten)
			t[tallyOf{name.Queue, CountFinished, 0}]++
		}
	}
	slices.SortFunc(forgotten, byName)
	slices.SortFunc(remembered, func(a, b Memory) int { return byName(a.Name, b.Name) })
	return forgotten, remembered
}

// lookAhead asks for the heads of queues with something due soon: other processes get a
// notice if it comes first.
func (w *work) lookAhead() {
	if w.e.cfg.Notify == nil || w.quiet {
		return
	}
	near := w.queuesWhere(func(q *queue) bool {
		return q.least != never && (w.e.cfg.later != nil || w.e.tells(q.sooner(), w.ms))
	})
	if near != nil {
		w.left = w.tx.Leave(w.ctx, w.e.cache.lowBounds(near))
	}
}

// conclude sends the hints and notices of a committed work.
func (w *work) conclude() {
	// In a caller's transaction the heads may be old: rows that were due may be gone by now.
	old := w.e.cfg.later != nil
	ms, recheck := w.e.clock(w.now.Add(time.Since(w.opened))).UnixMilli(), w.e.cfg.Recheck.Milliseconds()
	first := make(map[int64]int64)
	if w.left != nil {
		for _, h := range w.left() {
			first[h.Num] = min(h.Waiting, h.Leased)
		}
	}
	var hints []string
	var notices []Sooner
	var longer []int64 // queues with a longer history
	for _, num := range slices.Sorted(maps.Keys(w.queues)) {
		q := w.queues[num]
		at, hint := q.sooner(), false
		w.e.cache.one(num, func(k *cached) {
			k.unreported.expired += q.endings.expired
			k.unreported.died += q.endings.died
			k.history.added += q.listed
			k.lower(&q.low)
			hint = k.sooner(at)
		})
		if q.listed > 0 {
			longer = append(longer, num)
		}
		if w.quiet || q.least == never {
			continue
		}
		if hint {
			hints = append(hints, q.Name)
		}
		first, known := first[num]
		// A lease of what was just due may not see this push, nor this push that lease.
		unseen := first <= ms && (old || first > ms-recheck && at <= ms+recheck)
		if w.e.tells(at, ms) && (!known || at <= first || q.freed || unseen) {
			notices = append(notices, Sooner{q.Name, at})
		}
	}
	w.e.trim(longer, ms)
	w.e.watchers.Hint(hints...)
	if len(notices) > 0 && w.e.cfg.Notify != nil {
		w.e.cfg.Notify(notices)
	}
}
