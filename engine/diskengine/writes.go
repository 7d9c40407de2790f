package diskengine

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// writes is what one or several changes write, in one batch. Many entries are
// collected by their kind, because Pebble inserts neighbours faster: what comes
// together mostly has neighbouring ids.
type writes struct {
	db    *pebble.DB
	batch *pebble.Batch
	kinds [4]*pebble.Batch
}

func kindOf(kind byte) int {
	switch kind {
	case kindMessage:
		return 0
	case kindLease:
		return 1
	case kindDue:
		return 2
	}
	return 3
}

func (w *writes) begin(db *pebble.DB) { w.db, w.batch = db, db.NewBatch() }

// split has the entries to come collected kind by kind.
func (w *writes) split() {
	for i := range w.kinds {
		w.kinds[i] = w.db.NewBatch()
	}
}

// into returns the batch in which a key is written: always the same for the same.
func (w *writes) into(key []byte) *pebble.Batch {
	if w.kinds[0] == nil {
		return w.batch
	}
	return w.kinds[kindOf(key[0])]
}

// join adds what was collected to the batch.
func (w *writes) join() (err error) {
	for i, b := range w.kinds {
		if b != nil && !b.Empty() {
			err = errors.Join(err, w.batch.Apply(b, nil))
		}
		w.kinds[i] = nil
		if b != nil {
			err = errors.Join(err, b.Close())
		}
	}
	return err
}

// close gives up what was not applied.
func (w *writes) close() {
	for _, b := range w.kinds {
		if b != nil {
			_ = b.Close()
		}
	}
	_ = w.batch.Close()
}
