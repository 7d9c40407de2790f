package engine

import (
	"context"
	"time"
)

// Claimer settles on read: whoever meets an overdue message takes it there and
// then.
type Claimer interface {
	// Claim leases the message if it is due. ErrNotDue when scheduled or when its
	// queue is paused, ErrLeased when someone holds it, ErrNotFound. want.Queue and
	// want.Max are not used.
	Claim(ctx context.Context, ref Ref, want Want) (Lease, error)
}

// AtomicPusher pushes many messages as one.
type AtomicPusher interface {
	// PushAtomic keeps all messages or none. When any fails the error is that of
	// the first that failed, and the results say which. CheckAtomic says how many
	// there may be.
	PushAtomic(ctx context.Context, msgs []Message) ([]PushResult, error)
}

// ListQuery asks for a page of a queue's messages in one state.
type ListQuery struct {
	Queue string
	State State  // required: Scheduled, Ready, Leased or Dead
	After string // Page.Next of the page before, of the same query but for Limit and Body; "": from the start
	Limit int    // 1 to 1000; a page is shorter where its bodies reach AnswerBytes, and may even be empty before the last
	Body  bool   // with bodies

	// From and To bound the time by which the state is ordered: due, deadline or death;
	// To itself is excluded. Zero: unbounded.
	From, To time.Time
	Newest   bool // the other way round: the latest first
}

// Page is a part of a list.
type Page struct {
	Messages []Info
	Next     string // "": this was the last
}

// Lister lists messages in the order in which their states end: scheduled and
// ready by (due, id), leased by (deadline, id), dead by (died, id), or in the reverse of
// it. A message that
// does not change meanwhile appears exactly once over all pages.
type Lister interface {
	List(ctx context.Context, q ListQuery) (Page, error)
}

// QueueInfo is what a queue holds.
type QueueInfo struct {
	Queue                          string
	Scheduled, Ready, Leased, Dead int64
	Finished                       int64     // keys remembered; one whose time is over may count until something has met it
	NextDue                        time.Time // least due of the scheduled; zero: none
	OldestReady                    time.Time // least due of the ready; zero: none
	Paused                         bool
	PausedUntil                    time.Time // zero while Paused: for good
}

// Counter counts, from counters kept with the data.
type Counter interface {
	// Queue tells what one queue holds; an unknown queue is an empty one.
	Queue(ctx context.Context, queue string) (QueueInfo, error)
	// Queues lists by name the queues that hold something, are paused or have settings, beginning
	// behind the name after; next is "" at the end.
	Queues(ctx context.Context, after string, limit int) (queues []QueueInfo, next string, err error)
}

// Forecast counts the scheduled and ready messages of a queue by due time.
type Forecast struct {
	Overdue int64    // due before the first bucket
	Buckets []Bucket // one a step; the first begins at the minute of now
}

// Bucket counts the messages that fall due from From on, for one step.
type Bucket struct {
	From  time.Time
	Count int64
}

// Forecaster tells what is coming.
type Forecaster interface {
	// Forecast looks span ahead. step is a whole number of minutes, span a whole number
	// of steps, at most 10,000. All span/step buckets are returned.
	Forecast(ctx context.Context, queue string, step, span time.Duration) (Forecast, error)
}

// Pauser stops and starts leasing and claiming of a queue.
type Pauser interface {
	// Pause lasts for d, for good when d is 0; a second Pause replaces the first.
	Pause(ctx context.Context, queue string, d time.Duration) error
	Resume(ctx context.Context, queue string) error
}

// PurgeAlso says what a purge removes besides.
type PurgeAlso uint8

// What a purge may remove besides.
const (
	PurgeDead     PurgeAlso = 1 << iota // the dead
	PurgeFinished                       // the memory of finished ones: their keys are free
)

// Purger empties a queue.
type Purger interface {
	// Purge removes what was scheduled or ready when it began, and what also says;
	// never leased ones. What it removes is not remembered. It works in chunks: when ctx
	// ends midway it returns how many are gone, with the error.
	Purge(ctx context.Context, queue string, also PurgeAlso) (int64, error)
}

// Configurer keeps the settings of queues.
type Configurer interface {
	// Settings tells the settings of a queue and their revision; a queue that was never
	// configured has none set.
	Settings(ctx context.Context, queue string) (s Settings, revision string, err error)

	// Configure stores the settings of a queue, all of them, and answers with their
	// revision. If a revision is given and not the one that stands it fails with
	// ErrStale.
	Configure(ctx context.Context, queue string, s Settings, revision string) (string, error)
}

// Redriver brings dead messages back.
type Redriver interface {
	// Redrive makes dead messages ready, due now, with attempt 0: those with the
	// ids given, else the first limit ones by death (limit <= 0: all). One whose key a live message
	// holds, or that is not there, is skipped and counted as such.
	Redrive(ctx context.Context, queue string, ids []ID, limit int) (Redriven, error)
}

// Redriven is the answer to Redrive.
type Redriven struct{ Redriven, Skipped int64 }

// Backup tells of a backup.
type Backup struct {
	Taken  time.Time // what was answered before is in it
	Files  int       // it consists of
	Bytes  int64     // in them
	Copied int64     // of these bytes that were written; the others are shared with the store or the backup before
}

// Backuper makes copies of what it keeps, while it serves.
type Backuper interface {
	// Backup brings the backup of that name to what is kept now. What was answered before the
	// call is in it, and durable, on return; after an error it is what it was before. A name is
	// a directory for an engine that keeps messages in one.
	Backup(ctx context.Context, name string) (Backup, error)
}

// Whole is an engine with all the calls that Full claims.
type Whole interface {
	Engine
	Claimer
	Lister
	Counter
	Forecaster
	Pauser
	Purger
	Redriver
	Configurer
}
