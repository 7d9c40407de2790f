package engine

import "time"

// What follows are refusals and what they tell the person who reads them, the same
// sentence in every engine.

// Lapsed is the LastError of a message whose lease ended at its deadline.
const Lapsed = "lease lapsed"

func hintOf(err error) string {
	switch err {
	case ErrExists:
		return "choose another key, or on_conflict keep, replace, keep_due or rearm"
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
// hint that ErrExists, ErrLeased, ErrLeaseLost and ErrLimit have; nil when err is nil.
// Settlements know their messages by the id in the token.
func Refuse(op string, ref Ref, err error) error {
	if err == nil {
		return nil
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
	return refusal("claim", ref, ErrNotDue, "it is due at "+due.UTC().Format("2006-01-02T15:04:05.000Z"))
}

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
