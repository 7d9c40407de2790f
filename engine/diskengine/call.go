package diskengine

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/internal/calls"
)

// call is a call of the engine under way. It runs in steps under the lock; each step is one
// entry of the log. Between them it reads sstables.
type call struct {
	e   *Engine
	ctx context.Context
	op  string

	// Of the step:
	now      time.Time
	ms       int64
	*scratch               // its group has the records
	entry    *wal.Prepared // a body that follows the first bytes of group; nil: none does
	before   int           // how many bytes of group
	visited  *queue        // the last that was brought up to the present
	least    int64         // the least due time of messages that the records make wait; never: none
	written  bool          // the call may be answered when the records are written, before they are synced

	// The large body of the push under way, copied to where it will be. The entry that has it
	// takes it.
	ahead    *memtable.Ahead
	prepared *wal.Prepared

	keptRoom  keptBody // how many more bytes of kept bodies the call was let in for
	over      *queue   // a queue in which there may be too many dead or finished messages
	hints     []string
	syncedTo  wal.Pos // the log must be durable up to here when the call is answered
	writtenTo wal.Pos // and written up to here
	reader    store.Reader
	kept      []byte // room for bodies that outlast a step (keep)

	// Of the want of a Lease:
	handed int  // bytes of contents that were leased
	alone  bool // the last message leased is leased by itself

	unnamed []unnamed
	later   []func() // log lines, for when the lock is released: a logger may block
}

// never is a time that does not come.
const never = record.Never

func (e *Engine) call(ctx context.Context, op string, s *scratch) *call {
	return &call{e: e, ctx: ctx, op: op, least: never, scratch: s, reader: e.store.Reader()}
}

// do runs a call. When it returns, all that the answer rests on is durable, or written if that
// does.
func (e *Engine) do(ctx context.Context, op string, fn func(c *call) error) error {
	if err := e.calls.Enter(ctx, op); err != nil {
		return err
	}
	defer e.calls.Leave()
	c := e.call(ctx, op, scratches.Get().(*scratch))
	err := fn(c)
	c.free()
	if u, ok := errors.AsType[*store.UnreadableError](err); ok && !isShaped(err) {
		err = c.unreadable(engine.Ref{}, u)
	}
	if len(c.unnamed) > 0 {
		c.name()
	}
	if c.syncedTo > 0 {
		if werr := e.store.Log.Wait(ctx, c.syncedTo); werr != nil {
			err = werr
		}
	}
	if c.writtenTo > c.syncedTo {
		if werr := e.store.Log.WaitWritten(ctx, c.writtenTo); werr != nil {
			err = werr
		}
	}
	e.watchers.Hint(c.hints...)
	return wrap(op, err)
}

// step runs do under the lock, and again after store.ErrLack and errYield. The changes of each run
// are one entry of the log.
func (c *call) step(do func() error) error {
	c.reader.Trim()
	for {
		switch err := c.locked(do); err {
		case store.ErrLack:
			if err := c.withoutLock(c.reader.Read); err != nil {
				return err
			}
		case errYield:
		default:
			return err
		}
		if err := c.left(); err != nil {
			return err
		}
	}
}

// left returns the error of the call if the caller has left, else nil.
func (c *call) left() error {
	if err := c.ctx.Err(); err != nil {
		return &engine.Error{Op: c.op, Err: err, Hint: engine.HintUnknown}
	}
	return nil
}

// each handles n items in steps of as many as fit. An item that lacked something is handled
// again.
func (c *call) each(n int, item func(i int) error) error {
	for i := 0; i < n; {
		err := c.step(func() error {
			for k := 0; ; k++ {
				if err := c.trim(); err != nil || i == n || c.full(k) {
					return err
				}
				if err := item(i); err != nil {
					return err
				}
				i++
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *call) locked(do func() error) error {
	e := c.e
	defer c.tell()
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	if err := e.store.Failed(); err != nil {
		return broken(c.op, err)
	}
	c.now = e.cfg.Now()
	c.ms, c.least, c.written, c.visited = c.now.UnixMilli(), never, false, nil
	err := do()
	if fn := e.cfg.tune.stepped; fn != nil {
		fn(c)
	}
	if cerr := c.commit(); cerr != nil {
		return cerr
	}
	return err
}

// tell writes, without the lock, the log lines that a step left.
func (c *call) tell() {
	for _, fn := range c.later {
		fn()
	}
	c.later = nil
}

// damaged logs, after the step, that a message cannot be read. It stays where it is and is passed
// over.
func (c *call) damaged(q *queue, id engine.ID, err error) {
	c.later = append(c.later, func() {
		c.e.store.Slog.Error("tarry disk: a message cannot be read and is passed over; cancel it by its id to be rid of it",
			"queue", q.name, "id", id.String(), "error", err)
	})
}

// commit appends the changes of a step to the log.
func (c *call) commit() error {
	if len(c.group) == 0 {
		return nil
	}
	e := c.e
	pos, err := c.append()
	if err != nil {
		c.later = append(c.later, e.store.Stop(err)) // memory is ahead of the log
		return err
	}
	if c.written {
		c.writtenTo = pos
	} else {
		c.syncedTo = pos
	}
	for _, q := range c.touched {
		q.pos = pos
		c.hinted(q)
	}
	if c.least != never {
		e.fresh.add(pos, c.least, e.store.Log.Synced())
	}
	c.group, c.touched, c.least = c.group[:0], c.touched[:0], never
	e.store.Appended(pos)
	return nil
}

// append appends the records of a step to the log.
func (c *call) append() (wal.Pos, error) {
	if p := c.entry; p != nil {
		c.entry = nil
		return c.e.store.Log.AppendPrepared(record.Group, c.group[:c.before], p, c.group[c.before:])
	}
	return c.e.store.Log.Append(record.Group, c.group)
}

// full reports whether a step has done enough.
func (c *call) full(items int) bool {
	return items >= store.StepItems || len(c.group) >= store.StepBytes || c.entry != nil
}

// touch notes that the records of the step change a queue.
func (c *call) touch(q *queue) {
	if n := len(c.touched); n == 0 || c.touched[n-1] != q {
		c.touched = append(c.touched, q)
	}
}

// see makes the answer wait until the changes that a queue has now are durable.
func (c *call) see(q *queue) { c.syncedTo = max(c.syncedTo, q.pos) }

// withoutLock runs fn, which may hang in the operating system. The call's caller can leave it.
func (c *call) withoutLock(fn func() error) error {
	e := c.e
	if e.made.Left() >= calls.MaxLeft {
		return &engine.Error{Op: c.op, Err: engine.ErrUnavailable, Hint: "the disk does not answer: many calls wait for it whose callers left"}
	}
	if !e.calls.TryEnter() { // Close waits for calls that were left too
		return calls.Closed(c.op)
	}
	_, left, err := calls.Make(c.ctx, &e.made, 0, func(struct{}, error) { e.calls.Leave() },
		func() (struct{}, error) { return struct{}{}, fn() })
	if left {
		return &engine.Error{Op: c.op, Err: err, Hint: engine.HintUnknown}
	}
	e.calls.Leave()
	return err
}

// freshness knows the entries of the log that are not durable yet and made messages wait, each
// with the least due time. A lease has to wait only for entries with messages that it may have
// leased.
type freshness struct {
	of []arrival
}

type arrival struct {
	pos   wal.Pos
	least int64
}

func (f *freshness) add(pos wal.Pos, least int64, synced wal.Pos) {
	old := 0
	for old < len(f.of) && f.of[old].pos <= synced {
		old++
	}
	if old > 0 {
		f.of = f.of[:copy(f.of, f.of[old:])]
	}
	f.of = append(f.of, arrival{pos, least})
}

// lastBefore returns the last entry that made a message wait which is due by due; 0: all such
// entries are durable.
func (f *freshness) lastBefore(due int64) wal.Pos {
	for i := len(f.of) - 1; i >= 0; i-- {
		if f.of[i].least <= due {
			return f.of[i].pos
		}
	}
	return 0
}
