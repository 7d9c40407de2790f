package dispatch

import (
	"maps"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

// A request is for no more than there is room for, in all and in each of its queues.
func TestRequestsStayWithinTheRoom(t *testing.T) {
	asked := engine.Wait{Queues: []string{"a", "b"}, Max: 10}
	for _, c := range []struct {
		room, want map[string]int
		most       int
	}{
		{nil, nil, 10},
		{map[string]int{"a": 3}, map[string]int{"a": 3}, 10},
		{map[string]int{"a": 3, "b": 10}, map[string]int{"a": 3}, 10},
		{map[string]int{"a": 3, "b": 0}, map[string]int{"a": 3, "b": 0}, 3},
		{map[string]int{"a": 0, "b": 0}, map[string]int{"a": 0, "b": 0}, 0},
		{map[string]int{"a": 3, "c": 0}, map[string]int{"a": 3}, 10}, // c is not asked for
	} {
		if w := within(asked, c.room); w.Max != c.most || !maps.Equal(w.Room, c.want) {
			t.Errorf("with room for %v it asks for %d, of them %v", c.room, w.Max, w.Room)
		}
	}
}
