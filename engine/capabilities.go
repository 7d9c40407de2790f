package engine

import (
	"fmt"
	"slices"
	"time"
)

// Capabilities are what an engine can do, its limits, and how to call it efficiently.
type Capabilities struct {
	Name string // "mem", "disk", …
	Abilities
	Limits
	Tuning
}

// Abilities are what an engine can do. Where false, the calls concerned fail with
// ErrUnsupported.
type Abilities struct {
	Durable      bool // an answered push survives kill -9 of this process
	Keys         bool // keys: cancel, look-up, reschedule and conflict policies by key
	Priority     bool // ready messages are leased by priority; else by due time alone
	Expiry       bool // Policy.ExpireAfter
	Cancel       bool
	Reschedule   bool
	Get          bool
	Extend       bool
	GiveBack     bool // snooze and release do not count the attempt; else they do
	RemoteLeases bool // Want.Remote: leases that another process settles
	Claim        bool // Claimer
	List         bool // Lister
	ListDead     bool // Lister for dead messages only, when List is false
	Count        bool // Counter
	Forecast     bool // Forecaster
	Pause        bool // Pauser
	Purge        bool // Purger
	Redrive      bool // Redriver
	Range        bool // ListQuery.From, To and Newest
	IfState      bool // Ref.IfState of Cancel and Reschedule
	ClaimIf      bool // Ref.IfState of Claim
	Peek         bool // Peeker
	Find         bool // Finder
	Reprioritize bool // Settlement.Priority
	Remember     bool // Policy.Remember
	Isolate      bool // Policy.Isolate
	History      bool // Settings.History, lists of finished messages, Info.Started
	Failures     bool // Info.Failures; else only LastError is kept
	Workers      bool // Want.Worker; else it is ignored
	Settings     bool // Configurer
	Atomic       bool // AtomicPusher
	LeaseWait    bool // LeaseWaiter
	Foresight    bool // Granted.NextDue covers all scheduled messages; else only those this engine knows of
}

// Limits bound what an engine accepts.
type Limits struct {
	MaxBody    int             // bytes; 0: no limit of the engine's own
	MaxPending int64           // live messages; 0: none
	MaxDelay   time.Duration   // from a push or reschedule to the due time; 0: none
	Delays     []time.Duration // the only delays allowed, ascending; empty: any
	Precision  time.Duration   // of due times
	Window     int             // ready messages of a queue among which the order is exact; 1: roughly in order of due time

	// Shares says that Settings.InFlight, Rate, MaxPending and DeadMax are divided among
	// parts of the store. Each share is rounded up, so the sum may be higher, and messages
	// in one part may wait while another part has some of its share left.
	Shares bool
}

// Tuning is how to call an engine efficiently.
type Tuning struct {
	// Prompt engines return from each call soon after its context ends, whatever hangs, so
	// that no caller has to abandon a call.
	Prompt bool

	// Coalesce is how many concurrent single calls to merge into one; 0 or 1: none.
	Coalesce int

	// Lanes is how many merged calls to have under way at a time; 0: one. More keep an
	// engine across a network busy while answers travel.
	Lanes int

	// Recheck bounds how long an answer of Lease stays valid, because hints may be lost or
	// the engine's clock may step. 0: the engine uses this process's wall clock and its
	// hints are never lost.
	Recheck time.Duration

	// Pace is the least time between the starts of two calls of Lease. What falls due meanwhile
	// shares the next call, which costs the engine less. A backlog is leased without a pause.
	// A worker's acks gather for six paces, or for one if others wait for what they free.
	// 0: no pause.
	Pace time.Duration
}

// MaxPace is the longest Tuning.Pace.
const MaxPace = time.Second

// Full returns the capabilities of a Whole engine, which has everything in this package but
// AtomicPusher and LeaseWaiter. Engines start from it.
func Full(name string) Capabilities {
	return Capabilities{
		Name: name,
		Abilities: Abilities{
			Keys: true, Priority: true, Expiry: true, Cancel: true, Reschedule: true, Get: true, Extend: true,
			GiveBack: true, RemoteLeases: true,
			Claim: true, List: true, Count: true, Forecast: true, Pause: true, Purge: true, Redrive: true,
			Range: true, IfState: true, ClaimIf: true, Peek: true, Find: true, Reprioritize: true,
			Remember: true, Isolate: true, History: true, Failures: true, Workers: true, Settings: true, Foresight: true,
		},
		Limits: Limits{Precision: time.Millisecond},
	}
}

// The checks below return ErrUnsupported for what an engine lacks. The client calls them,
// not the engines.

// CheckTerms rejects terms that an engine does not support.
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

// CheckWhen rejects a due time that an engine cannot wait for. now is the caller's clock.
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

// CheckRef rejects a ref with IfState if the engine does not support it.
func (c *Capabilities) CheckRef(op string, ref Ref) error {
	can := c.IfState
	if op == "claim" {
		can = c.ClaimIf
	}
	if ref.IfState != Gone && !can {
		return c.lacks(op, ref, "if_state")
	}
	return nil
}

// CheckList rejects a query for a state, a range or an order that an engine cannot list.
func (c *Capabilities) CheckList(q *ListQuery) error {
	if !c.List && !(c.ListDead && q.State == Dead) {
		return c.lacks("list", Ref{Queue: q.Queue}, "lists of what is "+q.State.String())
	}
	if !c.History && q.State == Finished {
		return c.lacks("list", Ref{Queue: q.Queue}, "history of finished messages")
	}
	if !c.Range && (q.Newest || !q.From.IsZero() || !q.To.IsZero()) {
		return c.lacks("list", Ref{Queue: q.Queue}, "ranges of lists, nor their reverse")
	}
	return nil
}

func (c *Capabilities) lacks(op string, ref Ref, what string) error {
	return refusal(op, ref, ErrUnsupported, "the engine "+c.Name+" has no "+what)
}
