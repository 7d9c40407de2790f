package server

import "context"

// turns bounds how many requests do something at a time; others wait for their turn. The
// answer is written after the turn, so that a slow reader delays no other request.
type turns chan struct{}

// take runs f in a turn. If ctx ends first, it returns why.
func (t turns) take(ctx context.Context, f func() error) error {
	select {
	case t <- struct{}{}:
		defer func() { <-t }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}
