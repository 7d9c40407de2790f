package sqlengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// Find returns for each id the queue of the live or dead message that has it; "": none.
func (e *Engine) Find(ctx context.Context, ids []engine.ID) ([]string, error) {
	if err := e.calls.Enter(ctx, "find"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	known := sorted(slices.DeleteFunc(slices.Clone(ids), func(id engine.ID) bool { return int64(id) <= 0 }))
	queues := make(map[engine.ID]string, len(known))
	for some := range slices.Chunk(known, chunk) {
		err := e.look(ctx, "find", nil, First{}, func(w *work) error {
			rows, err := w.tx.ByID(w.ctx, some, None, false)
			if err != nil || len(rows) == 0 {
				return err
			}
			if err := w.openQueues(rows); err != nil {
				return err
			}
			for _, x := range w.adopt(rows) {
				if !x.gone {
					queues[x.ID] = w.queues[x.Queue].Name
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	found := make([]string, len(ids))
	for i, id := range ids {
		found[i] = queues[id]
	}
	return found, nil
}

// openQueues adds the queues of rows to a work that was opened without them.
func (w *work) openQueues(rows []*Row) error {
	queues := make([]int64, len(rows))
	for i, x := range rows {
		queues[i] = x.Queue
	}
	from := w.e.cache.lowBounds(sorted(queues))
	heads, err := w.tx.Heads(w.ctx, from)
	w.addQueues(heads)
	if err == nil && len(heads) < len(from) {
		err = ErrGone
	}
	return err
}
