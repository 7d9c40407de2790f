package sqlengine

import (
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// kindOf returns the kind of a waiting message.
func kindOf(p *engine.Policy) Kind {
	if p.Priority == engine.DefaultPriority {
		return Waiting
	}
	return Ranked
}

// state returns the state at ms of a row that advance has brought up to date.
func (x *row) state(ms int64) engine.State {
	switch {
	case x.Kind == Finished:
		return engine.Finished
	case x.gone:
		return engine.Gone
	case x.Kind == Dead:
		return engine.Dead
	case x.Kind == Leased:
		return engine.Leased
	case x.Due > ms:
		return engine.Scheduled
	}
	return engine.Ready
}

// token is that of the last lease, while it settles; zero: none does.
func (x *row) token() codec.Token {
	if x.Nonce == nil {
		return codec.Token{}
	}
	return codec.Token{Queue: uint64(x.Queue), ID: x.ID, Nonce: *x.Nonce}
}

// live reports whether a row holds its key.
func (x *row) live() bool { return !x.gone && x.Kind < Dead }

// advance brings a row up to date: leases lapse and messages expire. If the work has not
// locked the row, that only affects what callers see.
func (w *work) advance(x *row) {
	if x.Kind == Leased && x.Ends <= w.ms {
		x.fail(x.Ends, engine.Lapsed)
		if x.Attempt >= x.Policy.MaxAttempts {
			w.freeKey(x)
			x.Kind = Dead // since its deadline
			w.queues[x.Queue].died = true
			w.queues[x.Queue].endings.died++
		} else {
			x.wait(x.Due)
		}
	}
	switch {
	case x.Kind == Finished:
		x.gone = true
	case x.Kind == Dead:
		x.gone = x.Ends < w.queues[x.Queue].keeps(w.ms)
	case x.Kind != Leased && x.Expires < w.ms:
		w.queues[x.Queue].endings.expired++
		w.leave(x, engine.Expired, x.Expires)
	}
}

// wait makes a row wait for a due time.
func (x *row) wait(due int64) {
	x.Kind, x.Ends, x.Due, x.Worker = kindOf(&x.Policy), due, due, ""
}

// fail records that the lease of a row failed at an instant.
func (x *row) fail(at int64, reason string) {
	f := engine.Failure{At: rules.Instant(at), Attempt: x.Attempt, Worker: x.Worker, Reason: reason}
	x.Failures, x.Worker = codec.AddFailure(x.Failures, &f), ""
}

// lapsedFrom returns the worker of a lease that lapsed, and whose token still settles.
func (x *row) lapsedFrom() string {
	r := codec.Reader{B: x.Failures}
	if all := r.Failures(); len(all) > 0 {
		return all[len(all)-1].Worker
	}
	return ""
}

// die makes a row dead.
func (w *work) die(x *row, reason string) {
	w.freeKey(x)
	w.queues[x.Queue].died = true
	x.fail(w.ms, reason)
	x.Kind, x.Ends, x.Nonce = Dead, w.ms, nil
}

// renew resets a message: no attempts, and no old token settles.
func (x *row) renew() { x.Attempt, x.Nonce = 0, nil }

// drop removes a message without a memory.
func (w *work) drop(x *row) {
	w.freeKey(x)
	x.gone = true
}

// leave drops a message that ended in this way, or lists it in the history; its key may be
// remembered. The key of a dead message must have been read before.
func (w *work) leave(x *row, how engine.Ending, ended int64) {
	wasLive := x.live()
	w.drop(x)
	w.list(x, how, ended)
	until := ended + rules.Millis(x.Policy.Remember)
	if x.Key == "" || x.Policy.Remember <= 0 || until <= w.ms {
		return
	}
	s := w.keys[Name{x.Queue, x.Key}]
	if !wasLive && s.holder != nil {
		return // the key now belongs to another message
	}
	x.late = !wasLive
	s.memory = &Memory{Name{x.Queue, x.Key}, x.ID, x.Due, how, ended, until}
}

// remembers records that a queue has messages with remember, before it has a memory.
func (q *queue) remembers() {
	if !q.Remembers {
		q.Remembers, q.dirty = true, true
	}
}

// revive gives a dead message its key back. It reports false if another message holds the key,
// which was read before.
func (w *work) revive(x *row) bool {
	if x.Key == "" {
		return true
	}
	s := w.keys[Name{x.Queue, x.Key}]
	if s.holder != nil {
		return false
	}
	s.holder, s.memory = x, nil
	return true
}

// info returns the Info of a row.
func (w *work) info(x *row) engine.Info {
	i := w.leased(x)
	r := codec.Reader{B: x.Failures}
	i.Failures = r.Failures()
	return i
}

// leased is info without Failures.
func (w *work) leased(x *row) engine.Info {
	i := engine.Info{
		ID: x.ID, Queue: w.queues[x.Queue].Name, Key: x.Key, State: x.state(w.ms),
		Due: rules.Instant(x.Due), Created: rules.Instant(x.Created / 1000), Expires: rules.Instant(x.Expires), Attempt: x.Attempt,
		Content: x.Content, Policy: x.Policy, LastError: string(codec.LastReason(x.Failures)), Worker: x.Worker,
	}
	i.Backoff = slices.Clone(i.Backoff)
	switch i.State {
	case engine.Leased:
		i.Deadline, i.Started = rules.Instant(x.Ends), x.started()
	case engine.Finished:
		x.ended(&i)
	case engine.Dead:
		i.Died = rules.Instant(x.Ends)
	}
	return i
}

func (m *Memory) info(queue string) engine.Info {
	return engine.Info{
		ID: m.ID, Queue: queue, Key: m.Key, State: engine.Finished, Due: rules.Instant(m.Due),
		Ending: m.Ending, Ended: rules.Instant(m.Ended), Forgotten: rules.Instant(m.Forgotten),
	}
}
