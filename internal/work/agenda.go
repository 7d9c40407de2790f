package work

import (
	"container/heap"
	"time"
)

// agenda is a min-heap of a worker's deliveries, ordered by when the keeper must next look
// at each. Guarded by Worker.mu.
type agenda []*Delivery

// never is the look time of a delivery that needs none.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// next returns when the first look is due.
func (a agenda) next() time.Time {
	if len(a) == 0 {
		return never
	}
	return a[0].look
}

// add adds a delivery that the keeper must look at by t.
func (a *agenda) add(d *Delivery, t time.Time) {
	d.look = t
	heap.Push(a, d)
}

// move changes when the keeper looks at a delivery.
func (a *agenda) move(d *Delivery, t time.Time) {
	d.look = t
	heap.Fix(a, int(d.place)-1)
}

// remove removes a delivery.
func (a *agenda) remove(d *Delivery) { heap.Remove(a, int(d.place)-1) }

// take removes and returns the deliveries to be looked at by t.
func (a *agenda) take(t time.Time) (due []*Delivery) {
	for len(*a) > 0 && !t.Before((*a)[0].look) {
		due = append(due, heap.Pop(a).(*Delivery))
	}
	return due
}

// The methods of heap.Interface, for the functions above.

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].look.Before(a[j].look) }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = int32(i+1), int32(j+1)
}
func (a *agenda) Push(x any) {
	d := x.(*Delivery)
	*a = append(*a, d)
	d.place = int32(len(*a))
}
func (a *agenda) Pop() any {
	last := len(*a) - 1
	d := (*a)[last]
	d.place = 0
	(*a)[last] = nil
	*a = (*a)[:last]
	return d
}
