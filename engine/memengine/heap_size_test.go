package memengine

import (
	"fmt"
	"runtime"
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
