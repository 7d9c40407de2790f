package sqlengine

import (
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Cancel removes messages in one transaction; by id dead ones too.
func (e *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	if err := e.calls.Enter(ctx, "cancel"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	return gather(ctx, e, refs, cancelNeeds, func(some []engine.Ref, timeout LockTimeout) ([]error, error) {
		return e.cancel(ctx, some, timeout)
	}, func(ref *engine.Ref, err error) error { return engine.Refuse("cancel", *ref, err) })
}

// cancelNeeds returns what a cancel needs that others may have locked.
func cancelNeeds(ref *engine.Ref) lockKey {
	if ref.ID != 0 {
		return lockKey{id: ref.ID}
	}
	return lockKey{queue: ref.Queue, key: ref.Key}
}

// cancel is Cancel within a call already begun.
func (e *Engine) cancel(ctx context.Context, refs []engine.Ref, timeout LockTimeout) ([]error, error) {
	errs := make([]error, len(refs))
	nums, distinct, err := e.queuesOf(ctx, len(refs), func(i int) string { return refs[i].Queue }, false)
	if err != nil {
		return nil, err
	}
	for i, ref := range refs {
		if errs[i] = ref.Check("cancel"); errs[i] == nil && nums[i] == 0 {
			errs[i] = engine.Refuse("cancel", ref, engine.ErrNotFound)
		}
	}
	if len(distinct) == 0 {
		return errs, nil
	}
	refused := errs
	first := meant(refs, nums)
	first.Timeout = timeout
	err = e.do(ctx, "cancel", distinct, first, nil, func(w *work) error {
		errs = append([]error(nil), refused...)
		if err := w.findAgain(first.Names); err != nil {
			return err
		}
		for i, ref := range refs {
			if errs[i] == nil {
				errs[i] = engine.Refuse("cancel", ref, w.cancel(nums[i], ref))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

// meant returns the rows that refs name: by key only live ones.
func meant(refs []engine.Ref, nums []int64) (first First) {
	for i, ref := range refs {
		switch {
		case nums[i] == 0:
		case ref.ID == 0:
			first.Names = append(first.Names, Name{nums[i], ref.Key})
		case int64(ref.ID) > 0:
			first.IDs = append(first.IDs, ref.ID)
		}
	}
	first.IDs = sorted(first.IDs)
	slices.SortFunc(first.Names, byName)
	first.Names = slices.Compact(first.Names)
	return first
}

// at returns the message of a ref from the rows that were read; nil: there is none.
func (w *work) at(num int64, ref engine.Ref) *row {
	if ref.ID == 0 {
		if s := w.keys[Name{num, ref.Key}]; s != nil {
			return s.holder
		}
		return nil
	}
	if x := w.rows[ref.ID]; x != nil && x.Queue == num && !x.gone {
		return x
	}
	return nil
}

func (w *work) cancel(num int64, ref engine.Ref) error {
	x := w.at(num, ref)
	if x == nil {
		return engine.ErrNotFound
	}
	state := x.state(w.ms)
	if err := engine.RefuseState("cancel", ref, state); err != nil {
		return err
	}
	switch state {
	case engine.Leased:
		return engine.ErrLeased
	case engine.Dead:
		w.drop(x)
	default:
		x.by = ref.By
		w.leave(x, engine.Cancelled, w.ms)
	}
	return nil
}

// refer runs do in a transaction on the message of ref; nil: there is none. If do returns
// refused, the call fails with that as an engine.Error. The transaction still commits,
// because the message may have lapsed or expired.
func (e *Engine) refer(ctx context.Context, op string, ref engine.Ref, only condition, do func(*work, *row) (refused, err error)) error {
	if err := e.calls.Enter(ctx, op); err != nil {
		return err
	}
	defer e.calls.Leave()
	if err := ref.Check(op); err != nil {
		return err
	}
	num, err := e.number(ctx, ref.Queue, false)
	if err != nil {
		return err
	}
	if num == 0 {
		return engine.Refuse(op, ref, engine.ErrNotFound)
	}
	var refused error
	nums := []int64{num}
	first := meant([]engine.Ref{ref}, nums)
	err = e.do(ctx, op, nums, first, only, func(w *work) error {
		err := w.findAgain(first.Names)
		if err != nil {
			return err
		}
		refused, err = do(w, w.at(num, ref))
		return err
	})
	if err != nil {
		return err
	}
	return engine.Refuse(op, ref, refused)
}

// refuseUnlessWaiting returns the error of a call on x that needs a waiting message.
func (w *work) refuseUnlessWaiting(op string, ref engine.Ref, x *row) error {
	if x == nil {
		return engine.ErrNotFound
	}
	return engine.RefuseUnlessWaiting(op, ref, x.state(w.ms))
}

// Reschedule moves the due time of a scheduled or ready message.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	var info engine.Info
	err := e.refer(ctx, "reschedule", ref, nil, func(w *work, x *row) (refused, err error) {
		if refused = w.refuseUnlessWaiting("reschedule", ref, x); refused != nil {
			return refused, nil
		}
		x.renew()
		x.wait(due.Resolve(w.now))
		if x.Expires != never { // a redriven message never expires, whatever its policy
			x.Expires = rules.Expiry(x.Due, &x.Policy)
		}
		info = w.info(x)
		w.advance(x)
		return nil, nil
	})
	return info, err
}

// Claim leases the message of ref if it is due.
func (e *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	var lease engine.Lease
	var now time.Time
	err := e.refer(ctx, "claim", ref, boundsLeases, func(w *work, x *row) (refused, err error) {
		refuse := w.refuseUnlessReady
		if ref.IfState != engine.Gone {
			refuse = w.refuseUnlessIn
		}
		if refused, err = refuse(ref, x); refused != nil || err != nil {
			return refused, err
		}
		if refused, err = w.refuseClaim(x.Queue, ref); refused != nil || err != nil {
			return refused, err
		}
		x.Due = min(x.Due, w.ms)
		if x.Kind == Dead {
			w.revive(x)
			x.Expires = never
		}
		if err := w.tx.Bodies(w.ctx, []*Row{&x.Row}); err != nil {
			return nil, err
		}
		w.pass(x.Queue, 1)
		w.hold(x, want.TTR, want.Worker)
		now = w.now
		lease = engine.Lease{Info: w.leased(x), Token: codec.Token{Queue: uint64(x.Queue), ID: x.ID, Nonce: *x.Nonce}.String()}
		return nil, nil
	})
	if err == nil && !want.Remote {
		e.held.Add(&lease, struct{}{}, now)
	}
	return lease, err
}

// refuseUnlessReady returns the error of a claim of a message that is not due.
func (w *work) refuseUnlessReady(ref engine.Ref, x *row) (refused, err error) {
	if refused = w.refuseUnlessWaiting("claim", ref, x); refused != nil {
		return refused, nil
	}
	switch {
	case x.Due > w.ms:
		return engine.RefuseNotDue(ref, rules.Instant(x.Due)), nil
	case w.queues[x.Queue].Paused != 0:
		return engine.RefuseNotDue(ref, time.Time{}), nil
	}
	return nil, nil
}

// refuseUnlessIn returns the error of a claim of a message that is not in the state IfState. It
// reads the key of a dead one.
func (w *work) refuseUnlessIn(ref engine.Ref, x *row) (refused, err error) {
	if x == nil {
		return engine.RefuseClaimIf(ref, engine.Gone), nil
	}
	if refused = engine.RefuseClaimIf(ref, x.state(w.ms)); refused != nil || x.Kind != Dead || x.Key == "" {
		return refused, nil
	}
	name := Name{x.Queue, x.Key}
	if err := w.find([]Name{name}); err != nil {
		return nil, err
	}
	if err := w.boundDead(); err != nil { // the holder of the key may have died
		return nil, err
	}
	switch {
	case x.gone:
		return engine.RefuseClaimIf(ref, engine.Gone), nil
	case w.keys[name].holder != nil:
		return engine.RefuseTaken(ref), nil
	}
	return nil, nil
}

// refuseClaim returns the error of a claim that the queue's settings do not allow now.
func (w *work) refuseClaim(q int64, ref engine.Ref) (refused, err error) {
	may, err := w.grantable(q, 1)
	if err != nil || may > 0 {
		return nil, err
	}
	s := &w.queues[q].Settings
	if s.InFlight > 0 {
		leased, err := w.tx.Holding(w.ctx, q, w.ms)
		if err != nil {
			return nil, err
		}
		if leased >= s.InFlight {
			return engine.RefuseClaim(ref, time.Time{}), nil
		}
	}
	return engine.RefuseClaim(ref, rules.Instant(w.nextAllowed(q))), nil
}

// Get looks a message up, with its body.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	const op = "get"
	if err := e.calls.Enter(ctx, op); err != nil {
		return engine.Info{}, err
	}
	defer e.calls.Leave()
	if err := ref.Check(op); err != nil {
		return engine.Info{}, err
	}
	num, err := e.number(ctx, ref.Queue, false)
	if err != nil {
		return engine.Info{}, err
	}
	var info engine.Info
	refused := engine.ErrNotFound
	if num != 0 {
		err = e.look(ctx, op, []int64{num}, First{}, func(w *work) error {
			found, err := w.get(num, ref)
			if found != nil {
				info, refused = *found, nil
			}
			return err
		})
	}
	if err != nil {
		return engine.Info{}, err
	}
	return info, engine.Refuse(op, ref, refused)
}

// get returns the info of the message of ref; nil: there is none.
func (w *work) get(num int64, ref engine.Ref) (*engine.Info, error) {
	if ref.ID != 0 {
		past, err := w.byID(num, ref.ID)
		if past == nil || err != nil {
			return nil, err
		}
		return w.show(past, nil)
	}
	name := Name{num, ref.Key}
	s := new(keyState)
	w.keys[name] = s
	rows, memories, err := w.tx.ByKey(w.ctx, []Name{name}, None, true)
	if err != nil {
		return nil, err
	}
	w.remember(memories)
	var past *row
	if len(rows) > 0 {
		if past = w.adopt(rows)[0]; !past.gone {
			return w.whole(past)
		}
	}
	switch m := s.memory; {
	case past != nil && w.lists(past): // it has just expired
	case m == nil:
		past, err = w.lastEnded(name)
	case past == nil && w.listedFrom(num).At != never:
		past, err = w.byID(num, m.ID)
	}
	if err != nil {
		return nil, err
	}
	return w.show(past, s.memory)
}

// byID reads a message; nil: there is none.
func (w *work) byID(num int64, id engine.ID) (*row, error) {
	if int64(id) < 0 {
		return nil, nil
	}
	rows, err := w.tx.ByID(w.ctx, []engine.ID{id}, None, true)
	if err != nil || len(rows) == 0 || rows[0].Queue != num {
		return nil, err
	}
	return w.adopt(rows)[0], nil
}

// show returns what is known of a message and its key; nil: nothing.
func (w *work) show(x *row, m *Memory) (*engine.Info, error) {
	known := x != nil && (!x.gone || w.lists(x))
	switch {
	case known && m == nil:
		return w.whole(x)
	case known:
		i := w.info(x)
		i.Forgotten = rules.Instant(m.Forgotten)
		return &i, nil
	case m != nil:
		return new(m.info(w.queues[m.Queue].Name)), nil
	}
	return nil, nil
}

// whole returns the info of a row with its body, however large.
func (w *work) whole(x *row) (*engine.Info, error) {
	if x.Size > len(x.Content.Body) {
		if err := w.tx.Bodies(w.ctx, []*Row{&x.Row}); err != nil {
			return nil, err
		}
	}
	return new(w.info(x)), nil
}
