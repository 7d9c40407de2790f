package memengine

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// fill pushes n messages with bodies of 200 bytes and keys of 20, due over 48 hours.
func fill(t testing.TB, e *Engine, n int) {
	t.Helper()
	const batch = 1000
	msgs := make([]engine.Message, 0, batch)
	for i := range n {
		m := msg("q", fmt.Sprintf("order-%014d", i), time.Minute+time.Duration(uint64(i)*2654435761%uint64(48*time.Hour/time.Millisecond))*time.Millisecond)
		m.Body = make([]byte, 200)
		if msgs = append(msgs, m); len(msgs) == batch || i == n-1 {
			push(t, e, msgs...)
			msgs = msgs[:0]
		}
	}
}

// heapNow is the heap in use by what is reachable.
func heapNow() uint64 {
	runtime.GC()
	runtime.GC() // what pools and caches let go of
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// A pending message of 200 bytes, with a key of 20, takes at most 400 bytes.
func TestHeapPerMessage(t *testing.T) {
	for _, n := range []int{200_000, 300_000} {
		before := heapNow()
		e := New(&Config{Now: enginetest.NewClock().Now})
		fill(t, e, n)
		each := (heapNow() - before) / uint64(n)
		t.Logf("%d bytes each, %d messages", each, n)
		if each > 400 {
			t.Errorf("%d messages take %d bytes each, want at most 400", n, each)
		}
		runtime.KeepAlive(e)
	}
}

// A queue that holds one message of 200 bytes takes at most 1.5 KB with it, one that
// has held it at most 1.25 KB.
func TestHeapPerQueue(t *testing.T) {
	const n = 20_000
	wants := make([]engine.Want, n)
	for i := range wants {
		wants[i] = engine.Want{Queue: fmt.Sprint("q", i), Max: 1}
	}
	before := heapNow()
	c := enginetest.NewClock()
	e := New(&Config{Now: c.Now})
	check := func(what string, most uint64) {
		t.Helper()
		each := (heapNow() - before) / n
		t.Logf("%s: %d bytes each", what, each)
		if each > most {
			t.Errorf("%s: a queue takes %d bytes, want at most %d", what, each, most)
		}
	}
	for _, w := range wants {
		m := msg(w.Queue, "", time.Minute)
		m.Body = make([]byte, 200)
		push(t, e, m)
	}
	check("pending", 1500)
	c.Advance(time.Hour)
	for some := range slices.Chunk(wants, 1000) {
		if got := leaseAndAck(t, e, some); got != len(some) {
			t.Fatalf("%d messages came of %d queues", got, len(some))
		}
	}
	check("emptied", 1250)
	runtime.KeepAlive(wants)
	runtime.KeepAlive(e)
}
