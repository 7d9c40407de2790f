package work

import "time"

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
	*a = append(*a, nil)
	d.look = t
	a.rise(len(*a)-1, d)
}

// move changes when the keeper looks at a delivery.
func (a agenda) move(d *Delivery, t time.Time) {
	i := int(d.place) - 1
	if d.look = t; i > 0 && t.Before(a[(i-1)/2].look) {
		a.rise(i, d)
	} else {
		a.sink(i, d)
	}
}

// remove removes a delivery.
func (a *agenda) remove(d *Delivery) {
	i, n := int(d.place)-1, len(*a)-1
	last := (*a)[n]
	(*a)[n] = nil
	*a = (*a)[:n]
	if d.place = 0; i < n {
		last.place = int32(i + 1)
		a.move(last, last.look)
	}
}

// take removes and returns the deliveries to be looked at by t.
func (a *agenda) take(t time.Time) (due []*Delivery) {
	for len(*a) > 0 && !t.Before((*a)[0].look) {
		due = append(due, (*a)[0])
		a.remove((*a)[0])
	}
	return due
}

// rise places d at i, or above it if the heap order requires that.
func (a agenda) rise(i int, d *Delivery) {
	for i > 0 {
		up := (i - 1) / 2
		if !d.look.Before(a[up].look) {
			break
		}
		a.put(i, a[up])
		i = up
	}
	a.put(i, d)
}

// sink places d at i, or below it if the heap order requires that.
func (a agenda) sink(i int, d *Delivery) {
	for {
		down := 2*i + 1
		if down+1 < len(a) && a[down+1].look.Before(a[down].look) {
			down++
		}
		if down >= len(a) || !a[down].look.Before(d.look) {
			break
		}
		a.put(i, a[down])
		i = down
	}
	a.put(i, d)
}

func (a agenda) put(i int, d *Delivery) { a[i], d.place = d, int32(i+1) }
