package dispatch

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// handed is a pending callback of a worker. A lease needs none: what concerns it goes straight
// into its answer.
type handed struct {
	s      *Subscription
	call   func()
	leases int // how many it passes on
}

// hand adds a pending callback. A worker's room stays reserved for the leases until it
// returns. Called with d.mu held.
func hand(all *[]handed, s *Subscription, leases int, call func()) {
	s.callbacks++
	s.onTheWay += leases
	*all = append(*all, handed{s, call, leases})
}

// deliver passes on leases for which there is room. Called with d.mu held.
func (d *Dispatcher) deliver(all *[]handed, s *Subscription, leases []engine.Lease, now, sent time.Time) {
	if !s.isLease() {
		hand(all, s, len(leases), func() { s.Deliver(leases, now, sent) })
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
		hand(all, s, 0, func() { s.Noted(queue, expired, died) })
	}
}

// fail reports that the engine could not be asked. Called with d.mu held.
func (d *Dispatcher) fail(all *[]handed, s *Subscription, err error) {
	if s.isLease() {
		s.answer.fail(err)
	} else {
		hand(all, s, 0, func() { s.Fail(err) })
	}
}

// tell makes the pending callbacks. Called without a lock.
func (d *Dispatcher) tell(all []handed) {
	if len(all) == 0 {
		return
	}
	for i := range all {
		all[i].call()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range all {
		s := all[i].s
		s.onTheWay -= all[i].leases
		s.callbacks--
	}
	d.handed.Broadcast()
}
