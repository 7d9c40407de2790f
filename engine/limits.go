package engine

import "time"

// The bounds of a message, a lease and a call, the same for every engine. They are
// checked above the seam.
const (
	MaxQueueBytes  = 200       // bytes of a queue's name
	MaxKeyBytes    = 512       // bytes of a key
	MaxHeaders     = 64        // headers of a message
	MaxHeaderBytes = 8 << 10   // bytes of all header names and values together
	MaxBackoffs    = 64        // entries of a backoff schedule
	MaxMaxAttempts = 1_000_000 // leases of a message
	MinTTR         = time.Millisecond
	MaxTTR         = 24 * time.Hour
	MaxLease       = 1000   // messages of one lease call
	MaxBatch       = 10_000 // messages, refs or settlements of one call
)
