package engine

import (
	"context"
	"strconv"
	"time"
)

// Engine keeps messages. Every engine implements it whole; what only some can do
// is in the further interfaces below, and Capabilities says which hold.
//
// Methods that take a slice answer with a slice of the same length, in order, in
// which each item succeeds or fails alone; the error beside it is for the call as
// a whole and means that no item's outcome is known. Engines do not retry calls.
type Engine interface {
	// Push keeps each message or applies its conflict policy, and answers when
	// that is durable. Items of one call act in order, so the second push of a
	// key in one call meets the first.
	Push(ctx context.Context, msgs []Message) ([]PushResult, error)

	// Lease hands out messages that are due now, for each want apart, in order of
	// (priority, due, id). It first lapses leases whose deadline has passed and
	// drops due messages past their expiry. It never waits for time.
	Lease(ctx context.Context, wants []Want) (Grant, error)

	// Settle ends or extends leases. A settlement whose lease is over by another
	// settlement, cancel, replace, reschedule or newer lease gets ErrLeaseLost, as
	// does an unknown token; one that merely outlived its deadline succeeds.
	Settle(ctx context.Context, s []Settlement) ([]Settled, error)

	// Cancel removes messages: nil when removed, ErrNotFound, ErrStale, or ErrLeased
	// when it came too late. After nil no lease sees the message. By id it also drops a
	// dead one.
	Cancel(ctx context.Context, refs []Ref) ([]error, error)

	// Reschedule moves the due time of a scheduled or ready message and sets its
	// attempt to 0; its expiry moves along. ErrLeased, ErrNotFound, ErrStale; a dead one by
	// id is ErrNotFound. The Info returned may lack the body.
	Reschedule(ctx context.Context, ref Ref, due When) (Info, error)

	// Get looks a message up: by key the live one, else the finished one, else the
	// newest dead one; by id any but a finished one. A lapsed lease shows as what the lapse makes of it.
	Get(ctx context.Context, ref Ref) (Info, error)

	// Watch calls fn whenever a queue may have something to lease sooner than the
	// last Grant said, until stop is called. fn must not block nor call the
	// engine. A call is a hint: it may come too often, and from engines across a
	// network it may be lost.
	Watch(fn func(queue string)) (stop func())

	// Capabilities says what this engine can do and its limits. It does not change
	// while the engine is open.
	Capabilities() Capabilities

	// Close ends the engine and waits for calls under way. Leases given with
	// Want.Remote stay valid. Calls after Close get ErrClosed; a second Close
	// returns nil.
	Close() error
}

// Want asks for messages of one queue.
type Want struct {
	Queue  string
	Max    int           // at least 1; fewer come where their bodies reach AnswerBytes, and above 1,000 as the engine likes
	TTR    time.Duration // how long the leases last; 0: each message's own TTR
	Remote bool          // the lease is passed on to another process and must outlive this one
}

// AnswerBytes is how much of bodies a want is granted, or a page lists, before the
// answer ends and says that there is more: a thousand large messages must not be
// in memory together. An engine may grant no more than so much to all wants of a call
// together: others get none then, are told of More, and come first in a call that
// asks again.
const AnswerBytes = 8 << 20

// Grant is the answer to Lease.
type Grant struct {
	// Now is the engine's clock when the last of the messages had been leased: not
	// before the due of any, nor before any lease began. A lease that lasts shorter
	// than the call took may be over by then, as its Deadline tells, and its token
	// settles as that of any lapsed one does. Each NextDue lies after it.
	Now    time.Time
	Queues []Granted // one for each Want
}

// Granted is what one Want got.
type Granted struct {
	Messages []Lease
	More     bool      // more are ready
	Held     bool      // more are ready, and held back by Settings.InFlight or Rate
	NextDue  time.Time // when !More: the least still to come of due, lapse, pause end and, when Held, the next lease of Rate; zero: nothing known
	Expired  int       // messages dropped past ExpireAfter, by any call since this was last told
	Died     int       // lapsed messages that became dead, likewise
	Err      error     // this want failed; the others stand
}

// Action is what a settlement does.
type Action uint8

// The actions of a settlement.
const (
	Ack     Action = iota + 1 // handled: gone
	Retry                     // failed: scheduled again at When, or after the message's backoff; dead if attempts are used up
	Snooze                    // not now: scheduled again at When, attempt given back
	Release                   // not started: ready again, due unchanged, attempt given back
	Bury                      // hopeless: dead
	Extend                    // still at it: the deadline becomes now + TTR
)

var actionNames = [...]string{Ack: "ack", Retry: "retry", Snooze: "snooze", Release: "release", Bury: "bury", Extend: "extend"}

// String returns the action's name as used by the HTTP API.
func (a Action) String() string {
	if a > 0 && int(a) < len(actionNames) {
		return actionNames[a]
	}
	return "action(" + strconv.Itoa(int(a)) + ")"
}

// ParseAction reads the form that Action.String writes.
func ParseAction(name string) (Action, error) {
	for a, n := range actionNames {
		if a > 0 && n == name {
			return Action(a), nil
		}
	}
	return 0, &Error{Op: "parse action", Err: ErrInvalid, Hint: "an action is ack, retry, snooze, release, bury or extend"}
}

// Settlement settles one lease.
type Settlement struct {
	Token  string
	Do     Action
	When   *When         // Snooze: until when, required; Retry: when again, nil: after the message's backoff
	TTR    time.Duration // Extend; 0: the message's own
	Reason string        // Retry, Bury: kept as the message's LastError, cut to MaxReason bytes
}

// MaxReason is how many bytes of a settlement's reason are kept.
const MaxReason = 1024

// Settled is the answer to one settlement.
type Settled struct {
	Queue string    // of the message; may be "" where the engine cannot tell
	State State     // what the message became: Gone, Scheduled, Ready, Dead; Leased after Extend
	Until time.Time // the due time, which is past when Ready, or the deadline; zero: Gone, Dead
	Err   error
}
