package sqlengine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/internal/calls"
)

// Push stores each message or applies its conflict policy, in one transaction.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := e.calls.Enter(ctx, "push"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	results, err := gather(ctx, e, msgs, e.pushNeeds, func(some []engine.Message, timeout LockTimeout) ([]engine.PushResult, error) {
		return e.push(ctx, some, timeout, false)
	}, func(m *engine.Message, err error) engine.PushResult {
		return engine.PushResult{Err: engine.Refuse("push", engine.Ref{Queue: m.Queue, Key: m.Key}, err)}
	})
	if err == nil && e.cfg.later == nil { // as in Settle
		e.held.Replaced(msgs, results)
	}
	return results, err
}

// pushNeeds returns the lock for which a push may have to wait: of its key, or of the whole
// queue if that has max_pending.
func (e *Engine) pushNeeds(m *engine.Message) lockKey {
	switch num := e.names.of([]string{m.Queue}); {
	case num[0] != 0 && len(e.cache.withSettings(num, boundsPending)) > 0:
		return lockKey{queue: m.Queue}
	case m.Key == "":
		return lockKey{}
	}
	return lockKey{queue: m.Queue, key: m.Key}
}

// PushAtomic stores all messages or none, even in several queues.
func (e *Engine) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := e.calls.Enter(ctx, "push"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	if err := engine.CheckAtomic(msgs); err != nil {
		return nil, err
	}
	results, err := e.push(ctx, msgs, NoTimeout, true)
	if err == nil && e.cfg.later == nil { // as in Settle
		e.held.Replaced(msgs, results)
	}
	return results, err
}

// errRefused rolls back an atomic push with a refused message.
var errRefused = fmt.Errorf("%w: a message is refused", ErrInternal)

func (e *Engine) push(ctx context.Context, msgs []engine.Message, timeout LockTimeout, atomic bool) ([]engine.PushResult, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	nums, distinct, err := e.queuesOf(ctx, len(msgs), func(i int) string { return msgs[i].Queue }, true)
	if err != nil {
		return nil, err
	}
	ids, err := e.take(ctx, len(msgs))
	if err != nil {
		return nil, err
	}
	results := make([]engine.PushResult, len(msgs))
	var names []Name
	for i := range msgs {
		if msgs[i].Key != "" {
			names = append(names, Name{nums[i], msgs[i].Key})
		}
	}
	slices.SortFunc(names, byName)
	names = slices.Compact(names)
	var refused error
	push := func(w *work) error {
		if err := w.boundDead(); err != nil {
			return err
		}
		room, err := w.pendingRoom()
		if err != nil {
			return err
		}
		refused = nil
		for i := range msgs {
			results[i] = w.push(nums[i], ids[i], &msgs[i], room)
			refused = cmp.Or(refused, results[i].Err)
		}
		if atomic && refused != nil {
			return errRefused
		}
		return nil
	}
	err = e.do(ctx, "push", distinct, First{Names: names, Timeout: timeout}, boundsPending, push)
	if err == errRefused {
		for i := range results {
			if results[i].Err == nil {
				results[i] = engine.PushResult{}
			}
		}
		return results, refused
	}
	if err != nil {
		e.ids.drop()
		return nil, err
	}
	return results, nil
}

// tellWithin is how soon a message must be due for a notice. Other processes find later ones
// without it: their whole looks come more often.
const tellWithin = 2 * lookMost

// tells reports whether others get a notice of a message that is due at an instant. With a
// test's clock, which may jump there, they always do.
func (e *Engine) tells(at, ms int64) bool {
	return e.cfg.Now != nil || at <= ms+tellWithin.Milliseconds()
}

// queuesOf returns the queue number of each of n items, with 0 for a queue that does not
// exist, and the distinct numbers other than 0.
func (e *Engine) queuesOf(ctx context.Context, n int, of func(int) string, create bool) (each, distinct []int64, err error) {
	var names []string
	var items [][]int
	for name, at := range calls.GroupBy(n, of) {
		names, items = append(names, name), append(items, at)
	}
	numbers, err := e.numbers(ctx, names, create)
	if err != nil {
		return nil, nil, err
	}
	each = make([]int64, n)
	for k, num := range numbers {
		for _, i := range items[k] {
			each[i] = num
		}
		if num != 0 {
			distinct = append(distinct, num)
		}
	}
	return each, distinct, nil
}

func boundsPending(s *engine.Settings) bool { return s.MaxPending > 0 }

// pendingRoom returns how many more live messages each queue with max_pending takes.
func (w *work) pendingRoom() (map[int64]int64, error) {
	room := make(map[int64]int64)
	for num, h := range w.queues {
		if !boundsPending(&h.Settings) {
			continue
		}
		s, err := w.tx.Stock(w.ctx, []int64{num}, w.ms)
		if err != nil {
			return nil, err
		}
		room[num] = h.Settings.MaxPending - s[num].Waiting - s[num].Leased
	}
	return room, nil
}

// push pushes one message to a queue, if there is room.
func (w *work) push(num int64, id engine.ID, in *engine.Message, room map[int64]int64) engine.PushResult {
	h := w.queues[num]
	ref := engine.Ref{Queue: in.Queue, Key: in.Key}
	if most := w.e.cfg.MaxBody; len(in.Body) > most {
		return engine.PushResult{Err: &engine.Error{Op: "push", Queue: in.Queue, Key: in.Key, Err: engine.ErrTooLarge,
			Hint: fmt.Sprintf("a body has at most %d bytes in %s; keep a larger one elsewhere and send its address", most, w.e.cfg.Name)}}
	}
	var s *keyState
	var holder rules.Holder
	if in.Key != "" {
		s = w.keys[Name{num, in.Key}]
		holder = s.holds(w.ms)
	}
	switch o, err := rules.Push(in, &holder); {
	case o == engine.Replaced:
		return w.replace(s.holder, in)
	case o != engine.Created:
		r := s.result(w.ms)
		r.Outcome, r.Err = o, err
		return r
	case err != nil:
		return engine.PushResult{Err: err}
	}
	if left, bounded := room[num]; bounded && left <= 0 {
		return engine.PushResult{Err: engine.RefusePending(ref, h.Settings.MaxPending)}
	} else if bounded {
		room[num] = left - 1
	}
	x := &row{Row: Row{ID: id, Queue: num, Key: in.Key, Created: w.now.UnixMicro()}}
	w.fill(x, in)
	x.wait(in.Due.Resolve(w.now))
	x.Expires = rules.Expiry(x.Due, &x.Policy)
	w.enter(x)
	if s != nil {
		s.holder, s.memory = x, nil
	}
	r := x.result(w.ms)
	r.Outcome = engine.Created
	if w.advance(x); x.gone { // it expired before it was pushed
		if _, bounded := room[num]; bounded {
			room[num]++
		}
	}
	return r
}

// fill sets the policy and content of a row from a push.
func (w *work) fill(x *row, in *engine.Message) {
	x.Policy = in.Resolve(&w.queues[x.Queue].Settings.Defaults)
	x.Content, x.Size, x.whole = in.Content, len(in.Body), true
	if x.Policy.Remember > 0 && x.Key != "" {
		w.queues[x.Queue].remembers()
	}
}

// holds returns what a push has to know of what has a key.
func (s *keyState) holds(ms int64) (h rules.Holder) {
	switch {
	case s.holder != nil:
		h.State, h.Lease = s.holder.state(ms), s.holder.token()
	case s.memory != nil:
		h.State, h.Ending, h.Ended = engine.Finished, s.memory.Ending, s.memory.Ended
	}
	return h
}

// replace gives the message with the key of a push what the push says.
func (w *work) replace(x *row, in *engine.Message) engine.PushResult {
	if in.OnConflict != engine.Rearm {
		w.fill(x, in)
	}
	due := x.Due
	if in.OnConflict != engine.KeepDue {
		due = in.Due.Resolve(w.now)
	}
	x.renew()
	x.wait(due)
	x.Expires = rules.Expiry(due, &x.Policy)
	r := x.result(w.ms)
	r.Outcome = engine.Replaced
	w.advance(x)
	return r
}

// result describes a live row for a push.
func (x *row) result(ms int64) engine.PushResult {
	return engine.PushResult{ID: x.ID, Due: rules.Instant(x.Due), State: x.state(ms)}
}

// result describes what has a key for a push that changes nothing.
func (s *keyState) result(ms int64) engine.PushResult {
	if s.holder != nil {
		return s.holder.result(ms)
	}
	m := s.memory
	return engine.PushResult{ID: m.ID, Due: rules.Instant(m.Due), State: engine.Finished, Ending: m.Ending, Ended: rules.Instant(m.Ended)}
}
