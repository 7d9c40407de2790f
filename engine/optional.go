package engine

import (
	"context"
	"time"
)

// Claimer supports settle on read: code that comes across an overdue message takes it at
// once.
type Claimer interface {
	// Claim leases the message if it is due. It fails with ErrNotDue when the message is
	// scheduled or its queue is paused, with ErrLeased when it is leased, and with
	// ErrNotFound. want.Queue and want.Max are not used.
	//
	// With ref.IfState it takes what is in exactly that state, also what is scheduled or, by
	// id, dead, and also from a paused queue. A due time in the future becomes now; the expiry
	// stays. A dead message is live again, as after Redrive, but keeps its attempt and its due
	// time; MaxPending does not matter. That lasts like a reschedule, even where the lease is
	// lost. It fails with ErrStale when the message is in another state, with ErrLeased when
	// IfState is Leased and it is, and with ErrExists when a live message holds the key of the
	// dead one; all of these come before the limits of the queue's settings.
	Claim(ctx context.Context, ref Ref, want Want) (Lease, error)
}

// Peeker shows what is next.
type Peeker interface {
	// Peek returns for each queue the ready message that is first in the order of Lease, and
	// the zero Info where none is ready. Pauses, InFlight and Rate do not matter. It first
	// lapses and expires, as Lease does. Content and failures may be missing.
	Peek(ctx context.Context, queues []string) ([]Info, error)
}

// Finder finds messages when their queue is not known.
type Finder interface {
	// Find returns for each id the queue of the live or dead message that has it; "": none.
	Find(ctx context.Context, ids []ID) ([]string, error)
}

// AtomicPusher pushes many messages atomically.
type AtomicPusher interface {
	// PushAtomic stores all messages or none. If any fails, the error is that of the first
	// that failed, and the results say which. CheckAtomic bounds the call.
	PushAtomic(ctx context.Context, msgs []Message) ([]PushResult, error)
}

// ListQuery asks for a page of a queue's messages in one state.
type ListQuery struct {
	Queue string
	State State  // required: any but Gone
	After string // Page.Next of the previous page of the query, which may change Limit and Body; "": from the start
	Limit int    // 1 to 1000; a page may be shorter, when its bodies reach AnswerBytes, or even empty
	Body  bool   // with bodies

	// From and To bound the time by which the state is ordered: due, deadline, death or end;
	// To itself is excluded. Zero: unbounded.
	From, To time.Time
	Newest   bool // the latest first
}

// Page is a part of a list.
type Page struct {
	Messages []Info
	Next     string // "": this was the last page
}

// Lister lists messages: scheduled and ready by (due, id), leased by (deadline, id), dead
// by (died, id), finished by (ended, id), or in reverse. A message that does not change meanwhile appears on exactly
// one page.
type Lister interface {
	List(ctx context.Context, q ListQuery) (Page, error)
}

// QueueInfo is what a queue holds.
type QueueInfo struct {
	Queue                          string
	Scheduled, Ready, Leased, Dead int64
	Finished                       int64     // remembered keys; an expired one may count until it is cleaned up
	History                        int64     // finished messages listed, likewise
	NextDue                        time.Time // earliest due time of scheduled messages; zero: none
	OldestReady                    time.Time // earliest due time of ready messages; zero: none
	Paused                         bool
	PausedUntil                    time.Time // zero while Paused: until resumed
}

// Counter reads counters that are kept with the data.
type Counter interface {
	// Queue returns what a queue holds; an unknown queue is empty.
	Queue(ctx context.Context, queue string) (QueueInfo, error)
	// Queues lists the queues that hold messages, are paused or have settings, ordered by
	// name, starting after the name after; next is "" at the end.
	Queues(ctx context.Context, after string, limit int) (queues []QueueInfo, next string, err error)
}

// Forecast counts the scheduled and ready messages of a queue by due time.
type Forecast struct {
	Overdue int64    // due before the first bucket
	Buckets []Bucket // one a step; the first starts with the current minute
}

// Bucket counts the messages that fall due within one step from From.
type Bucket struct {
	From  time.Time
	Count int64
}

// Forecaster counts messages by due time.
type Forecaster interface {
	// Forecast covers the time up to span ahead. step is a whole number of minutes, span a
	// whole number of steps, at most 10,000. All span/step buckets are returned.
	Forecast(ctx context.Context, queue string, step, span time.Duration) (Forecast, error)
}

// Pauser stops and starts leasing and claiming from a queue.
type Pauser interface {
	// Pause lasts for d, or until Resume when d is 0; a second Pause replaces the first.
	Pause(ctx context.Context, queue string, d time.Duration) error
	Resume(ctx context.Context, queue string) error
}

// PurgeAlso says which other messages a purge removes.
type PurgeAlso uint8

// Other messages that a purge may remove.
const (
	PurgeDead     PurgeAlso = 1 << iota // dead messages
	PurgeFinished                       // finished messages: frees their keys and empties the history
)

// Purger empties a queue.
type Purger interface {
	// Purge removes the messages that were scheduled or ready when it began, and those that
	// also adds; never leased ones. The keys of removed messages are not remembered. It works
	// in chunks: when ctx ends midway it returns how many are gone, with the error. A finished
	// message that is listed and whose key is remembered may count twice.
	Purge(ctx context.Context, queue string, also PurgeAlso) (int64, error)
}

// Configurer stores the settings of queues.
type Configurer interface {
	// Settings returns the settings of a queue and their revision; they are empty for a
	// queue that was never configured.
	Settings(ctx context.Context, queue string) (s Settings, revision string, err error)

	// Configure replaces all settings of a queue and returns their revision. It fails with
	// ErrStale if revision is given and is not the current one.
	Configure(ctx context.Context, queue string, s Settings, revision string) (string, error)
}

// Redriver makes dead messages ready again.
type Redriver interface {
	// Redrive makes dead messages ready, due now, with attempt 0: those with the given ids,
	// or without ids the limit oldest by death (limit <= 0: all). A message is skipped, and
	// counted as such, when a live message holds its key or when it does not exist.
	Redrive(ctx context.Context, queue string, ids []ID, limit int) (Redriven, error)
}

// Redriven is the answer to Redrive.
type Redriven struct{ Redriven, Skipped int64 }

// Backup describes a backup.
type Backup struct {
	Taken  time.Time // it contains everything answered before
	Files  int       // number of files
	Bytes  int64     // their total size
	Copied int64     // bytes written; the others are shared with the store or the previous backup
}

// Backuper makes backups while it serves.
type Backuper interface {
	// Backup updates the backup of that name to the current content. On return it contains,
	// durably, everything answered before the call; after an error it is unchanged. For an
	// engine that stores messages in a directory, the name is a directory.
	Backup(ctx context.Context, name string) (Backup, error)
}

// Whole is an engine with all the calls of Full.
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
	Peeker
	Finder
}
