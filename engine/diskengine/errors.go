package diskengine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tarryhq/tarry/engine"
)

// broken is the error of every call once the store has failed.
func broken(op string, cause error) error {
	return &engine.Error{Op: op, Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, cause),
		Hint: "the store stopped at this error; see to the disk and open it again: nothing that was answered is lost"}
}

// wrap gives an error of a whole call the engine's shape.
func (e *Engine) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	var ours *engine.Error
	switch {
	case errors.As(err, &ours), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case e.store.failed() != nil:
		return broken(op, e.store.failed())
	}
	return &engine.Error{Op: op, Err: err}
}

// damaged tells the operator of a message that cannot be read. It stays where it
// is and is passed over.
func (e *Engine) damaged(q *queue, id engine.ID, err error) {
	e.log.Error("tarry disk: a message cannot be read and is passed over; cancel it by its id to be rid of it",
		"queue", q.name, "id", id.String(), "error", err)
}
