package sqlengine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

// ErrAgain means that other transactions undid this one. Run it again.
var ErrAgain = errors.New("the transaction was undone by others: run it again")

// ErrBusy is the ErrAgain of a transaction that would have waited longer for locks than its
// LockTimeout allows.
var ErrBusy = fmt.Errorf("%w: others hold what it needs", ErrAgain)

// ErrDeadlock is the ErrAgain of a transaction that the database rolled back because of a
// deadlock or a serialization failure.
var ErrDeadlock = fmt.Errorf("%w: a deadlock", ErrAgain)

// errEnded is the ErrAgain of a transaction that lost its connection.
var errEnded = fmt.Errorf("%w: the connection ended", ErrAgain)

// Again returns the ErrAgain of a transaction that lost its connection. reason is the caller's
// error if repeating does not help.
func Again(reason error) error { return &again{reason} }

type again struct{ reason error }

func (a *again) Error() string { return errEnded.Error() + ": " + a.reason.Error() }
func (a *again) Unwrap() error { return errEnded }

// ErrGone means that some queue numbers do not exist. Queues are never deleted, so a failover
// must have lost them.
var ErrGone = errors.New("a queue does not exist any more")

// ErrInternal marks errors by which the engine itself rolls a transaction back.
var ErrInternal = errors.New("undone")

// Store is a database with tarry's tables. It is safe for concurrent use. Except for
// ErrAgain, its errors go to the engine's callers unchanged. They are *engine.Error, with
// engine.ErrUnavailable for a database that does not answer.
type Store interface {
	// In runs do in a READ COMMITTED transaction, and commits it if do returns nil. It does
	// not repeat the transaction. ErrAgain means that it was rolled back and may run again.
	// If the outcome of the commit is unknown, the error has engine.HintUnknown.
	In(ctx context.Context, op string, do func(Tx) error) error

	// Heads returns the database's time, and for each bound its queue's row and first rows
	// from the bound on. It is one statement and takes no locks. Queues that do not exist are
	// left out.
	Heads(ctx context.Context, from []LowBound) (now time.Time, heads []Heads, err error)

	// Names returns the numbers of queues; 0: there is no such queue. With create it adds
	// missing queues and commits at once, even inside a caller's transaction.
	Names(ctx context.Context, names []string, create bool) ([]int64, error)

	// Queues lists queues by name, beginning after a name.
	Queues(ctx context.Context, after string, limit int) ([]Queue, error)

	// IDs reserves blocks of BlockSize consecutive new ids, and commits at once. It returns the
	// first id of each. They follow the database's clock, so that none repeats after a
	// failover that lost the reservation.
	IDs(ctx context.Context, blocks int) (first []engine.ID, err error)

	// Fold adds up some of the tallies that transactions left, so that few remain to be
	// summed. It begins at a number, and returns the last number and whether there are more.
	// It skips tallies that another process is folding.
	Fold(ctx context.Context, from int64) (last int64, more bool, err error)

	// Measure adds the store's figures to those of the engine.
	Measure(l *figure.List)

	Close()
}

// QueuesMost is the most queues that one statement counts.
const QueuesMost = 500

// BlockSize is how many ids a process reserves at a time.
const BlockSize = 1000

// Sooner is a notice that a queue may have something to lease at an instant.
type Sooner struct {
	Queue string
	At    int64
}

// Tx is a transaction, used from one goroutine. A read with a lock sees what is committed
// when it gets the lock. Writes may be delayed until the next read or the commit, which
// returns their errors; their order is kept. A write of nothing does nothing.
type Tx interface {
	// Open comes first. It returns the database's time, the Heads of queues, and the rows of
	// first, as ByID and ByKey read them. It leaves out queues that do not exist.
	Open(ctx context.Context, first First) (Opened, error)
	// Heads is Store.Heads without the time. It sees this transaction's writes.
	Heads(ctx context.Context, from []LowBound) ([]Heads, error)
	// Leave is Heads at the end of the transaction. heads returns them after the commit.
	Leave(ctx context.Context, from []LowBound) (heads func() []Heads)
	SaveQueue(ctx context.Context, q *Queue)

	Messages
	Memories

	// Tally adds to counts. It neither waits for other transactions nor makes them wait.
	Tally(ctx context.Context, changes []Tally)
	// Stock returns the counts of up to QueuesMost queues, in one statement. Messages due at
	// or before ms are ready; those due in the minute of ms are counted row by row.
	Stock(ctx context.Context, queues []int64, ms int64) (map[int64]Stock, error)
	// Due returns the nonzero counts of CountDue for the minutes before end.
	Due(ctx context.Context, queue, end int64) ([]Tally, error)
}

// LockTimeout is how long a transaction waits for locks of others.
type LockTimeout uint8

// The time-outs.
const (
	NoTimeout    LockTimeout = iota
	BriefTimeout             // up to BriefMost: enough for short transactions, not for one that stays open
	LeastTimeout             // as short as possible
)

// BriefMost bounds BriefTimeout. A Store may wait for less: the engine then repeats the
// transaction.
const BriefMost = 50 * time.Millisecond

// First names the rows that the opening of a transaction reads and locks.
type First struct {
	// Lock has the queues to lock before anything is read, until the transaction ends, in the
	// order of their numbers.
	Lock   []int64
	From   []LowBound  // of the queues whose Heads are read
	IDs    []engine.ID // in order
	Names  []Name      // in order of queue and key
	Ranges []Range     // none with IDs or Names
	Queues []int64     // only the queues' own rows are read, without a lock
	// Whole makes the engine read the first rows of all its queues, from the start of the index.
	Whole bool
	// Timeout holds for the whole transaction.
	Timeout LockTimeout
}

// Opened is the answer to the opening of a transaction.
type Opened struct {
	Now      time.Time
	Heads    []Heads
	Rows     []*Row
	Memories []Memory
	Ranges   [][]*Row // the rows of each range
}

// Messages are the rows of messages.
type Messages interface {
	// ByID reads and locks the messages with these ids, in order. It leaves out missing ones.
	ByID(ctx context.Context, ids []engine.ID, lock Lock, body bool) ([]*Row, error)
	// ByKey reads and locks the live messages with these keys, in the order of names, and then
	// reads the memories of the keys.
	ByKey(ctx context.Context, names []Name, lock Lock, body bool) ([]*Row, []Memory, error)
	// Ended returns the message with a key that died last, if at or after died, and the one
	// that finished last, if at or after finished.
	Ended(ctx context.Context, name Name, died, finished int64) ([]*Row, error)
	// Ranges answers each range in order.
	Ranges(ctx context.Context, ranges []Range) ([][]*Row, error)
	// Holding counts the leases of a queue that end after an instant.
	Holding(ctx context.Context, queue, ms int64) (int64, error)
	// Bodies fills in the bodies that a Range left out.
	Bodies(ctx context.Context, rows []*Row) error

	// Insert adds rows of new messages, which are waiting and have no attempt. It waits for
	// other transactions that insert the same keys. It fails with ErrAgain if a key is held
	// by then, or is remembered and this transaction has not forgotten it.
	Insert(ctx context.Context, rows []*Row)
	// Finish makes messages finished that ended in this way at an instant; never: as Move wrote.
	// It writes kind, ends, ending and, unless by is empty, the worker. It deletes the content.
	Finish(ctx context.Context, ids []engine.ID, ended int64, how engine.Ending, by string)
	// Move writes the columns that change with the state: all but queue, key, created, priority,
	// policy and content. A message that is no longer dead takes its key; ErrAgain if another holds
	// it.
	Move(ctx context.Context, rows []*Row)
	// Rank writes the priorities of rows.
	Rank(ctx context.Context, rows []*Row)
	// Replace writes all columns of rows.
	Replace(ctx context.Context, rows []*Row)
	Delete(ctx context.Context, ids []engine.ID)
}

// Memories are the rows of finished messages. Messages.ByKey reads them.
type Memories interface {
	// Over locks and returns the memories of a queue that expire between from and until,
	// inclusive, and whose messages ended by ended, in order of expiry. It leaves out those that
	// others have locked.
	Over(ctx context.Context, queue, from, until, ended int64, most int) ([]Memory, error)
	// Remember writes memories. Older memories of the same keys were forgotten before. If two
	// transactions remember a key at the same time, the later one wins.
	Remember(ctx context.Context, memories []Memory)
	// Forget deletes memories that ByKey or Over returned.
	Forget(ctx context.Context, names []Name)
}
