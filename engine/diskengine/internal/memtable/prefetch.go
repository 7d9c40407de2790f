package memtable

// prefetcher prefetches the headers of entries while a memtable is walked in order. They lie
// anywhere in memory, and each takes a while to be fetched. Several are fetched side by side
// if nothing else is done meanwhile.
type prefetcher struct {
	given int    // entries so far
	left  int    // entries read and still to be walked
	sum   uint32 // not used: so that the compiler keeps the reads
}

const mostPrefetched = 16

// next is called for each entry that is walked, before its header is looked at. It reads as
// many headers ahead as were walked so far, at most mostPrefetched, so that a short walk does not
// pay for many.
func (a *prefetcher) next(w *table, c *cursor) {
	if a.left == 0 {
		a.left = min(mostPrefetched, a.given+1, int(c.d.n)-c.i)
		items := c.d.items[c.i:]
		for i := range items[:a.left] {
			a.sum += w.arena.at(ref(items[i].ref)).value
		}
	}
	a.left--
	a.given++
}
