package server

import "context"

// turns bound how many do something at a time; others wait until it is their turn. What is
// made in a turn is written after it: who reads slowly holds up nobody.
type turns chan struct{}

// take has f run in a turn, or returns why whoever asked no longer waits for one.
func (t turns) take(ctx context.Context, f func() error) error {
	select {
	case t <- struct{}{}:
		defer func() { <-t }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}
