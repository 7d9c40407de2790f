package engine

import (
	"fmt"
	"time"
)

// The functions below return errors with the same text in every engine.

// Lapsed is the LastError of a message with a lapsed lease.
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

// Refuse returns the error of a call, or of one item, about a message, with the standard
// hint for ErrExists, ErrLeased, ErrLeaseLost and ErrLimit. It returns err itself when that
// is nil or an *Error already. Settlements identify their messages by the id in the token.
func Refuse(op string, ref Ref, err error) error {
	if _, ok := err.(*Error); ok || err == nil {
		return err
	}
	return refusal(op, ref, err, hintOf(err))
}

// RefuseDead returns the ErrNotFound of a call for live messages that names a dead one.
func RefuseDead(op string, ref Ref) error {
	return refusal(op, ref, ErrNotFound, "it is dead: redrive it")
}

// RefuseUnlessWaiting returns the error of a call for scheduled and ready messages that
// names one in another state, or in another than its IfState, or nil. Gone means that the
// message does not exist.
func RefuseUnlessWaiting(op string, ref Ref, s State) error {
	if s.Live() {
		if err := RefuseState(op, ref, s); err != nil {
			return err
		}
	}
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

// RefuseNotDue returns the ErrNotDue of a claim. A zero due means that the message is due
// and its queue paused.
func RefuseNotDue(ref Ref, due time.Time) error {
	if due.IsZero() {
		return refusal("claim", ref, ErrNotDue, "the queue is paused")
	}
	return refusal("claim", ref, ErrNotDue, "it is due at "+stamp(due))
}

// RefuseClaimIf returns the error of a claim with IfState of a message in state s, or nil.
// Gone means that the message does not exist.
func RefuseClaimIf(ref Ref, s State) error {
	if s == Gone {
		return Refuse("claim", ref, ErrNotFound)
	}
	if err := RefuseState("claim", ref, s); err != nil {
		return err
	}
	if s == Leased {
		return Refuse("claim", ref, ErrLeased)
	}
	return nil
}

// RefuseTaken returns the ErrExists of a claim of a dead message with the key of a live one.
func RefuseTaken(ref Ref) error {
	return refusal("claim", ref, ErrExists, "a live message holds its key")
}

// RefuseFinished returns the ErrExists of a push with a remembered key.
func RefuseFinished(ref Ref, how Ending, ended time.Time) error {
	return refusal("push", ref, ErrExists, "it was "+how.String()+" at "+stamp(ended)+"; to begin anew choose on_conflict replace")
}

// RefusePending returns the ErrLimit of a push to a full queue.
func RefusePending(ref Ref, most int64) error {
	return refusal("push", ref, ErrLimit, fmt.Sprintf("the queue's max_pending is %d: wait until some have been handled, or raise it", most))
}

// RefuseClaim returns the ErrLimit of a claim that the queue's settings hold back. until is
// when the rate allows the next lease; zero means that in_flight is reached.
func RefuseClaim(ref Ref, until time.Time) error {
	if until.IsZero() {
		return refusal("claim", ref, ErrLimit, "as many messages are leased as the queue's in_flight allows")
	}
	return &Error{Op: "claim", Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: ErrLimit, Until: until,
		Hint: "the queue's rate allows the next at " + stamp(until)}
}

// RefuseState returns the ErrStale of a ref if its IfState does not match, or nil.
func RefuseState(op string, ref Ref, is State) error {
	if ref.IfState == Gone || ref.IfState == is {
		return nil
	}
	return refusal(op, ref, ErrStale, "it is "+is.String()+", not "+ref.IfState.String())
}

// RefuseRevision returns the ErrStale of settings that have changed meanwhile.
func RefuseRevision(queue, stands string) error {
	return refusal("configure", Ref{Queue: queue}, ErrStale, "the settings are at revision "+Clip(stands)+": read them again")
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func refusal(op string, ref Ref, err error, hint string) error {
	return &Error{Op: op, Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: err, Hint: hint}
}

// Releases returns the settlements that release leases.
func Releases(leases []Lease) []Settlement {
	back := make([]Settlement, len(leases))
	for i := range leases {
		back[i] = Settlement{Token: leases[i].Token, Do: Release}
	}
	return back
}
