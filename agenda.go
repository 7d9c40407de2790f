package tarry

import "time"

// agenda is the deliveries that a worker keeps, as a heap: first the one that the keeper
// has to look at first. Guarded by Worker.mu.
type agenda []*delivery

// never is when the keeper looks at what needs no look.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// next is when the first look is due.
func (a agenda) next() time.Time {
	if len(a) == 0 {
		return never
	}
	return a[0].look
}

// add takes in a delivery that is to be looked at at t.
func (a *agenda) add(d *delivery, t time.Time) {
	*a = append(*a, nil)
	d.look = t
	a.rise(len(*a)-1, d)
}

// move changes when a delivery is to be looked at.
func (a agenda) move(d *delivery, t time.Time) {
	i := int(d.place) - 1
	if d.look = t; i > 0 && t.Before(a[(i-1)/2].look) {
		a.rise(i, d)
	} else {
		a.sink(i, d)
	}
}

// remove takes out a delivery.
func (a *agenda) remove(d *delivery) {
	i, n := int(d.place)-1, len(*a)-1
	last := (*a)[n]
	(*a)[n] = nil
	*a = (*a)[:n]
	if d.place = 0; i < n {
		last.place = int32(i + 1)
		a.move(last, last.look)
	}
}

// take takes out the deliveries that are to be looked at by t.
func (a *agenda) take(t time.Time) (due []*delivery) {
	for len(*a) > 0 && !t.Before((*a)[0].look) {
		due = append(due, (*a)[0])
		a.remove((*a)[0])
	}
	return due
}

// rise puts d at i or where it belongs above.
func (a agenda) rise(i int, d *delivery) {
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

// sink puts d at i or where it belongs below.
func (a agenda) sink(i int, d *delivery) {
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

func (a agenda) put(i int, d *delivery) { a[i], d.place = d, int32(i+1) }
