package recent

// ahead reads from the headers of entries before it is their turn, while a window is walked in
// order. They lie anywhere in memory, and each takes its time to come from there; several come
// side by side where nothing is done but to read them.
type ahead struct {
	given int    // entries so far
	left  int    // of those that were read, whose turn is to come
	sum   uint32 // of what was read, which nobody needs: for the compiler
}

const mostAhead = 16

// next is called for each entry that is walked, before its header is looked at. It reads as many
// as were walked so far, so that whoever wants a few does not pay for many.
func (a *ahead) next(w *window, c *cursor) {
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

// Expect reads from where a live entry with a key stands or would stand. Who looks for many keys has
// some of them expected before the first is looked for: what is read lies anywhere in memory, and
// comes side by side. It counts as a change.
func (r *Recent) Expect(queue uint32, key []byte) {
	hash := hashKey(r.seed, queue, Live, key)
	r.active.keys.expect(hash)
	for _, s := range r.sealed {
		s.w.keys.expect(hash)
	}
}
