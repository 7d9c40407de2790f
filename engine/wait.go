package engine

import (
	"context"
	"time"
)

// LeaseWaiter is for engines that can wait, such as a server: the root package then waits
// in this call instead of sleeping until NextDue.
type LeaseWaiter interface {
	// LeaseWait leases messages that are due in any of the queues, and waits for the first.
	// Callers repeat it for the same queues, so its cost should depend on the messages and
	// not on the number of queues. When ctx ends it returns soon, either with the messages
	// leased by then, or with an error, and then it releases those messages. Either way no
	// lease is left without an owner.
	LeaseWait(ctx context.Context, w Wait) (Waited, error)
}

// Wait is what LeaseWait waits for.
type Wait struct {
	Queues []string       // at least one, each once
	Max    int            // most messages over all queues, at least 1
	Room   map[string]int // a lower maximum for single queues; 0: none
	For    time.Duration  // how long to wait for the first message; 0: do not wait
	TTR    time.Duration  // how long the leases last; 0: each message's own TTR
	Remote bool           // as in a Want
	Worker string         // likewise
}

// Waited is the answer of LeaseWait.
type Waited struct {
	Messages []Lease
	Now      time.Time // the engine's clock, after the messages were leased
	NextDue  time.Time // if there are no messages: when the next may be due; zero: unknown
	Told     []Told    // what else is known of single queues

	// Waited is how long the call waited, or less, before it requested the first of the
	// messages. Their leases last from then on by the caller's clock. 0: unknown.
	Waited time.Duration
}

// Told reports on a queue besides its messages.
type Told struct {
	Queue   string
	Expired int   // messages dropped past their ExpireAfter, unleased; reported to one caller
	Died    int   // messages that died as their last lease lapsed; reported to one caller
	Held    bool  // more messages are ready, but held back by Settings.InFlight or Rate
	Err     error // of LeaseWait: why the queue could not be asked
}
