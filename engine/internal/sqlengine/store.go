package sqlengine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// ErrAgain says that a transaction met others in a way that undid it: run it once more.
var ErrAgain = errors.New("the transaction was undone by others: run it again")

// ErrBusy is the ErrAgain of a transaction that would have had to wait longer for others
// than its Patience allows.
var ErrBusy = fmt.Errorf("%w: others hold what it needs", ErrAgain)

// ErrDeadlock is the ErrAgain of a transaction that the database undid because it and others
// waited for one another, or because it could not put them in order.
var ErrDeadlock = fmt.Errorf("%w: a deadlock", ErrAgain)

// Again returns an ErrAgain with what the caller is told when that does not end.
func Again(reason error) error { return &again{reason} }

type again struct{ reason error }

func (a *again) Error() string        { return ErrAgain.Error() + ": " + a.reason.Error() }
func (a *again) Is(target error) bool { return target == ErrAgain }

// ErrGone says that there are no queues of some numbers. Nobody deletes a queue.
var ErrGone = errors.New("a queue has gone")

// ErrInternal marks errors by which the engine undoes a transaction for reasons of its own.
var ErrInternal = errors.New("undone")

// Store is a database with tarry's tables. Its methods may be called from many
// goroutines. Errors are those of the engine's callers already: *engine.Error, with
// engine.ErrUnavailable for a database that does not answer; but for ErrAgain.
type Store interface {
	// In runs do in a transaction that reads what others have committed (READ COMMITTED),
	// and commits it if do returns nil. It does not repeat: ErrAgain says that it was
	// rolled back and may be run once more. Where it is not known whether the commit came
	// about, the error has engine.HintUnknown.
	In(ctx context.Context, op string, do func(Tx) error) error

	// Heads tells, in one statement and with no lock, the time of the database and of each
	// queue its row and what it has first, from a floor on, in the order asked for.
	Heads(ctx context.Context, from []Floor) (now time.Time, heads []Heads, err error)

	// Names returns the numbers of queues, which it makes for those that are new if asked
	// to; 0: there is none. Then it commits at once, whatever transaction the caller is in.
	Names(ctx context.Context, names []string, create bool) ([]int64, error)

	// Queues lists queues by name, behind after.
	Queues(ctx context.Context, after string, limit int) ([]Queue, error)

	// IDs reserves at least n ids that nobody had, first to last, and commits at once. They go
	// by the database's clock, so that none is reserved again when that has been lost.
	IDs(ctx context.Context, n int) (first, last engine.ID, err error)

	// Fold adds up some of the tallies that transactions have left, from a number on, so that
	// few are there to be summed, and reports which was the last, and whether there are more.
	// It steps back before others that do the same.
	Fold(ctx context.Context, from int64) (last int64, more bool, err error)

	Close()
}

// QueuesMost is how many queues are counted at once.
const QueuesMost = 500

// Sooner says that a queue has something at an instant, or later.
type Sooner struct {
	Queue string
	At    int64
}

// Tx is a transaction, used from one goroutine. What reads with a lock sees what is
// committed when it gets it. The methods that write may be carried out no sooner than at
// the next that reads, or the commit, and in the order in which they were called.
type Tx interface {
	// Open comes first: the time of the database, what Heads tells of queues, in the order
	// asked for, and then, as ByID and ByKey do, the rows that the call is about. Queues in
	// lock, a part of them, are locked, in the order of numbers, before anything is read: who
	// else locks one waits until the transaction ends. It leaves out what is no queue. Of
	// queues whose rows alone are read it tells that they have nothing.
	Open(ctx context.Context, from []Floor, lock []int64, first First) (Opened, error)
	// Heads is Store.Heads with what this transaction has written, without the time.
	Heads(ctx context.Context, from []Floor) ([]Heads, error)
	// Leave is Heads as the transaction leaves them: heads returns them once it has
	// committed, but for those of what is no queue.
	Leave(ctx context.Context, from []Floor) (heads func() []Heads, err error)
	SaveQueue(ctx context.Context, q *Queue) error

	Messages
	Memories

	// Tally adds to counts. It waits for nobody, nor does anybody for it.
	Tally(ctx context.Context, changes []Tally) error
	// Stock returns what each of up to QueuesMost queues holds, by their counts, in one
	// statement; of the ready, which are due by an instant, those of the minute of that are
	// looked at one by one.
	Stock(ctx context.Context, queues []int64, ms int64) (map[int64]Stock, error)
	// Due returns the counts of CountDue of the minutes from first up to before end, but for
	// those that are 0.
	Due(ctx context.Context, queue, first, end int64) ([]Tally, error)
}

// Patience is how long a transaction waits for what others have locked.
type Patience uint8

// The patiences.
const (
	Endless Patience = iota
	Brief            // for others like it, not for one that stays open: up to BriefWait
	Least            // as short as can be
)

// BriefWait is how long Brief is, or less: who has waited for less is run again until then.
const BriefWait = 50 * time.Millisecond

// First is which rows are read with the opening, and locked.
type First struct {
	IDs    []engine.ID // in order
	Names  []Name      // in order of queue and key
	Ranges []Range     // none with IDs or Names
	Queues []int64     // their rows are read without a lock, and nothing that they have
	// Patience is that of the whole transaction.
	Patience Patience
}

// Opened is what the opening of a transaction answers.
type Opened struct {
	Now      time.Time
	Heads    []Heads
	Rows     []*Row
	Memories []Memory
	Ranges   [][]*Row // those of each
}

// Messages are the rows of messages.
type Messages interface {
	// ByID locks the messages that are there of some ids, in the order of ids.
	ByID(ctx context.Context, ids []engine.ID, lock Lock, body bool) ([]*Row, error)
	// ByKey locks those that hold keys, not the dead, in the order of names, and after that
	// reads the memories that there are of them.
	ByKey(ctx context.Context, names []Name, lock Lock, body bool) ([]*Row, []Memory, error)
	// LastDead returns the dead one with a key that died last, at or after since; nil: none.
	LastDead(ctx context.Context, name Name, since int64, body bool) (*Row, error)
	// Ranges answers each range in order.
	Ranges(ctx context.Context, ranges []Range) ([][]*Row, error)
	// Holding counts the leases of a queue that end after an instant.
	Holding(ctx context.Context, queue, ms int64) (int64, error)
	// Bodies fills in the bodies that a Range has left out.
	Bodies(ctx context.Context, rows []*Row) error

	// Insert makes rows of messages that have come just now: they wait, with no attempt. It
	// waits for others that make one of the same key. ErrAgain if
	// by then a key is held, or is remembered and not forgotten by this transaction: it
	// was not so when the transaction looked.
	Insert(ctx context.Context, rows []*Row) error
	// Move writes of rows what changes with their state: all but queue, key, created,
	// policy and content. A message that is no longer dead holds its key: ErrAgain if another does.
	Move(ctx context.Context, rows []*Row) error
	// Replace writes rows whole.
	Replace(ctx context.Context, rows []*Row) error
	Delete(ctx context.Context, ids []engine.ID) error
}

// Memories are the rows of finished messages. Messages.ByKey reads them.
type Memories interface {
	// Over returns those of a queue that are forgotten in a span, both ends with it, and ended at
	// or before an instant, the first first, and locks them, but for those that others hold.
	Over(ctx context.Context, queue, from, until, ended int64, most int) ([]Memory, error)
	// Remember writes memories. A memory of the same key has been forgotten before, unless
	// it came about at the same time: then the later one stays.
	Remember(ctx context.Context, memories []Memory) error
	// Forget deletes memories that ByKey or Over have returned.
	Forget(ctx context.Context, names []Name) error
}
