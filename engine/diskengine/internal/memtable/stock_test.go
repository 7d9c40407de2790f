package memtable

import "testing"

// TestStock: memory is made ready when it runs low, an eighth of what is kept at most, and is used and given
// back like any other.
func TestStock(t *testing.T) {
	t.Parallel()
	for name, onHeap := range map[string]bool{"heap": true, "mapped": false} {
		t.Run(name, func(t *testing.T) {
			low := make(chan struct{}, 1)
			r := New(&Config{OnHeap: onHeap, Keep: 64 * chunkSize, Low: func() {
				select {
				case low <- struct{}{}:
				default:
				}
			}})
			told := 0
			for id := range uint64(20_000) { // some 6 MB
				r.Add(message(id + 1))
				select {
				case <-low:
					told++
					if r.Stock(); len(r.pool.spare) != 8 {
						t.Fatalf("%d chunks are ready", len(r.pool.spare))
					}
				default:
				}
			}
			if chunks := len(r.active.arena.chunks); told == 0 || told > chunks+8 {
				t.Errorf("it was told %d times that memory is low, for %d chunks", told, chunks)
			}
			r.Stock()
			if _, spare := r.Memory(); spare != 8*chunkSize {
				t.Errorf("%d bytes are spare", spare)
			}
			for id := range uint64(20_000) {
				if e, ok := r.ByID(id + 1); !ok || len(e.Value) != 220 {
					t.Fatalf("%d: %+v, %v", id+1, e, ok)
				}
			}
			r.Close()
			if taken, spare := r.pool.memory(); taken != 0 || spare != 0 {
				t.Errorf("%d bytes are taken and %d spare when it is closed", taken, spare)
			}
		})
	}
}
