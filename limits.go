package tarry

import "github.com/tarryhq/tarry/engine"

// The limits on what a message may be, checked before any engine sees it.
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
	MaxAtomic      = engine.MaxAtomic
	MaxAtomicBytes = engine.MaxAtomicBytes
)

// The defaults of a pushed message, where neither it nor its queue's settings say
// something else.
const (
	DefaultPriority    = engine.DefaultPriority
	DefaultMaxAttempts = engine.DefaultMaxAttempts
	DefaultTTR         = engine.DefaultTTR
	DefaultMaxBody     = 1 << 20
)

// DefaultMaxWaitQueues is how many queues all leases that wait may name together, where
// Config.MaxWaitQueues does not say.
const DefaultMaxWaitQueues = 250_000
