package diskengine

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/engine/internal/gate"
	"github.com/tarryhq/tarry/internal/leave"
)

// call is one call of the engine while it is carried out: in steps under the lock, each of
// which is one entry of the log, with reading of sstables in between.
type call struct {
	e   *Engine
	ctx context.Context
	op  string

	// Of the step:
	now      time.Time
	ms       int64
	*scratch               // whose group is the records
	entry    *wal.Prepared // a body that follows those before; nil: none does
	before   int           // bytes of group
	visited  *queue        // the last that was brought up to the present
	least    int64         // the least due of what they made wait; never: none
	written  bool          // it will do that they are written when the call is answered, not synced

	// Of the push under way whose body is large: that body where it will be. An entry that has it takes it.
	ahead    *memtable.Ahead
	prepared *wal.Prepared

	older  olderBody // for how many bytes of bodies that pushes keep it was let in, and has not used
	over   *queue    // one in which a message has died: there may be too many dead ones
	hints  []string
	rests  wal.Pos // up to where the log is to be durable when the call is answered
	writes wal.Pos // and up to where written
	lacks  lacks
	found  found
	kept   []byte // of pictures

	unnamed []unnamed
	later   []func() // what is logged once the lock is released: a logger may block
}

// never is the time that does not come.
const never = record.Never

// do carries out a call. What it answers is durable then.
func (e *Engine) do(ctx context.Context, op string, fn func(c *call) error) error {
	if err := e.calls.Enter(ctx, op); err != nil {
		return err
	}
	defer e.calls.Leave()
	c := &call{e: e, ctx: ctx, op: op, least: never, scratch: scratches.Get().(*scratch)}
	err := fn(c)
	c.free()
	if u, ok := errors.AsType[*unreadableError](err); ok && !isShaped(err) {
		err = c.unreadable(engine.Ref{}, u)
	}
	if len(c.unnamed) > 0 {
		c.name()
	}
	if c.rests > 0 {
		if werr := e.log.Wait(ctx, c.rests); werr != nil {
			err = werr
		}
	}
	if c.writes > c.rests {
		if werr := e.log.WaitWritten(ctx, c.writes); werr != nil {
			err = werr
		}
	}
	e.watchers.Hint(c.hints...)
	return wrap(op, err)
}

// step runs do under the lock, again when it lacked something, until it returns something else.
// What do has changed by then is one entry of the log each time.
func (c *call) step(do func() error) error {
	c.found.trim()
	for {
		switch err := c.locked(do); err {
		case errLack:
			if err := c.read(); err != nil {
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

// left is the error of a call that its caller has left; nil: it has not.
func (c *call) left() error {
	if err := c.ctx.Err(); err != nil {
		return &engine.Error{Op: c.op, Err: err, Hint: engine.HintUnknown}
	}
	return nil
}

// each handles n items in steps, as many in each as it takes. An item that lacked something is handled
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
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failed(); err != nil {
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

// tell logs, outside the lock, what a step left to be logged.
func (c *call) tell() {
	for _, fn := range c.later {
		fn()
	}
	c.later = nil
}

// damaged has it logged that a message cannot be read.
func (c *call) damaged(q *queue, id engine.ID, err error) {
	c.later = append(c.later, func() { c.e.damaged(q.name, id, err) })
}

// commit appends to the log what a step has changed.
func (c *call) commit() error {
	if len(c.group) == 0 {
		return nil
	}
	e := c.e
	pos, err := c.append()
	if err != nil {
		c.later = append(c.later, e.stop(err)) // memory is ahead of the log
		return err
	}
	if c.written {
		c.writes = pos
	} else {
		c.rests = pos
	}
	for _, q := range c.touched {
		q.pos = pos
		c.hinted(q)
	}
	if c.least != never {
		e.fresh.add(pos, c.least, e.log.Synced())
	}
	c.group, c.touched, c.least = c.group[:0], c.touched[:0], never
	if uint64(pos) >= e.lookAt || e.memtables.Loose() >= e.cfg.tune.memtable/mostLoose {
		e.lookAt = uint64(pos) + uint64(min(e.cfg.tune.span, e.cfg.tune.memtable)/16)
		_, _ = e.compactor.assess()
		e.compactor.wake()
	}
	return nil
}

// append appends what a step has changed to the log.
func (c *call) append() (wal.Pos, error) {
	if p := c.entry; p != nil {
		c.entry = nil
		return c.e.log.AppendPrepared(record.Group, c.group[:c.before], p, c.group[c.before:])
	}
	return c.e.log.Append(record.Group, c.group)
}

const (
	// A step handles so many items, or bytes, before it lets others in.
	stepItems = 256
	stepBytes = 256 << 10
)

// full says that a step has done enough.
func (c *call) full(items int) bool {
	return items >= stepItems || len(c.group) >= stepBytes || c.entry != nil
}

// touch notes that the records of the step change a queue.
func (c *call) touch(q *queue) {
	if n := len(c.touched); n == 0 || c.touched[n-1] != q {
		c.touched = append(c.touched, q)
	}
}

// see has the answer rest on what a queue is now.
func (c *call) see(q *queue) { c.rests = max(c.rests, q.pos) }

// after is the instant d from now.
func (c *call) after(d time.Duration) int64 { return engine.When{In: d}.Resolve(c.now) }

// apart carries out what may hang in the operating system, which its caller can leave.
func (c *call) apart(fn func() error) error {
	e := c.e
	if e.made.Left() >= leave.Most {
		return &engine.Error{Op: c.op, Err: engine.ErrUnavailable, Hint: "the disk does not answer: many calls wait for it whose callers left"}
	}
	if !e.calls.TryEnter() { // Close waits for calls that were left too
		return gate.Closed(c.op)
	}
	_, left, err := leave.Make(c.ctx, &e.made, 0, func(struct{}, error) { e.calls.Leave() },
		func() (struct{}, error) { return struct{}{}, fn() })
	if left {
		return &engine.Error{Op: c.op, Err: err, Hint: engine.HintUnknown}
	}
	e.calls.Leave()
	return err
}

// freshness knows of the entries of the log that are not durable yet which of them made something
// wait that is due by some time: a lease rests on those alone.
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

// rests is the last entry that made something wait which is due by then; 0: there is none that
// is not durable.
func (f *freshness) rests(due int64) wal.Pos {
	for i := len(f.of) - 1; i >= 0; i-- {
		if f.of[i].least <= due {
			return f.of[i].pos
		}
	}
	return 0
}
