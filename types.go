package tarry

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// Types of package engine that appear in this package's calls.
type (
	// ID names a message within its engine; outside the program it is decimal.
	ID = engine.ID
	// Info describes a message and its current state.
	Info = engine.Info
	// Failure is a failed attempt of a message.
	Failure = engine.Failure
	// State is the state of a message: Scheduled, Ready, Leased, Dead or Finished.
	State = engine.State
	// Outcome is what a push did: Created, Kept or Replaced.
	Outcome = engine.Outcome
	// Conflict is what a push does when a live message holds its key.
	Conflict = engine.Conflict
	// Ref names a message by key or id; see ByKey and ByID.
	Ref = engine.Ref
	// Draft is a message to push, made by NewDraft or Topic.Draft.
	Draft = engine.Message
	// MessageHeader is a name and value stored with a message; see Header.
	MessageHeader = engine.Header
	// When is an instant: At if that is set, else In from the engine's now.
	When = engine.When
	// Lease is a leased message with the token that settles it.
	Lease = engine.Lease
	// LeasedMessages is the answer to a LeaseRequest.
	LeasedMessages = engine.Waited
	// Told reports on a queue besides its messages.
	Told = engine.Told
	// Settlement settles a lease.
	Settlement = engine.Settlement
	// Action is what a settlement does: DoAck, DoRetry, DoSnooze, DoRelease, DoBury or
	// DoExtend.
	Action = engine.Action
	// SettleResult answers a Settlement.
	SettleResult = engine.Settled
	// ListQuery asks for a page of a queue's messages in one state; see Client.ListPage.
	ListQuery = engine.ListQuery
	// Page is a part of a list.
	Page = engine.Page
	// Redriven counts what Client.Redrive made ready, and what it skipped.
	Redriven = engine.Redriven
	// Settings are the stored settings of a queue; see Client.Configure.
	Settings = engine.Settings
	// Terms are the options of a message that a push, or the settings of its queue, may
	// set.
	Terms = engine.Terms
	// Ending is how a finished message ended: WasAcked, WasCancelled or WasExpired.
	Ending = engine.Ending
	// PurgeAlso says what else Client.Purge removes: PurgeDead, PurgeFinished.
	PurgeAlso = engine.PurgeAlso
	// QueueInfo is what a queue holds.
	QueueInfo = engine.QueueInfo
	// Forecast is what Client.Forecast returns.
	Forecast = engine.Forecast
	// Bucket counts the messages that fall due within one step of a forecast.
	Bucket = engine.Bucket
	// Capabilities are what an engine can do, and its limits.
	Capabilities = engine.Capabilities
)

// The states of a message.
const (
	Gone      = engine.Gone
	Scheduled = engine.Scheduled
	Ready     = engine.Ready
	Leased    = engine.Leased
	Dead      = engine.Dead
	Finished  = engine.Finished
)

// The outcomes of a push.
const (
	Created  = engine.Created
	Kept     = engine.Kept
	Replaced = engine.Replaced
)

// The conflict policies, for OnConflict: what a push does when a live message holds its
// key. Policies that change the live message fail with ErrLeased while it is leased.
const (
	Reject  = engine.Reject  // fail with ErrExists
	Keep    = engine.Keep    // change nothing, and return the live one
	Replace = engine.Replace // new content, new due time
	KeepDue = engine.KeepDue // new content, old due time: keeps the last of many pushes before the due time
	Rearm   = engine.Rearm   // old content, new due time: what Client.Rearm pushes with
)

// The endings of finished messages.
const (
	WasAcked     = engine.Acked
	WasCancelled = engine.Cancelled
	WasExpired   = engine.Expired
)

// What else Client.Purge may remove.
const (
	PurgeDead     = engine.PurgeDead
	PurgeFinished = engine.PurgeFinished
)

// Never turns off ExpireAfter or Remember in Terms, whatever the queue's settings say, and
// History in Settings, whatever the store says.
const Never = engine.Never

// The actions of a settlement. Handlers do not need them: they decide by what they return.
const (
	DoAck     = engine.Ack     // handled: gone
	DoRetry   = engine.Retry   // failed: again at Settlement.When, or after its backoff
	DoSnooze  = engine.Snooze  // not now: again at Settlement.When, without counting the attempt
	DoRelease = engine.Release // not started: ready again, without counting the attempt
	DoBury    = engine.Bury    // hopeless: dead
	DoExtend  = engine.Extend  // still running: the deadline becomes now + Settlement.TTR
)

// ParseID reads the decimal form of an id.
func ParseID(s string) (ID, error) { return engine.ParseID(s) }

// Limits of a message, checked before any engine sees it.
const (
	MaxQueueBytes  = engine.MaxQueueBytes
	MaxKeyBytes    = engine.MaxKeyBytes
	MaxHeaders     = engine.MaxHeaders
	MaxHeaderBytes = engine.MaxHeaderBytes
	MaxBackoffs    = engine.MaxBackoffs
	MaxMaxAttempts = engine.MaxMaxAttempts
	MinTTR         = engine.MinTTR
	MaxTTR         = engine.MaxTTR
	MaxLease       = engine.MaxLease
	MaxBatch       = engine.MaxBatch
	MaxWorkerBytes = engine.MaxWorkerBytes
	MaxFailures    = engine.MaxFailures
	MaxAtomic      = engine.MaxAtomic
	MaxAtomicBytes = engine.MaxAtomicBytes
)

// Defaults of a pushed message, for what neither the push nor the queue's settings set.
const (
	DefaultPriority    = engine.DefaultPriority
	DefaultMaxAttempts = engine.DefaultMaxAttempts
	DefaultTTR         = engine.DefaultTTR
	DefaultMaxBody     = 1 << 20
)

// DefaultMaxWaitQueues is the default of Config.MaxWaitQueues.
const DefaultMaxWaitQueues = 250_000

// ParseDuration accepts what time.ParseDuration does, and leading whole or fractional days:
// "1500ms", "30m", "7d", "1d12h", "-1.5d". A day is 24 hours. It fails with ErrInvalid.
func ParseDuration(s string) (time.Duration, error) {
	d, err := duration.Parse(s)
	switch {
	case errors.Is(err, duration.ErrRange):
		return 0, engine.Invalid("parse duration", Ref{}, "%q is %v", engine.Clip(s), err)
	case err != nil:
		return 0, engine.Invalid("parse duration", Ref{}, `%q is not a duration; examples are "1500ms", "30m", "48h" and "7d"`, engine.Clip(s))
	}
	return d, nil
}

// FormatDuration formats d exactly, without trailing zero units: "30m", "48h", "1h30m". It
// uses no days, so that time.ParseDuration reads it too.
func FormatDuration(d time.Duration) string { return duration.Format(d) }
