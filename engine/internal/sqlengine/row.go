package sqlengine

import (
	"math"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// never is the instant that does not come, where others are Unix milliseconds.
const never = math.MaxInt64

// Kind is what of a message's state stands in its row. Time alone decides between
// scheduled and ready, and whether a lease holds or has lapsed. The numbers are part of
// the format.
type Kind int16

// The kinds of rows. Waiting messages whose priority is not the usual one are apart, so
// that the others are in order by their due times alone.
const (
	Waiting Kind = iota // with engine.DefaultPriority
	Ranked              // waiting, with another priority
	Leased
	Dead
	kinds
)

// Row is a message as its row has it. Instants are Unix milliseconds.
type Row struct {
	ID    engine.ID
	Queue int64
	Key   string // "": none
	Kind  Kind
	Ends  int64 // when its state ends: due, the lease's deadline; when dead: since when
	Due   int64
	// Expires is after when it is not worth handling; never: that does not come.
	Expires int64
	Created int64 // microseconds
	Attempt uint32
	// Nonce is that of the last lease, whose token settles as long as it is there: beyond
	// the deadline too, until something else has been decided; nil: none does.
	Nonce     *token.Nonce
	Policy    engine.Policy
	LastError string
	Content   engine.Content
	Size      int // bytes of the body, also where Content is not read
}

// Place is where the row stands among those of its kind.
func (r *Row) Place() token.Place { return token.Place{At: r.Ends, ID: r.ID} }

// Queue is the row of a queue.
type Queue struct {
	Num      int64
	Name     string
	Paused   int64 // until when; 0: it is not, never: for good
	Settings engine.Settings
	Revision uint64
	// Base is pace.Bucket's: since when the rate gathers, in microseconds.
	Base int64
	// Remembers says that it has, or had, messages whose keys are to be remembered.
	Remembers bool
}

// Heads is what a queue has first.
type Heads struct {
	Queue
	// First are the places of the first row of each kind, at never: none. Of the dead it is
	// not asked for, since Settings.DeadKeep is unset.
	First   Places
	Waiting int64 // least due of the waiting, of both kinds; never: none
	Leased  int64 // least deadline; never: none
	// When the first died, and when the first memory is forgotten; never: none, or not asked
	// for, since Settings.DeadKeep, or Remembers, are unset.
	Dead, Forgotten int64
}

// Has puts in what was found first.
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

// Memory is what is left of a finished message: its key, until Forgotten.
type Memory struct {
	Name
	ID        engine.ID
	Due       int64
	Ending    engine.Ending
	Ended     int64
	Forgotten int64
}

// Lock says what reading does about rows that are to be changed.
type Lock uint8

// The locks. Those that are taken end with the transaction.
const (
	None Lock = iota // read only, as last committed
	Wait             // wait for others that hold one
	Skip             // leave out rows that others hold
)

// Range asks for rows of a queue and kind whose Place lies in a span, in order.
type Range struct {
	Queue  int64
	Kind   Kind
	Span   token.Span
	Due    bool // Span ends with what is due by the database's time, whatever its High
	Newest bool // the latest first
	Most   int
	Lock   Lock
	Body   bool // with the bodies of up to InlineBody bytes; all other content is always there
	// Window is not 0 in a range of Ranked rows to be read by (priority, due, id): the
	// first Most by that order among the first Window by place. With Lock Skip they are
	// chosen first, and Spare more, to be taken in the place of those that others hold.
	Window, Spare int
}

// InlineBody is up to how many bytes a body is read with its row. Larger ones are read by
// Bodies, one by one, when it is certain that they are wanted.
const InlineBody = 8 << 10

// Tally is a change of a count of a queue.
type Tally struct {
	Queue int64
	Count Count
	// Minute is that of the due times which Due counts, since 1970; else 0.
	Minute int64
	N      int64
}

// Count is what is counted. The numbers are part of the format.
type Count int16

// The counts of a queue.
const (
	CountDue      Count = iota // waiting, of both kinds, by the minute of due
	CountWaiting               // waiting, of both kinds
	CountLeased                // with rows of the kind Leased, lapsed or not
	CountDead                  //
	CountFinished              // memories
)

// Stock is what a queue holds.
type Stock struct {
	Waiting, Ready         int64 // Ready are a part of Waiting
	Leased, Dead, Finished int64
}

// MinuteOf is the minute in which an instant lies.
func MinuteOf(ms int64) int64 {
	const minute = int64(time.Minute / time.Millisecond)
	m := ms / minute
	if ms < 0 && ms%minute != 0 {
		m--
	}
	return m
}
