package engine

import "context"

// Readier is an engine that can tell why it would not take a message now.
type Readier interface {
	// Ready returns nil when a push, and all else, may be expected to succeed:
	// ErrNoSpace when the disk is full, ErrUnavailable when the engine has stopped or what
	// is behind it does not answer. It is cheap enough to be asked every second, and
	// changes nothing.
	Ready(ctx context.Context) error
}
