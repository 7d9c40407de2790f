package httpengine

import (
	"context"
	"fmt"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// ask makes a request and reads its answer.
func ask[T any](ctx context.Context, e *Engine, c call, read func(r *wire.Reader) T) (got T, err error) {
	if err := e.calls.Enter(ctx, c.op); err != nil {
		return got, err
	}
	defer e.calls.Leave()
	return askBegun(ctx, e, c, read)
}

// askBegun is ask within a call that has begun.
func askBegun[T any](ctx context.Context, e *Engine, c call, read func(r *wire.Reader) T) (got T, err error) {
	b, err := e.roundTrip(ctx, c)
	if err != nil {
		return got, err
	}
	defer b.free()
	if err := wire.ReadAnswer(b.b, func(r *wire.Reader) { got = read(r) }); err != nil {
		return got, problem("%v", err)
	}
	return got, nil
}

// results reads an answer with one result for each of n items.
func results[T any](n int, read func(r *wire.Reader, i int) T) func(r *wire.Reader) []T {
	return func(r *wire.Reader) []T {
		all := make([]T, 0, n)
		r.Results(func() {
			if len(all) == n {
				r.Wrong("more than %d results", n)
			}
			all = append(all, read(r, min(len(all), n-1)))
		})
		if len(all) < n {
			r.Wrong("%d results for %d items", len(all), n)
		}
		return all
	}
}

// failed returns the error of an item in the form that the engine behind the server gave it.
func failed(err error, op string, ref engine.Ref) error {
	if e, ok := err.(*wire.Error); ok {
		return e.Err(op, ref)
	}
	return err
}

// problem returns the error of an answer that does not fit the request.
func problem(format string, args ...any) error {
	return &engine.Error{Op: "read", Err: engine.ErrUnavailable, Hint: "the server's answer makes no sense: " + fmt.Sprintf(format, args...)}
}
