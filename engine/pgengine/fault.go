package pgengine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tarryhq/tarry/engine"
)

// fault makes an engine.Error of what the database or the way to it says. committing: the
// call may have been carried out all the same.
func fault(op string, err error, committing bool) error {
	if err == nil {
		return nil
	}
	var known *engine.Error
	if errors.As(err, &known) {
		return err
	}
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		return &engine.Error{Op: op, Err: sentinel(pg), Hint: "PostgreSQL says: " + pg.Message + " (" + pg.Code + ")"}
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		e := &engine.Error{Op: op, Err: err}
		if committing {
			e.Hint = engine.HintUnknown
		}
		return e
	case committing:
		return &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: engine.HintUnknown}
	}
	return &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: err.Error()}
}

// sentinel is what an error of the database means to callers.
func sentinel(pg *pgconn.PgError) error {
	switch pg.Code {
	case "53100", "53200": // disk_full, out_of_memory
		return engine.ErrLimit
	case "42501": // insufficient_privilege
		return engine.ErrForbidden
	}
	return engine.ErrUnavailable
}
