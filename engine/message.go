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

// State is where a message stands.
type State uint8

// The states of a message. Gone is what a settlement or cancel leaves behind: no
// message in an engine has it.
const (
	Gone      State = iota
	Scheduled       // its due time lies ahead
	Ready           // due, waiting to be leased
	Leased          // held by a worker until the lease's deadline
	Dead            // attempts used up, or buried
	Finished        // gone, its key remembered: see Policy.Remember
)

var stateNames = [...]string{"gone", "scheduled", "ready", "leased", "dead", "finished"}

// String returns the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "state(" + strconv.Itoa(int(s)) + ")"
}

// Live reports whether a message in this state is live, and so holds its key.
func (s State) Live() bool { return s == Scheduled || s == Ready || s == Leased }

// ParseState reads the form that State.String writes.
func ParseState(name string) (State, error) {
	for s, n := range stateNames {
		if n == name {
			return State(s), nil
		}
	}
	return 0, &Error{Op: "parse state", Err: ErrInvalid, Hint: "a state is scheduled, ready, leased, dead or finished"}
}

// Conflict says what a push does when its key is taken, or remembered.
type Conflict uint8

// The conflict policies. Replace, KeepDue and Rearm fail with ErrLeased while the
// live message is leased; of a finished message they do not know.
const (
	Reject  Conflict = iota // fail with ErrExists; the result describes the live message, or the finished one
	Keep                    // change nothing and answer with the live message, whatever its state, or the finished one
	Replace                 // new content and due time, same id, attempt 0
	KeepDue                 // new content, old due time, attempt 0: the last of many within a window
	Rearm                   // old content, new due time, attempt 0: a heartbeat, a debounce
)

var conflictNames = [...]string{"reject", "keep", "replace", "keep_due", "rearm"}

// String returns the policy's name as used by the HTTP API.
func (c Conflict) String() string {
	if int(c) < len(conflictNames) {
		return conflictNames[c]
	}
	return "conflict(" + strconv.Itoa(int(c)) + ")"
}

// ParseConflict reads the form that Conflict.String writes.
func ParseConflict(name string) (Conflict, error) {
	for c, n := range conflictNames {
		if n == name {
			return Conflict(c), nil
		}
	}
	return 0, &Error{Op: "parse on_conflict", Err: ErrInvalid, Hint: "on_conflict is reject, keep, replace, keep_due or rearm"}
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

// Resolve returns the instant in Unix milliseconds, for an engine whose clock
// shows now.
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

// Header is one name and value that travels with a message.
type Header struct{ Name, Value string }

// Content is what a message carries for its handler. Engines keep it byte for
// byte and never look into it.
type Content struct {
	Body        []byte
	ContentType string
	Headers     []Header // in the order given
}

// Message is a message to push.
type Message struct {
	Queue      string
	Key        string // "": none
	Due        When
	OnConflict Conflict
	Content
	Terms
}

// Outcome says what a push did.
type Outcome uint8

// The outcomes of a push that did not fail.
const (
	Created  Outcome = iota + 1 // there is a new message
	Kept                        // the live one was left as it was
	Replaced                    // the live one was changed as its conflict policy says
)

var outcomeNames = [...]string{"", "created", "kept", "replaced"}

// String returns the outcome's name as used by the HTTP API.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "outcome(" + strconv.Itoa(int(o)) + ")"
}

// ParseOutcome reads the form that Outcome.String writes.
func ParseOutcome(name string) (Outcome, error) {
	for o, n := range outcomeNames {
		if o > 0 && n == name {
			return Outcome(o), nil
		}
	}
	return 0, &Error{Op: "parse outcome", Err: ErrInvalid, Hint: "an outcome is created, kept or replaced"}
}

// PushResult is the answer to one pushed message. When Err is ErrExists or
// ErrLeased the other fields but Outcome describe the live message in the way, or, in the
// state Finished, the one whose key is remembered. So they do when Outcome is Kept.
type PushResult struct {
	Outcome Outcome
	ID      ID
	Due     time.Time
	State   State
	Ending  Ending    // when Finished
	Ended   time.Time // when Finished
	Err     error
}

// Ending is how a finished message went.
type Ending uint8

// The endings that are remembered.
const (
	Acked     Ending = iota + 1 // handled
	Cancelled                   // by Cancel
	Expired                     // ExpireAfter had passed
)

var endingNames = [...]string{"", "acked", "cancelled", "expired"}

// String returns the ending's name as used by the HTTP API.
func (e Ending) String() string {
	if int(e) < len(endingNames) {
		return endingNames[e]
	}
	return "ending(" + strconv.Itoa(int(e)) + ")"
}

// ParseEnding reads the form that Ending.String writes.
func ParseEnding(name string) (Ending, error) {
	for e, n := range endingNames {
		if e > 0 && n == name {
			return Ending(e), nil
		}
	}
	return 0, &Error{Op: "parse ending", Err: ErrInvalid, Hint: "an ending is acked, cancelled or expired"}
}

// Info is a message as it stands in an engine. Of a finished one only its ID, Queue, Key,
// Due, Ending, Ended and Forgotten are left.
type Info struct {
	ID      ID
	Queue   string
	Key     string
	State   State
	Due     time.Time
	Created time.Time
	Expires time.Time // due as pushed plus ExpireAfter; not moved by retry or snooze; zero: never
	Attempt uint32    // leases that count so far
	Content
	Policy
	LastError string    // reason of the last retry, bury or lapse
	Deadline  time.Time // when leased: the end of the lease
	Died      time.Time // when dead: since when
	Ending    Ending    // when finished: how
	Ended     time.Time // when finished: since when
	Forgotten time.Time // when finished: from when on the key is free
}

// Lease is a leased message: the right to handle it until Deadline.
type Lease struct {
	Info
	// Token names the message and this very lease; opaque, unguessable,
	// URL-safe, at most 128 bytes.
	Token string
}

// Ref names a message of a queue: by ID if that is not 0, else by Key. By key it
// means the live message, for Get also the finished, else the newest dead one.
type Ref struct {
	Queue   string
	ID      ID
	Key     string
	IfState State // Cancel, Reschedule: ErrStale unless the message is in this state; Gone: any
}

// Of names the message of that queue.
func (r Ref) Of(queue string) Ref {
	r.Queue = queue
	return r
}
