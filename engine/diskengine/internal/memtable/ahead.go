package memtable

import "math"

// ahead reads from the headers of entries before it is their turn, while a memtable is walked in
// order. They lie anywhere in memory, and each takes its time to come from there; several come
// side by side where nothing is done but to read them.
type ahead struct {
	given int    // entries so far
	left  int    // read, and still to be walked
	sum   uint32 // of what was read; not used: for the compiler
}

const mostAhead = 16

// next is called for each entry that is walked, before its header is looked at. It reads as many
// as were walked so far, so that a walk of a few does not pay for many.
func (a *ahead) next(w *table, c *cursor) {
	if a.left == 0 {
		a.left = min(mostAhead, a.given+1, int(c.d.n)-c.i)
		items := c.d.items[c.i:]
		for i := range items[:a.left] {
			a.sum += w.arena.at(ref(items[i].ref)).value
		}
	}
	a.left--
	a.given++
}

// ExpectMost is how many entries are expected at a time.
const ExpectMost = 16

// Expected is a live entry that is about to be looked for by its key, and added where it is not
// there.
type Expected struct {
	Queue uint32
	Key   string // empty: none
	At    int64
}

// Expect reads where entries are, or would be, at most ExpectMost. A caller that adds many has some of them
// expected before it looks the first up, so that reads of memory overlap. It counts as a change.
func (r *Tables) Expect(all []Expected) {
	var room [ExpectMost]uint32
	hashes := room[:0]
	for i := range all {
		if e := &all[i]; e.Key != "" {
			hashes = append(hashes, hashKey(r.seed, e.Queue, Live, []byte(e.Key)))
		}
	}
	r.active.keys.expect(hashes)
	for _, s := range r.sealed {
		s.w.keys.expect(hashes)
	}
	r.active.order.expect(all)
}

// expect reads the leaves in which entries belong.
func (o *order) expect(all []Expected) {
	if len(all) == 0 || o.n < leastAhead {
		return
	}
	var room [ExpectMost]*node
	nodes := room[:len(all)]
	for i := range nodes {
		nodes[i] = o.node(o.root)
	}
	sum := uint32(0)
	for !nodes[0].leaf { // all leaves are at one level
		for i := range nodes {
			e := &all[i]
			it := item{hi: uint32(placeOf(e.Queue, Live)), at: e.At, id: math.MaxUint64}
			d := nodes[i]
			nodes[i] = o.node(d.items[d.below(&it)].ref)
		}
		for _, d := range nodes {
			for k := 0; k < leafItems; k += 5 { // two lines of the processors' caches
				sum += d.items[k].ref
			}
		}
	}
	o.read += sum
}

// leastAhead is how many items an order has that is not read ahead: less are in the processors' caches.
const leastAhead = 4096
