package enginetest

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// PageOfManyQueues requires that a page of queues costs in proportion to its length, not to
// the number of all queues. It compares the allocations of a page among few and among many
// queues: the names alone of many would take half a megabyte, what runs beside it some kilobytes.
func PageOfManyQueues(t *testing.T, e engine.Engine) {
	const few, many = 300, 30_000
	there := 0
	grow := func(to int) {
		for there < to {
			var msgs []engine.Message
			for ; len(msgs) < 1000 && there < to; there++ {
				msgs = append(msgs, engine.Message{Queue: fmt.Sprintf("q%d", there), Due: engine.When{In: time.Hour}})
			}
			if _, err := e.Push(t.Context(), msgs); err != nil {
				t.Fatal(err)
			}
		}
	}
	page := func() uint64 {
		least := uint64(math.MaxUint64)
		for range 20 { // other goroutines may allocate meanwhile
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			infos, next, err := e.(engine.Counter).Queues(t.Context(), "q150", 10)
			runtime.ReadMemStats(&after)
			if err != nil || len(infos) != 10 || infos[0].Queue <= "q150" || next != infos[9].Queue {
				t.Fatal(err, infos, next)
			}
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		return least
	}
	grow(few)
	before := page()
	grow(many)
	if after := page(); after > 2*before+64<<10 {
		t.Errorf("a page of 10 queues takes %d bytes among %d queues, and %d among %d", before, few, after, many)
	}
}
