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
	// State is where a message stands: Scheduled, Ready, Leased or Dead.
	State = engine.State
	// Outcome is what a push did: Created, Kept or Replaced.
	Outcome = engine.Outcome
	// Conflict is what a push does when a live message holds its key.
	Conflict = engine.Conflict
	// Ref names a message by key or id; see ByKey and ByID.
	Ref = engine.Ref
	// Lease is a leased message with the token that settles it.
	Lease = engine.Lease
	// Settlement settles a lease.
	Settlement = engine.Settlement
	// Settled answers a Settlement.
	Settled = engine.Settled
	// QueueInfo is what a queue holds.
	QueueInfo = engine.QueueInfo
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
)

// The outcomes of a push.
const (
	Created  = engine.Created
	Kept     = engine.Kept
	Replaced = engine.Replaced
)

// The conflict policies, for OnConflict.
const (
	Reject  = engine.Reject
	Keep    = engine.Keep
	Replace = engine.Replace
	KeepDue = engine.KeepDue
	Rearm   = engine.Rearm
)
