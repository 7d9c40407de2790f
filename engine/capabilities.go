package engine

import (
	"fmt"
	"slices"
	"time"
)

// Capabilities says what an engine can do, what bounds it, and how it likes to be used.
type Capabilities struct {
	Name string // "mem", "disk", …
	Abilities
	Limits
	Tuning
}

// Abilities are what an engine can do. False means that the calls concerned fail with
// ErrUnsupported.
type Abilities struct {
	Durable      bool // an answered push survives kill -9 of this process
	Keys         bool // keys: cancel, look-up, reschedule and conflict policies by key
	Priority     bool // messages that are ready go out by their priority; else by due time alone
	Expiry       bool // Policy.ExpireAfter
	Cancel       bool
	Reschedule   bool
	Get          bool
	Extend       bool
	GiveBack     bool // snooze and release give the attempt back; else it counts
	RemoteLeases bool // Want.Remote: leases that another process settles
	Claim        bool // Claimer
	List         bool // Lister
	ListDead     bool // Lister of the dead alone, where List is false
	Count        bool // Counter
	Forecast     bool // Forecaster
	Pause        bool // Pauser
	Purge        bool // Purger
	Redrive      bool // Redriver
	Range        bool // ListQuery.From, To and Newest
	IfState      bool // Ref.IfState
	Remember     bool // Policy.Remember
	Isolate      bool // Policy.Isolate
	Settings     bool // Configurer
	Atomic       bool // AtomicPusher
	LeaseWait    bool // LeaseWaiter
	Foresight    bool // Granted.NextDue counts the dues of all that is scheduled; else only what this engine knows of
}

// Limits bound what an engine takes.
type Limits struct {
	MaxBody    int             // bytes; 0: no limit of the engine's own
	MaxPending int64           // live messages; 0: none
	MaxDelay   time.Duration   // from a push or reschedule to the due time; 0: none
	Delays     []time.Duration // the only delays there are, ascending; empty: any
	Precision  time.Duration   // of due times
	Window     int             // ready messages of a queue among which the order is exact; 1: they go out as they fell due, more or less

	// Shares says that Settings.InFlight, Rate, MaxPending and DeadMax are divided among
	// parts of the store, each of which keeps to its share, rounded up: the sum may be
	// higher, and messages in one part may wait while another has some of its share left.
	Shares bool
}

// Tuning is how an engine likes to be called.
type Tuning struct {
	// Prompt engines return from each call soon after its context ends, whatever
	// hangs, so that nobody need leave one.
	Prompt bool

	// Coalesce is how many concurrent single calls the engine likes to have made
	// one; 0 or 1: none, it does that itself.
	Coalesce int

	// Lanes is how many such calls it likes to have under way at a time; 0: one. More
	// keep an engine across a network busy while answers travel.
	Lanes int

	// Recheck bounds how long an answer of Lease may be relied on without asking
	// again, because hints may be lost or the engine's clock may step. 0: the
	// engine uses this process's wall clock and its hints are never lost.
	Recheck time.Duration
}

// Full returns the capabilities of a Whole engine, which can do everything in this
// package but AtomicPusher and LeaseWaiter; engines start from it.
func Full(name string) Capabilities {
	return Capabilities{
		Name: name,
		Abilities: Abilities{
			Keys: true, Priority: true, Expiry: true, Cancel: true, Reschedule: true, Get: true, Extend: true,
			GiveBack: true, RemoteLeases: true,
			Claim: true, List: true, Count: true, Forecast: true, Pause: true, Purge: true, Redrive: true,
			Range: true, IfState: true, Remember: true, Isolate: true, Settings: true, Foresight: true,
		},
		Limits: Limits{Precision: time.Millisecond},
	}
}

// What follows are the ErrUnsupported of what a call asks for and an engine has not. It is
// called above the seam.

// CheckTerms refuses terms that an engine does not know.
func (c *Capabilities) CheckTerms(op string, ref Ref, t *Terms) error {
	switch {
	case !c.Priority && t.Priority != nil:
		return c.lacks(op, ref, "priorities")
	case !c.Expiry && t.ExpireAfter > 0:
		return c.lacks(op, ref, "expire_after")
	case !c.Remember && t.Remember > 0:
		return c.lacks(op, ref, "remember")
	case !c.Isolate && t.Isolate != nil && *t.Isolate:
		return c.lacks(op, ref, "isolate")
	}
	return nil
}

// AnyDelay reports whether an engine can wait for any due time.
func (c *Capabilities) AnyDelay() bool { return c.MaxDelay == 0 && len(c.Delays) == 0 }

// CheckWhen refuses a due time that an engine cannot wait for, now being the time by the
// clock of the caller.
func (c *Capabilities) CheckWhen(op string, ref Ref, w When, now time.Time) error {
	delay := w.In
	if !w.At.IsZero() {
		delay = w.At.Sub(now)
	}
	switch {
	case delay <= 0:
	case c.MaxDelay > 0 && delay > c.MaxDelay:
		return refusal(op, ref, ErrUnsupported, "the engine "+c.Name+" holds no message back for longer than "+c.MaxDelay.String())
	case len(c.Delays) > 0 && (w.In == 0 || !slices.Contains(c.Delays, w.In)):
		return refusal(op, ref, ErrUnsupported, fmt.Sprintf("the engine %s has no delays but %v", c.Name, c.Delays))
	}
	return nil
}

// CheckRef refuses a ref that says in which state its message is to be.
func (c *Capabilities) CheckRef(op string, ref Ref) error {
	if ref.IfState != Gone && !c.IfState {
		return c.lacks(op, ref, "if_state")
	}
	return nil
}

// CheckList refuses a list of a state that an engine cannot list, a range of a list, and its
// reverse.
func (c *Capabilities) CheckList(q *ListQuery) error {
	if !c.List && !(c.ListDead && q.State == Dead) {
		return c.lacks("list", Ref{Queue: q.Queue}, "lists of what is "+q.State.String())
	}
	if !c.Range && (q.Newest || !q.From.IsZero() || !q.To.IsZero()) {
		return c.lacks("list", Ref{Queue: q.Queue}, "ranges of lists, nor their reverse")
	}
	return nil
}

func (c *Capabilities) lacks(op string, ref Ref, what string) error {
	return refusal(op, ref, ErrUnsupported, "the engine "+c.Name+" has no "+what)
}
