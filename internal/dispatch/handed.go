package dispatch

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// handed is a pending callback of a worker. It passes on leases, the number of messages that
// ended in a queue, or why the engine could not be asked. A lease needs no callback: these
// go straight into its answer.
type handed struct {
	s             *Subscription
	leases        []engine.Lease
	now, sent     time.Time
	queue         string
	expired, died int
	err           error
}

// hand adds a pending callback. Called with d.mu held.
func hand(all *[]handed, h handed) {
	h.s.callbacks++
	*all = append(*all, h)
}

// deliver passes on leases for which there is room. A worker's room stays reserved until
// its callback returns. Called with d.mu held.
func (d *Dispatcher) deliver(all *[]handed, s *Subscription, leases []engine.Lease, now, sent time.Time) {
	if !s.isLease() {
		s.onTheWay += len(leases)
		hand(all, handed{s: s, leases: leases, now: now, sent: sent})
		return
	}
	if s.answer.add(leases, now, sent); !s.answer.ended {
		s.wake()
	}
}

// note reports how many messages ended in a queue. Called with d.mu held.
func (d *Dispatcher) note(all *[]handed, s *Subscription, queue string, expired, died int) {
	if s.isLease() {
		s.answer.noted(queue, expired, died)
	} else {
		hand(all, handed{s: s, queue: queue, expired: expired, died: died})
	}
}

// fail reports that the engine could not be asked. Called with d.mu held.
func (d *Dispatcher) fail(all *[]handed, s *Subscription, err error) {
	if s.isLease() {
		s.answer.fail(err)
	} else {
		hand(all, handed{s: s, err: err})
	}
}

// tell makes the pending callbacks. Called without a lock.
func (d *Dispatcher) tell(all []handed) {
	if len(all) == 0 {
		return
	}
	for i := range all {
		switch h := &all[i]; {
		case h.err != nil:
			h.s.Fail(h.err)
		case h.leases != nil:
			h.s.Deliver(h.leases, h.now, h.sent)
		default:
			h.s.Noted(h.queue, h.expired, h.died)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range all {
		s := all[i].s
		s.onTheWay -= len(all[i].leases)
		s.callbacks--
	}
	d.handed.Broadcast()
}
