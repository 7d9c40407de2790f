package mysqlengine

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

// However many queues a look reads, it has seen all that was committed by the time it returns.
func TestLooksTellNoLaterTime(t *testing.T) {
	t.Parallel()
	db := connect(t, mysqltest.Shared(t), false)
	prefix := newPrefix()
	t.Cleanup(func() { dropTables(t, db, prefix) })
	e := openOn(t, db, prefix)
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprint("q", i)
	}
	nums, err := e.store.Names(t.Context(), names, true)
	ok(t, err)
	from := make([]sqlengine.LowBound, len(nums))
	for i, q := range nums {
		from[i] = sqlengine.LowBound{Queue: q, From: sqlengine.Places{{At: 1}, {At: 1}, {At: 1}, {At: 1}}}
	}
	due := int64(1 << 40) // what comes later is due sooner
	newest := func(heads []sqlengine.Heads) int64 {
		if first := heads[0].First[sqlengine.Waiting]; first != (codec.Place{At: 1<<63 - 1}) {
			return 1<<40 - first.At
		}
		return 0
	}
	for range 10 {
		var looked atomic.Bool
		pushed := make(chan error, 1)
		there := make(map[int64]int64) // by when
		go func() {
			for !looked.Load() {
				due--
				_, err := e.Push(t.Context(), []engine.Message{{Queue: names[0], Due: engine.When{At: time.UnixMilli(due)}}})
				if err != nil {
					pushed <- err
					return
				}
				now, _, err := e.store.Heads(t.Context(), nil)
				if err != nil {
					pushed <- err
					return
				}
				there[1<<40-due] = now.UnixMicro()
			}
			pushed <- nil
		}()
		now, heads, err := e.store.Heads(t.Context(), from)
		looked.Store(true)
		ok(t, err)
		ok(t, <-pushed)
		for n, at := range there {
			if at < now.UnixMicro() && n > newest(heads) {
				t.Fatalf("at %v, which was told, message %d was there since %d µs; the newest seen is %d", now, n, now.UnixMicro()-at, newest(heads))
			}
		}
	}
}

// If a process ended after it made a queue's row, another process adds the fences.
func TestFencesAreMended(t *testing.T) {
	t.Parallel()
	db := connect(t, mysqltest.Shared(t), true)
	prefix := newPrefix()
	t.Cleanup(func() { dropTables(t, db, prefix) })
	e := openOn(t, db, prefix)
	run(t, db, "INSERT INTO "+prefix+"_queue (num, name) VALUES (1, 'half')")
	for range 2 {
		for _, queue := range []string{"whole", "half"} {
			_, err := e.Push(t.Context(), []engine.Message{{Queue: queue}})
			ok(t, err)
		}
		rows, err := db.QueryContext(t.Context(), "SELECT kind, COUNT(*) FROM "+prefix+"_message WHERE id < 0 AND ends = 9223372036854775807 GROUP BY queue, kind")
		ok(t, err)
		n := 0
		for ; rows.Next(); n++ {
			var kind, many int
			if ok(t, rows.Scan(&kind, &many)); many != fences[kind] {
				t.Errorf("%d rows at the end of time of kind %d, want %d", many, kind, fences[kind])
			}
		}
		if ok(t, rows.Err()); n != 2*len(fences) {
			t.Errorf("rows at the end of time are of %d kinds, want %d", n, 2*len(fences))
		}
		e = openOn(t, db, prefix)
	}
}
