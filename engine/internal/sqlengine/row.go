package sqlengine

import (
	"math"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// never is the instant that never comes. Other instants are Unix milliseconds.
const never = math.MaxInt64

// Kind is the part of a message's state that its row stores. Time decides between scheduled
// and ready, and whether a lease holds or has lapsed. The numbers are part of the format.
type Kind int16

// The kinds of rows. Waiting messages of the default priority have a kind of their own, so
// that they are in order by due time alone.
const (
	Waiting Kind = iota // with engine.DefaultPriority
	Ranked              // waiting, with another priority
	Leased
	Dead
	Finished            // listed in the history
	kinds    = iota - 1 // those with a low bound: all but Finished
)

// Row is a stored message. Instants are Unix milliseconds.
type Row struct {
	ID    engine.ID
	Queue int64
	Key   string // "": none
	Kind  Kind
	Ends  int64 // when its state ends: due, or the lease's deadline; since when it is dead or finished
	Due   int64
	// Expires is when it expires; never: it does not.
	Expires int64
	Created int64 // microseconds
	Attempt uint32
	// Nonce belongs to the last lease. While it is set, the lease's token settles, even after
	// the deadline; nil: no token does. When acked it tells when the lease began.
	Nonce    *codec.Nonce
	Worker   string        // of the lease, or the canceller; "": none
	Ending   engine.Ending // when finished
	Failures []byte        // encoded
	Policy   engine.Policy
	Content  engine.Content
	Size     int // bytes of the body, also where Content is not read
}

// Place is the row's place in the order of its kind.
func (r *Row) Place() codec.Place { return codec.Place{At: r.Ends, ID: r.ID} }

// waiting returns a row as it was while waiting, without a content.
func (r *Row) waiting() *Row {
	x := *r
	x.Kind, x.Content, x.Size = kindOf(&r.Policy), engine.Content{}, 0
	return &x
}

// Queue is the row of a queue.
type Queue struct {
	Num      int64
	Name     string
	Paused   int64 // until when; 0: not paused; never: until resumed
	Settings engine.Settings
	Revision uint64
	// Base is rules.Bucket's base, in microseconds.
	Base int64
	// Remembers says that the queue has, or had, messages with remember.
	Remembers bool
}

// Heads is a queue with its first rows.
type Heads struct {
	Queue
	// First holds the place of the first row of each kind; at never: there is none. Dead rows
	// are not looked at if Settings.DeadKeep is unset.
	First   Places
	Waiting int64 // least due time of both waiting kinds; never: none
	Leased  int64 // least deadline; never: none
	// When the first dead message died, and when the first memory expires; never: there is
	// none, or it was not looked at because Settings.DeadKeep or Remembers is unset.
	Dead, Forgotten int64
}

// Has sets First and the fields that follow from it, and Forgotten.
func (h *Heads) Has(first Places, forgotten int64) {
	h.First, h.Forgotten = first, forgotten
	h.Waiting = min(first[Waiting].At, first[Ranked].At)
	h.Leased, h.Dead = first[Leased].At, first[Dead].At
}

// Name is a key in a queue.
type Name struct {
	Queue int64
	Key   string
}

// Memory is the remembered key of a finished message, until Forgotten.
type Memory struct {
	Name
	ID        engine.ID
	Due       int64
	Ending    engine.Ending
	Ended     int64
	Forgotten int64
}

// Lock is how a read locks rows.
type Lock uint8

// The locks. They last until the end of the transaction.
const (
	None Lock = iota // read only, as last committed
	Wait             // wait for locks of others
	Skip             // leave out rows that others have locked
)

// Range asks for rows of a queue and kind with places in a span, in order.
type Range struct {
	Queue  int64
	Kind   Kind
	Span   codec.Span
	Due    bool // Span ends at the database's time, whatever its High is
	Newest bool // the latest first
	Most   int
	Lock   Lock
	Body   bool // with bodies of up to InlineBody bytes; other content is always read
	// With a Window, rows are in the order (priority, due, id): the first Most in that order
	// among the first Window rows by place. With Lock Skip, Most and Spare more rows are
	// chosen before they are locked. The spare ones replace rows that others have locked.
	Window, Spare int
}

// InlineBody is the most bytes of a body that is read with its row. Bodies reads larger ones
// once it is certain that they are needed.
const InlineBody = 8 << 10

// Tally is a change to a count of a queue.
type Tally struct {
	Queue int64
	Count Count
	// Minute is the minute of the due times that CountDue counts, since 1970; else 0.
	Minute int64
	N      int64
}

// Count says what is counted. The numbers are part of the format.
type Count int16

// The counts of a queue.
const (
	CountDue      Count = iota // waiting, of both kinds, by the minute of due
	CountWaiting               // waiting, of both kinds
	CountLeased                // with rows of the kind Leased, lapsed or not
	CountDead                  //
	CountFinished              // memories
	CountHistory               // with rows of the kind Finished
)

// Stock is what a queue holds.
type Stock struct {
	Waiting, Ready                  int64 // Ready counts a part of Waiting
	Leased, Dead, Finished, History int64
}
