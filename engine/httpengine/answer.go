package httpengine

import (
	"context"
	"fmt"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// ask makes a request and reads its answer.
func ask[T any](ctx context.Context, e *Engine, c call, o *wire.Object[T]) (got T, err error) {
	if err := e.calls.Enter(ctx, c.op); err != nil {
		return got, err
	}
	defer e.calls.Leave()
	return askBegun(ctx, e, c, o)
}

// askBegun is ask within a call that has begun.
func askBegun[T any](ctx context.Context, e *Engine, c call, o *wire.Object[T]) (got T, err error) {
	b, err := e.roundTrip(ctx, c)
	if err != nil {
		return got, err
	}
	defer b.free()
	if got, err = o.Answer(b.b); err != nil {
		return got, problem("%v", err)
	}
	return got, nil
}

// askEach makes a request for n items within a call that has begun, and reads the result of
// each.
func askEach[T, V any](ctx context.Context, e *Engine, c call, n int, o *wire.Object[T], turn func(i int, result *T) V) ([]V, error) {
	b, err := e.roundTrip(ctx, c)
	if err != nil {
		return nil, err
	}
	defer b.free()
	all, got := make([]V, 0, n), 0
	err = wire.ReadResults(b.b, o, func(result *T) {
		if got++; got <= n {
			all = append(all, turn(got-1, result))
		}
	})
	switch {
	case err != nil:
		return nil, problem("%v", err)
	case got != n:
		return nil, problem("%d results for %d items", got, n)
	}
	return all, nil
}

// inParts makes as few requests for all items as the server's limits allow. ask makes one
// request, for the first n items of the rest. If one of several requests fails, each of its
// items gets the error. Once ctx has ended or the engine is closed, no further request is made:
// its items get an error that does not leave open what became of them, and Close waits for one
// request only.
func inParts[T, R any](ctx context.Context, e *Engine, op string, all []T, ask func(rest []T) (n int, got []R, err error), lost func(err error) R) ([]R, error) {
	if err := e.calls.Enter(ctx, op); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	results := make([]R, 0, len(all))
	for len(results) < len(all) {
		if len(results) > 0 {
			if err := e.calls.Enter(ctx, op); err != nil {
				return append(results, slices.Repeat([]R{lost(err)}, len(all)-len(results))...), nil
			}
			e.calls.Leave() // this call has entered already
		}
		n, got, err := ask(all[len(results):])
		if err != nil && n == len(all) {
			return nil, err
		}
		if err != nil {
			got = slices.Repeat([]R{lost(err)}, n)
		}
		results = append(results, got...)
	}
	return results, nil
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
