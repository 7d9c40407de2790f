package tarry

import (
	"sync"
	"time"

	"github.com/tarryhq/tarry/internal/work"
)

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events. Settlements are reported once the engine has confirmed them.
const (
	Started      = EventKind(work.Started)      // its handler is about to run
	Acked        = EventKind(work.Acked)        // handled
	Dropped      = EventKind(work.Dropped)      // its guard returned false
	Retried      = EventKind(work.Retried)      // failed; comes back at Until
	Snoozed      = EventKind(work.Snoozed)      // postponed to Until
	Released     = EventKind(work.Released)     // returned unhandled: the worker drains, or the lease was too old to start
	Buried       = EventKind(work.Buried)       // dead because its handler returned Bury
	Died         = EventKind(work.Died)         // dead because its attempts are used up
	Expired      = EventKind(work.Expired)      // dropped because it was past its ExpireAfter
	LeaseLost    = EventKind(work.LeaseLost)    // the lease was lost before the handler began, while it ran, or before it could be settled
	EngineFailed = EventKind(work.EngineFailed) // the engine could not be reached, for leases or for a settlement
	SelfSettled  = EventKind(work.SelfSettled)  // its handler returned Settled
	Stuck        = EventKind(work.Stuck)        // its handler has not returned 5 s after the end of its context
	Unstuck      = EventKind(work.Unstuck)      // its stuck handler has returned
	Unconfirmed  = EventKind(work.Unconfirmed)  // its result was sent, but may not have counted: see ErrUnconfirmed
)

// String returns the kind's name in lower case.
func (k EventKind) String() string { return work.Kind(k).String() }

// Event is what a worker's observer gets. Fields that do not apply to its kind are zero.
type Event struct {
	Kind     EventKind
	Queue    string
	ID       ID
	Key      string
	Attempt  uint32
	Due      time.Time
	Until    time.Time     // Retried, Snoozed: when it comes back
	Lateness time.Duration // from its due time to the start of the handler, by the engine's clock
	Duration time.Duration // how long the handler ran
	Count    int           // messages: 1, or more for Expired and Died of messages that no handler saw
	Err      error         // what the handler returned, or what failed
}

// eventOf converts an event of a worker.
func eventOf(e *work.Event) Event {
	return Event{
		Kind: EventKind(e.Kind), Queue: e.Queue, ID: e.ID, Key: e.Key, Attempt: e.Attempt, Due: e.Due, Until: e.Until,
		Lateness: e.Lateness, Duration: e.Duration, Count: e.Count, Err: e.Err,
	}
}

var someEvents = sync.Pool{New: func() any { return new([work.EventsAtOnce]Event) }}

// handled passes events of a worker to the meter.
func (m *Meter) handled(events []work.Event) {
	some := someEvents.Get().(*[work.EventsAtOnce]Event)
	for len(events) > 0 {
		n := min(len(events), len(some))
		for i := range events[:n] {
			some[i] = eventOf(&events[i])
		}
		m.Handled(some[:n])
		clear(some[:n])
		events = events[n:]
	}
	someEvents.Put(some)
}
