package pgengine

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/internal/calls"
)

// outcomes waits for the ends of callers' transactions, and then sends their notices. It asks
// the database about all of them at once, less often the longer they take.
type outcomes struct {
	s      *store
	ctx    context.Context
	mu     sync.Mutex
	open   map[string][]*sqlengine.Within // by the id of the transaction
	asking bool
	tasks  sync.WaitGroup
}

// add adds a transaction.
func (o *outcomes) add(xid string, w *sqlengine.Within) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = make(map[string][]*sqlengine.Within)
	}
	o.open[xid] = append(o.open[xid], w)
	if !o.asking && o.ctx.Err() == nil {
		o.asking = true
		o.tasks.Go(o.run)
	}
}

// run asks until no transaction is left or the engine is closed.
func (o *outcomes) run() {
	pause := calls.Pause{Least: askLeast, Most: askMost}
	for pause.Wait(o.ctx) {
		o.mu.Lock()
		xids := slices.Collect(maps.Keys(o.open))
		o.asking = len(xids) > 0
		o.mu.Unlock()
		if len(xids) == 0 {
			return
		}
		ended, err := o.ask(xids)
		if err != nil {
			continue
		}
		for xid, committed := range ended {
			o.mu.Lock()
			all := o.open[xid]
			delete(o.open, xid)
			o.mu.Unlock()
			pause.Reset()
			for _, w := range all {
				if committed {
					w.Tell()
				}
			}
		}
	}
}

// ask returns the transactions that have ended, and whether they committed.
func (o *outcomes) ask(xids []string) (ended map[string]bool, err error) {
	ended = make(map[string]bool)
	err = o.s.outside(o.ctx, "commit", func(t *tx) {
		t.read(`SELECT x, coalesce(pg_xact_status(x::xid8), 'aborted') FROM unnest($1::text[]) x`, func(r sqlengine.Scanner) error {
			var xid, status string
			err := r.Scan(&xid, &status)
			if err == nil && status != "in progress" {
				ended[xid] = status == "committed"
			}
			return err
		}, xids)
	})
	return ended, err
}
