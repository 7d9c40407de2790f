package engine

import (
	"context"
	"time"
)

// Engine stores messages. Every engine implements this interface in full. The optional
// interfaces in this package add calls that only some engines have, and Capabilities says
// which.
//
// Methods that take a slice return a slice of the same length, in order, in which each item
// succeeds or fails alone. A returned error is for the call as a whole, and means that no
// item's outcome is known. Engines do not retry calls.
type Engine interface {
	// Push stores each message or applies its conflict policy, and returns when that is
	// durable. Items take effect in order, so a second push of a key in the same call
	// conflicts with the first.
	Push(ctx context.Context, msgs []Message) ([]PushResult, error)

	// Lease leases due messages for each want separately, in order of (priority, due, id).
	// It first lapses leases past their deadline and drops due messages past their expiry. It
	// never waits for time.
	Lease(ctx context.Context, wants []Want) (Grant, error)

	// Settle ends or extends leases. A settlement gets ErrLeaseLost when another
	// settlement, a cancel, replace, reschedule or newer lease has ended its lease, or when
	// the token is unknown. After the mere passing of the deadline it succeeds.
	Settle(ctx context.Context, s []Settlement) ([]Settled, error)

	// Cancel removes messages: nil when removed, ErrNotFound, ErrStale, or ErrLeased while
	// a lease holds the message. After nil the message is never leased. By id it also drops
	// a dead one.
	Cancel(ctx context.Context, refs []Ref) ([]error, error)

	// Reschedule moves the due time of a scheduled or ready message and sets its attempt to
	// 0; its expiry moves by as much. Errors: ErrLeased, ErrStale, and ErrNotFound, also for
	// a dead message by id. The returned Info may lack the body.
	Reschedule(ctx context.Context, ref Ref, due When) (Info, error)

	// Get looks a message up: by key the live one, else the one whose key is remembered, else
	// that which died or finished last and is listed; by id any that is live or listed. After
	// a lapse it returns the state that the lapse leads to.
	Get(ctx context.Context, ref Ref) (Info, error)

	// Watch calls fn whenever a queue may have something to lease sooner than the last
	// Grant said, until stop is called. fn must not block or call the engine. A call is a
	// hint: it may come too often, and engines across a network may lose it.
	Watch(fn func(queue string)) (stop func())

	// Capabilities returns what this engine can do and its limits. They do not change while
	// the engine is open.
	Capabilities() Capabilities

	// Close closes the engine and waits for calls under way. Leases with Want.Remote stay
	// valid. Later calls get ErrClosed; a second Close returns nil.
	Close() error
}

// Want asks for messages of one queue.
type Want struct {
	Queue  string
	Max    int           // at least 1; the answer is shorter when bodies reach AnswerBytes, and may be above 1,000
	TTR    time.Duration // how long the leases last; 0: each message's own TTR
	Remote bool          // the lease is passed on to another process and must outlive this one
	Worker string        // name of the worker that takes the leases; "": not given
	Takers []Taker       // the first leases are theirs, in this order; Worker takes the others
}

// Taker is a worker that takes leases of a Want.
type Taker struct {
	Worker string // its name; "": not given
	Max    int    // how many it takes, at least 1
}

// TakerOf returns the worker that takes the lease at index i of the answer, and how many it
// takes from there on.
func (w *Want) TakerOf(i int) Taker {
	first := 0
	for _, t := range w.Takers {
		if first += t.Max; i < first {
			return Taker{t.Worker, first - i}
		}
	}
	return Taker{w.Worker, w.Max - i}
}

// AnswerBytes bounds the bodies in the answer to a want, and in a page: when they reach it,
// the answer ends and says that there is more. A thousand large messages must not be in
// memory together. An engine may apply it to all wants of a call together. Wants that get no
// messages then have More set, and come first in the next call.
const AnswerBytes = 8 << 20

// Grant is the answer to Lease.
type Grant struct {
	// Now is the engine's clock after the last message was leased: no due time and no start
	// of a lease is later. A lease shorter than the call may be over by then, as its
	// Deadline shows; its token settles like that of any lapsed lease. Every NextDue is
	// after Now.
	Now    time.Time
	Queues []Granted // one for each Want
}

// Granted is the answer to one Want.
type Granted struct {
	Messages []Lease
	More     bool      // more are ready
	Held     bool      // more are ready, but held back by Settings.InFlight or Rate
	NextDue  time.Time // unless More: the earliest future due time, lapse, end of pause or, when Held, lease that Rate allows; zero: unknown
	Expired  int       // messages dropped past ExpireAfter, by any call since this was last reported
	Died     int       // lapsed messages that became dead, likewise
	Err      error     // this want failed; the others are unaffected
}

// Action is what a settlement does.
type Action uint8

// The actions of a settlement.
const (
	Ack     Action = iota + 1 // handled: gone
	Retry                     // failed: scheduled again at When, or after the message's backoff; dead if attempts are used up
	Snooze                    // not now: scheduled again at When, attempt not counted
	Release                   // not started: ready again, due unchanged, attempt not counted
	Bury                      // hopeless: dead
	Extend                    // still running: the deadline becomes now + TTR
)

var actionNames = [...]string{"action(0)", Ack: "ack", Retry: "retry", Snooze: "snooze", Release: "release", Bury: "bury", Extend: "extend"}

// String returns the action's name as used by the HTTP API.
func (a Action) String() string { return nameOf(actionNames[:], a, "action") }

// ParseAction parses the form of Action.String.
func ParseAction(name string) (Action, error) {
	return parseName(actionNames[:], Ack, name, "action", "an action is ack, retry, snooze, release, bury or extend")
}

// Settlement settles one lease.
type Settlement struct {
	Token  string
	Do     Action
	When   *When         // Snooze: until when, required; Retry: when, nil: after the message's backoff
	TTR    time.Duration // Extend; 0: the message's own
	Reason string        // Retry, Bury: stored as the message's LastError, cut to MaxReason bytes

	// Priority becomes the message's own with Retry, Snooze, Release and Bury; nil: unchanged.
	Priority *uint32
}

// MaxReason is how many bytes of a settlement's reason are stored.
const MaxReason = 1024

// Settled is the answer to one settlement.
type Settled struct {
	Queue string    // of the message; may be "" if the engine does not know it
	State State     // the new state: Gone, Scheduled, Ready, Dead; Leased after Extend
	Until time.Time // the due time (past when Ready) or the deadline; zero: Gone, Dead
	Err   error
}
