package diskengine

import "slices"

// graveyard is the order of deaths as a change sees it, for a queue in which there may
// be no more than so many dead: who dies there has the first of them dropped, and what
// follows in the same call finds that one gone.
type graveyard struct {
	disk  []position // the next on disk, from there on
	from  position
	whole bool // there are no more on disk
	dug   []position
	empty map[position]struct{} // on disk, and exhumed by the change
}

// graveyardChunk is how many graves are read at a time.
const graveyardChunk = 64

// tend has a change of a queue with dead_max keep track of its graves.
func (c *change) tend() {
	c.remember()
	c.yard = &graveyard{from: c.graves, empty: make(map[position]struct{})}
}

// dig takes in a new grave.
func (y *graveyard) dig(at position) {
	i, _ := slices.BinarySearchFunc(y.dug, at, position.compare)
	y.dug = slices.Insert(y.dug, i, at)
}

// fill takes in that a grave is empty.
func (y *graveyard) fill(at position) {
	if i, ok := slices.BinarySearchFunc(y.dug, at, position.compare); ok {
		y.dug = slices.Delete(y.dug, i, i+1)
	} else {
		y.empty[at] = struct{}{}
	}
}

// first returns the first grave, if there is one.
func (c *change) first() (at position, ok bool, err error) {
	q, y := c.q, c.yard
	for {
		for len(y.disk) > 0 {
			if _, empty := y.empty[y.disk[0]]; !empty {
				break
			}
			y.disk = y.disk[1:]
		}
		if len(y.disk) > 0 || y.whole {
			break
		}
		lower := timeKey(nil, kindDead, q.num, y.from)
		err := scan(q.e.store.db, lower, upperBound(lower[:headLen]), func(k, _ []byte) (bool, error) {
			_, at, err := parseTimeKey(k, kindDead)
			y.disk = append(y.disk, at)
			return len(y.disk) < graveyardChunk, err
		})
		if err != nil {
			return at, false, err
		}
		if y.whole = len(y.disk) < graveyardChunk; !y.whole {
			y.from = y.disk[len(y.disk)-1].after()
		}
	}
	switch {
	case len(y.disk) > 0 && (len(y.dug) == 0 || y.disk[0].less(y.dug[0])):
		return y.disk[0], true, nil
	case len(y.dug) > 0:
		return y.dug[0], true, nil
	}
	return at, false, nil
}

// makeRoom drops the first of the dead when another has made them too many. When it
// cannot be read whoever meets the queue next drops it.
func (c *change) makeRoom() {
	if c.yard == nil || c.q.counts.dead+c.counts.dead <= c.q.rules.DeadMax {
		return
	}
	at, ok, err := c.first()
	if err != nil || !ok {
		return
	}
	if _, err := c.unearth(at); err == nil {
		c.yard.fill(at) // also when it led nowhere
		c.graves = at.after()
	}
}
