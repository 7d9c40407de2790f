package memengine

import (
	"testing"

	"github.com/tarryhq/tarry/engine"
)

// Chains stay short whatever share of the ids a queue has.
func TestIndex(t *testing.T) {
	for _, stride := range []engine.ID{1, 2, 3, 64, 100, 128, 129, 1 << 20, 1 << 30} {
		e, _ := newEngine(t)
		q := newQueue(e, "q", 1)
		const n = 5000
		for i := range engine.ID(n) {
			place, m := q.msgs.take()
			m.place, m.id = place, 1+i*stride
			q.ids.add(m)
		}
		looked := 0
		for i := range engine.ID(n) {
			id := 1 + i*stride
			m := q.ids.find(hashID(id), func(m *message) bool { looked++; return m.id == id })
			if m == nil {
				t.Fatalf("%d is not found", id)
			}
			if i%2 == 0 {
				q.ids.remove(m)
			}
			if (q.byID(id) == nil) != (i%2 == 0) {
				t.Fatalf("%d: %v", id, q.byID(id))
			}
		}
		if looked > 3*n {
			t.Errorf("every %dth id: %d messages were looked at to find %d", stride, looked, n)
		}
	}
}
