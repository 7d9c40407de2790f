package engine

import (
	"strconv"
	"time"
)

// ID names a message within its engine. It is never 0 and never reused.
type ID uint64

// String returns the id in decimal, the form used outside the program.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// ParseID reads the form that String writes.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, &Error{Op: "parse id", Err: ErrInvalid, Hint: "an id is a decimal number such as 42"}
	}
	return ID(n), nil
}

// State is the state of a message.
type State uint8

// The states of a message. Gone is the result of a settlement or cancel; no stored message
// is in it.
const (
	Gone      State = iota
	Scheduled       // its due time is in the future
	Ready           // due, waiting to be leased
	Leased          // held by a worker until the lease's deadline
	Dead            // attempts used up, or buried
	Finished        // gone, but listed (see History) or its key remembered (see Policy.Remember)
)

var stateNames = [...]string{"gone", "scheduled", "ready", "leased", "dead", "finished"}

// String returns the state's name in lower case.
func (s State) String() string { return nameOf(stateNames[:], s, "state") }

// Live reports whether a message in this state is live, and so owns its key.
func (s State) Live() bool { return s == Scheduled || s == Ready || s == Leased }

// ParseState parses the form of State.String.
func ParseState(name string) (State, error) {
	return parseName(stateNames[:], Gone, name, "state", "a state is scheduled, ready, leased, dead or finished")
}

// Conflict is what a push does when its key is taken or remembered.
type Conflict uint8

// The conflict policies. Replace, KeepDue and Rearm fail with ErrLeased while the live
// message is leased, and ignore finished messages.
const (
	Reject  Conflict = iota // fail with ErrExists; the result describes the live message, or the finished one
	Keep                    // change nothing and answer with the live message, whatever its state, or the finished one
	Replace                 // new content and due time, same id, attempt 0
	KeepDue                 // new content, old due time, attempt 0: keeps the last of many pushes before the due time
	Rearm                   // old content, new due time, attempt 0: a heartbeat, a debounce
)

var conflictNames = [...]string{"reject", "keep", "replace", "keep_due", "rearm"}

// String returns the policy's name as used by the HTTP API.
func (c Conflict) String() string { return nameOf(conflictNames[:], c, "conflict") }

// ParseConflict parses the form of Conflict.String.
func ParseConflict(name string) (Conflict, error) {
	return parseName(conflictNames[:], Reject, name, "on_conflict", "on_conflict is reject, keep, replace, keep_due or rearm")
}

// When is an instant: At if that is set, else In from the engine's now. The zero
// When is now. A due time in the future is rounded up to the millisecond. An At
// at or before now is kept as given (never before the year 0001), and the message
// is ready at once.
type When struct {
	At time.Time
	In time.Duration
}

// IsZero reports whether w is now.
func (w When) IsZero() bool { return w.At.IsZero() && w.In == 0 }

// Resolve returns the instant in Unix milliseconds. now is the time by the
// engine's clock.
func (w When) Resolve(now time.Time) int64 {
	t := w.At
	if t.IsZero() {
		t = now.Add(w.In)
		if w.In <= 0 {
			return now.UnixMilli()
		}
	}
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 && t.After(now) {
		ms++
	}
	return ms
}

// Header is a name and value stored with a message.
type Header struct{ Name, Value string }

// Content is the part of a message for its handler. Engines store it unchanged and never
// interpret it.
type Content struct {
	Body        []byte
	ContentType string
	Headers     []Header // in order
}

// Message is a message to push.
type Message struct {
	Queue      string
	Key        string // "": none
	Due        When
	OnConflict Conflict

	// Token is the newest lease of the live message that holds the key. Replace then changes
	// the message although it is leased, and ends the lease. With any other token it fails
	// with ErrLeaseLost. "": none is given.
	Token string

	Content
	Terms
}

// Outcome is what a push did.
type Outcome uint8

// The outcomes of a push that did not fail.
const (
	Created  Outcome = iota + 1 // a new message was created
	Kept                        // the live one was left unchanged
	Replaced                    // the live one was changed by the conflict policy
)

var outcomeNames = [...]string{"", "created", "kept", "replaced"}

// String returns the outcome's name as used by the HTTP API.
func (o Outcome) String() string { return nameOf(outcomeNames[:], o, "outcome") }

// ParseOutcome parses the form of Outcome.String.
func ParseOutcome(name string) (Outcome, error) {
	return parseName(outcomeNames[:], Created, name, "outcome", "an outcome is created, kept or replaced")
}

// PushResult is the result for one pushed message. When Err is ErrExists or ErrLeased, or
// Outcome is Kept, the other fields describe the existing message with the key. It is the
// live one or, in the state Finished, the remembered one.
type PushResult struct {
	Outcome Outcome
	ID      ID
	Due     time.Time
	State   State
	Ending  Ending    // when Finished
	Ended   time.Time // when Finished
	Err     error
}

// Ending is how a finished message ended.
type Ending uint8

// The endings of messages that finish.
const (
	Acked     Ending = iota + 1 // handled
	Cancelled                   // by Cancel
	Expired                     // ExpireAfter had passed
)

var endingNames = [...]string{"", "acked", "cancelled", "expired"}

// String returns the ending's name as used by the HTTP API.
func (e Ending) String() string { return nameOf(endingNames[:], e, "ending") }

// ParseEnding parses the form of Ending.String.
func ParseEnding(name string) (Ending, error) {
	return parseName(endingNames[:], Acked, name, "ending", "an ending is acked, cancelled or expired")
}

// Info is the current state of a message in an engine. A Lease has all but Failures. A
// finished message has no Content, Policy and Expires. One that is not listed, but whose key
// is remembered, has only ID, Queue, Key, Due, Ending, Ended and Forgotten.
type Info struct {
	ID      ID
	Queue   string
	Key     string
	State   State
	Due     time.Time
	Created time.Time
	Expires time.Time // original due time plus ExpireAfter; unaffected by retry and snooze; zero: never
	Attempt uint32    // leases that count so far
	Content
	Policy
	LastError string    // reason of the last retry, bury or lapse
	Failures  []Failure // the last MaxFailures retries, buries and lapses, oldest first
	Worker    string    // when leased or acked: Want.Worker of the lease; when cancelled: Ref.By
	Started   time.Time // when leased or acked: when the lease began
	Deadline  time.Time // when leased: the end of the lease
	Died      time.Time // when dead: since when
	Ending    Ending    // when finished: how
	Ended     time.Time // when finished: since when
	Forgotten time.Time // when finished: when the key becomes free; zero: it is free, or not known in a list
}

// Lease is a leased message: the right to handle it until Deadline.
type Lease struct {
	Info
	// Token identifies the message and this lease; opaque, unguessable, URL-safe, at most
	// 128 bytes.
	Token string
}

// Ref names a message of a queue: by ID if that is not 0, else by Key. A key means the live
// message, for Get also one that has ended.
type Ref struct {
	Queue   string
	ID      ID
	Key     string
	IfState State  // Cancel, Reschedule, Claim: ErrStale unless the message is in this state; Gone: any
	By      string // Cancel: name of the canceller, for the history; a server takes that of its caller instead
}

// Of returns the reference completed with a queue.
func (r Ref) Of(queue string) Ref {
	r.Queue = queue
	return r
}
