package diskengine_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
)

// While what is remembered of a queue is purged, keys of it come, go and are remembered anew: what was hidden
// does not stand before that, so that nobody can push them again.
func TestRememberedAmidAPurge(t *testing.T) {
	const n = 50
	for name, flush := range map[string]bool{"in the memtable": false, "in an sstable": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(vfstest.New(nil), nil)
			var armed atomic.Bool
			var amid func()
			p.tune.Between = func(where string) {
				if where == "purge" && armed.CompareAndSwap(true, false) {
					amid()
				}
			}
			e := p.open(t)
			var keys []engine.Message
			for i := range n {
				m := message("q", fmt.Sprint(i), 0)
				m.Remember = time.Hour
				keys = append(keys, m)
			}
			round := func() {
				t.Helper()
				must(t, pushAll(t, e, keys...))
				settle(t, e, lease(t, e, "q", n), engine.Ack)
			}
			round()
			if flush {
				must(t, e.Flush(t.Context()))
			}
			remembered := func(when string) {
				t.Helper()
				if err := e.Sound(); err != nil {
					t.Errorf("%s: %v", when, err)
				}
				r, err := e.Push(t.Context(), keys)
				must(t, err)
				for i := range r {
					if !errors.Is(r[i].Err, engine.ErrExists) || r[i].State != engine.Finished {
						t.Errorf("%s: key %d comes to %+v", when, i, r[i])
						return
					}
				}
			}
			amid = func() {
				round()
				remembered("amid the purge")
				must(t, e.Flush(t.Context()))
				remembered("flushed amid the purge")
			}
			armed.Store(true)
			_, err := e.Purge(t.Context(), "q", engine.PurgeFinished)
			must(t, err)
			if armed.Load() {
				t.Fatal("nobody came amid the purge")
			}
			remembered("at once")
			must(t, e.Flush(t.Context()))
			remembered("in an sstable")
			must(t, e.Close())
			e = p.open(t)
			remembered("opened again")
			must(t, e.Close())
		})
	}
}
