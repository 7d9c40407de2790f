package tarry

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

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
)

// The defaults of a pushed message.
const (
	DefaultPriority    = 1024
	DefaultMaxAttempts = 20
	DefaultTTR         = time.Minute
	DefaultMaxBody     = 1 << 20
)
