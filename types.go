package tarry

import (
	"github.com/tarryhq/tarry/engine"
)

// These are the words of package engine that appear in this package's calls.
type (
	// ID names a message within its engine; outside the program it is decimal.
	ID = engine.ID
	// Info is a message as it stands.
	Info = engine.Info
	// State is where a message stands: Scheduled, Ready, Leased, Dead or Finished.
	State = engine.State
	// Outcome is what a push did: Created, Kept or Replaced.
	Outcome = engine.Outcome
	// Conflict is what a push does when a live message holds its key.
	Conflict = engine.Conflict
	// Ref names a message by key or id; see ByKey and ByID.
	Ref = engine.Ref
	// Draft is a message to push, made by NewDraft or Topic.Draft.
	Draft = engine.Message
	// MessageHeader is one name and value that travel with a message; see Header.
	MessageHeader = engine.Header
	// When is an instant: At if that is set, else In from the engine's now.
	When = engine.When
	// Want asks for messages of one queue; see Client.LeaseNow.
	Want = engine.Want
	// Grant is the answer to all wants of a call.
	Grant = engine.Grant
	// Granted is what one Want got.
	Granted = engine.Granted
	// Lease is a leased message with the token that settles it.
	Lease = engine.Lease
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
	// Redriven counts what Client.Redrive brought back, and what it skipped.
	Redriven = engine.Redriven
	// Settings are kept with a queue; see Client.Configure.
	Settings = engine.Settings
	// Terms are what a push, or the settings of its queue, say of how a message is handled.
	Terms = engine.Terms
	// Ending is how a finished message went: WasAcked, WasCancelled or WasExpired.
	Ending = engine.Ending
	// PurgeAlso says what Client.Purge removes besides: PurgeDead, PurgeFinished.
	PurgeAlso = engine.PurgeAlso
	// QueueInfo is what a queue holds.
	QueueInfo = engine.QueueInfo
	// Forecast is what Client.Forecast returns.
	Forecast = engine.Forecast
	// Bucket counts messages falling due within one step of a forecast.
	Bucket = engine.Bucket
	// Capabilities is what an engine can do.
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
// key. Those that change it fail with ErrLeased while it is leased.
const (
	Reject   = engine.Reject  // fail with ErrExists
	Keep     = engine.Keep    // change nothing, and answer with the live one
	Replace  = engine.Replace // new content, new due time
	KeepDue  = engine.KeepDue // new content, old due time: the last of many within a window
	KeepBody = engine.Rearm   // old content, new due time: what Client.Rearm pushes with
)

// The endings of finished messages: those of which the key is remembered.
const (
	WasAcked     = engine.Acked
	WasCancelled = engine.Cancelled
	WasExpired   = engine.Expired
)

// What Client.Purge may remove besides.
const (
	PurgeDead     = engine.PurgeDead
	PurgeFinished = engine.PurgeFinished
)

// Never, as the ExpireAfter or Remember of Terms, is not at all, whatever the settings of
// the queue say.
const Never = engine.Never

// The actions of a settlement. Handlers do not need them: what they return says the
// same.
const (
	DoAck     = engine.Ack     // handled: gone
	DoRetry   = engine.Retry   // failed: again at Settlement.When, or after its backoff
	DoSnooze  = engine.Snooze  // not now: again at Settlement.When, the attempt given back
	DoRelease = engine.Release // not started: ready again, the attempt given back
	DoBury    = engine.Bury    // hopeless: dead
	DoExtend  = engine.Extend  // still at it: the deadline becomes now + Settlement.TTR
)

// ParseID reads the decimal form of an id.
func ParseID(s string) (ID, error) { return engine.ParseID(s) }
