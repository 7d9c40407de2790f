package engine

import (
	"context"
	"time"
)

// LeaseWaiter is for engines whose other side can wait: the root package then
// waits in this call instead of sleeping until NextDue.
type LeaseWaiter interface {
	// LeaseWait leases what is due in any of some queues, and waits for the first
	// message. Who waits for many queues does so again and again for the same ones; what
	// such a call costs should then follow from what it brings and not from what it names.
	// When ctx ends it returns soon: with what the other side has leased for it, or with an
	// error, and then what the other side leases meanwhile is given back. Either way no
	// lease is left to nobody.
	LeaseWait(ctx context.Context, w Wait) (Waited, error)
}

// Wait is what LeaseWait waits for.
type Wait struct {
	Queues []string       // at least one, each once
	Max    int            // messages of all queues together, at least 1
	Room   map[string]int // how many of a queue, where that is less than Max; 0: none
	For    time.Duration  // how long for the first; 0: it asks, and does not wait
	TTR    time.Duration  // how long the leases last; 0: each message's own TTR
	Remote bool           // as in a Want
}

// Waited is the answer of LeaseWait.
type Waited struct {
	Messages []Lease
	Now      time.Time // the engine's clock, as in a Grant
	NextDue  time.Time // when no message came: when there may be one; zero: nothing known
	Told     []Told    // of queues of which there is more to tell

	// Waited is how long the call had waited when the other side leased the messages, or
	// less: their leases last from then on. 0: not known.
	Waited time.Duration
}

// Told is what Waited tells of a queue beside its messages.
type Told struct {
	Queue   string
	Expired int   // as in Granted
	Died    int   // likewise
	Held    bool  // more of it was found ready, and held back by its settings
	Err     error // it could not be asked
}
