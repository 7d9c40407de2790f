package server

import "context"

// turns bound how many requests do something at a time; others wait for their turn. Answers
// are written after the turn, so that a slow reader holds up no other.
type turns chan struct{}

// take runs f in a turn, or returns why ctx has ended.
func (t turns) take(ctx context.Context, f func() error) error {
	select {
	case t <- struct{}{}:
		defer func() { <-t }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}
