package engine

import "context"

// Trouble is something that is wrong with an engine though it takes messages, and what to do about it.
type Trouble struct{ Message, Hint string }

// Troubler is an engine that can tell what is wrong with it though it is ready.
type Troubler interface {
	// Troubles tells it from memory and at once, as Figures does.
	Troubles() []Trouble
}

// Readier is an engine that can tell why it would not take a message now.
type Readier interface {
	// Ready returns nil when a push, and all else, may be expected to succeed:
	// ErrNoSpace when the disk is full, ErrUnavailable when the engine has stopped or what
	// is behind it does not answer. It is cheap enough to be asked every second, and
	// changes nothing.
	Ready(ctx context.Context) error
}
