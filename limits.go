package tarry

import "github.com/tarryhq/tarry/engine"

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
