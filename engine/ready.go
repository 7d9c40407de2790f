package engine

import "context"

// Trouble is a problem of an engine that still accepts messages, and what to do about it.
type Trouble struct{ Message, Hint string }

// Troubler is an engine that reports problems while it is ready.
type Troubler interface {
	// Troubles answers at once from memory, as Figures does.
	Troubles() []Trouble
}

// Readier is an engine with a readiness check.
type Readier interface {
	// Ready returns nil when any call can be expected to succeed. It returns ErrNoSpace when
	// the disk is full, and ErrUnavailable when the engine has stopped or its store does not
	// answer. It is cheap enough to call every second, and changes nothing.
	Ready(ctx context.Context) error
}
