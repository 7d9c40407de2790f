package engine

import (
	"fmt"
	"time"
)

// What follows are refusals and what they tell the person who reads them, the same
// sentence in every engine.

// Lapsed is the LastError of a message whose lease ended at its deadline.
const Lapsed = "lease lapsed"

func hintOf(err error) string {
	switch err {
	case ErrExists:
		return "choose another key, or on_conflict keep, replace, keep_due or rearm"
	case ErrStale:
		return "look at it again, and decide anew"
	case ErrLeased:
		return "a worker has it: it is too late to change, cancel or claim it"
	case ErrLeaseLost:
		return "it was settled before, or someone else decided on the message after the lease's deadline"
	case ErrLimit:
		return "the engine holds as many messages as it may: wait until some have been handled, or raise its MaxPending"
	}
	return ""
}

// Refuse returns the error of a call, or of an item of one, about a message, with the
// hint that ErrExists, ErrLeased, ErrLeaseLost and ErrLimit have; err itself when that is
// nil or an *Error already. Settlements know their messages by the id in the token.
func Refuse(op string, ref Ref, err error) error {
	if _, ok := err.(*Error); ok || err == nil {
		return err
	}
	return refusal(op, ref, err, hintOf(err))
}

// RefuseDead is the ErrNotFound of a call that concerns live messages only, about one
// that is dead.
func RefuseDead(op string, ref Ref) error {
	return refusal(op, ref, ErrNotFound, "it is dead: redrive it")
}

// RefuseUnlessWaiting says why a call that is for messages which wait, scheduled or
// ready, is not for one in this state, Gone being one that is not there; nil: it is.
func RefuseUnlessWaiting(op string, ref Ref, s State) error {
	switch s {
	case Gone:
		return Refuse(op, ref, ErrNotFound)
	case Dead:
		return RefuseDead(op, ref)
	case Leased:
		return Refuse(op, ref, ErrLeased)
	}
	return nil
}

// RefuseNotDue is the ErrNotDue of a claim. A zero due means that the message is due,
// and its queue paused.
func RefuseNotDue(ref Ref, due time.Time) error {
	if due.IsZero() {
		return refusal("claim", ref, ErrNotDue, "the queue is paused")
	}
	return refusal("claim", ref, ErrNotDue, "it is due at "+stamp(due))
}

// RefuseFinished is the ErrExists of a push whose key is remembered.
func RefuseFinished(ref Ref, how Ending, ended time.Time) error {
	return refusal("push", ref, ErrExists, "it was "+how.String()+" at "+stamp(ended)+"; to begin anew choose on_conflict replace")
}

// RefusePending is the ErrLimit of a push to a queue that holds all it may.
func RefusePending(ref Ref, most int64) error {
	return refusal("push", ref, ErrLimit, fmt.Sprintf("the queue's max_pending is %d: wait until some have been handled, or raise it", most))
}

// RefuseClaim is the ErrLimit of a claim that the queue's settings hold back, until then
// if that is known.
func RefuseClaim(ref Ref, until time.Time) error {
	if until.IsZero() {
		return refusal("claim", ref, ErrLimit, "as many messages are leased as the queue's in_flight allows")
	}
	return &Error{Op: "claim", Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: ErrLimit, Until: until,
		Hint: "the queue's rate allows the next at " + stamp(until)}
}

// RefuseState is the ErrStale of a ref that names a message in another state than it says;
// nil: it does not.
func RefuseState(op string, ref Ref, is State) error {
	if ref.IfState == Gone || ref.IfState == is {
		return nil
	}
	return refusal(op, ref, ErrStale, "it is "+is.String()+", not "+ref.IfState.String())
}

// RefuseRevision is the ErrStale of settings that somebody else has written meanwhile.
func RefuseRevision(queue, stands string) error {
	return refusal("configure", Ref{Queue: queue}, ErrStale, "the settings are at revision "+Clip(stands)+": read them again")
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func refusal(op string, ref Ref, err error, hint string) error {
	return &Error{Op: op, Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: err, Hint: hint}
}

// Releases returns the settlements that give leases back.
func Releases(leases []Lease) []Settlement {
	back := make([]Settlement, len(leases))
	for i := range leases {
		back[i] = Settlement{Token: leases[i].Token, Do: Release}
	}
	return back
}
