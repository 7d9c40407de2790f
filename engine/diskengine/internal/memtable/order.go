package memtable

import "unsafe"

const maxDepth = 16

// order is a B+ tree of items, in nodes without pointers. Upper nodes know how many items are
// below, so that items between two places are counted as fast as one is found.
type order struct {
	pool   *pool
	memory [][]byte
	parts  []*[chunkNodes]node
	free   uint32 // the first free node; its next is the next free one; 0: none
	begun  uint32 // nodes that were ever used; the first is not used, so that 0 means none
	root   uint32
	n      int
}

func newOrder(p *pool) order { return order{pool: p, begun: 1} }

func (o *order) node(n uint32) *node { return &o.parts[n/chunkNodes][n%chunkNodes] }

func (o *order) newNode(leaf bool) (uint32, *node) {
	n := o.free
	if n != 0 {
		o.free = o.node(n).next
	} else {
		if int(o.begun) >= len(o.parts)*chunkNodes {
			b := o.pool.get(false)
			o.memory = append(o.memory, b)
			o.parts = append(o.parts, (*[chunkNodes]node)(unsafe.Pointer(unsafe.SliceData(b))))
		}
		n = o.begun
		o.begun++
	}
	d := o.node(n)
	d.n, d.leaf, d.prev, d.next = 0, leaf, 0, 0
	return n, d
}

func (o *order) freeNode(n uint32) {
	o.node(n).next, o.free = o.free, n
}

// path is the way from the root to a leaf: nodes, and the index of the item taken in each.
type path struct {
	node [maxDepth]uint32
	at   [maxDepth]int
	n    int // how many nodes above the leaf
}

// descend returns the leaf in which an item belongs, and adds by to the counts on the way.
func (o *order) descend(it *item, p *path, by int32) (uint32, *node) {
	n := o.root
	d := o.node(n)
	for !d.leaf {
		i := d.below(it)
		d.counts()[i] += uint32(by)
		p.node[p.n], p.at[p.n] = n, i
		p.n++
		n = d.items[i].ref
		d = o.node(n)
	}
	return n, d
}

// find returns the leaf in which an item belongs.
func (o *order) find(it *item) *node {
	d := o.node(o.root)
	for !d.leaf {
		d = o.node(d.items[d.below(it)].ref)
	}
	return d
}

// insert adds an item, which must not be there.
func (o *order) insert(it item) {
	if o.root == 0 {
		o.root, _ = o.newNode(true)
	}
	var p path
	n, d := o.descend(&it, &p, 1)
	i := d.search(&it)
	o.n++
	count := uint32(0)
	for int(d.n) == d.room() {
		rn, right := o.split(n, d, i, it, count)
		it, count = right.items[0], right.sum()
		it.ref = rn
		if p.n == 0 {
			root, r := o.newNode(false)
			r.insert(0, item{ref: n}, d.sum())
			r.insert(1, it, count)
			o.root = root
			return
		}
		p.n--
		n = p.node[p.n]
		d, i = o.node(n), p.at[p.n]+1
		d.counts()[i-1] -= count
	}
	d.insert(i, it, count)
}

// rank returns how many items are less than it.
func (o *order) rank(it *item) (n int64) {
	if o.root == 0 {
		return 0
	}
	d := o.node(o.root)
	for !d.leaf {
		i := d.below(it)
		n += int64(d.sumTo(i))
		d = o.node(d.items[i].ref)
	}
	return n + int64(d.search(it))
}

// split splits a full node in two and returns the new one, to the right. It puts an item into
// one of them, which belongs at i and has count entries below it. Items that come in order
// must leave full nodes behind: if the item is the last of the node or of its place, all
// before it stays together.
func (o *order) split(n uint32, d *node, i int, it item, count uint32) (uint32, *node) {
	rn, right := o.newNode(d.leaf)
	full := int(d.n)
	cut := full / 2
	if i == full || d.leaf && i > 0 && d.items[i].hi != it.hi {
		cut = i
	}
	d.give(cut, right)
	if i > cut || i == full {
		right.insert(i-cut, it, count)
	} else {
		d.insert(i, it, count)
	}
	if d.leaf {
		right.prev, right.next = n, d.next
		if d.next != 0 {
			o.node(d.next).prev = rn
		}
		d.next = rn
	}
	return rn, right
}

// remove removes an item, and reports whether it was there.
func (o *order) remove(it item) bool {
	if o.root == 0 {
		return false
	}
	var p path
	n, d := o.descend(&it, &p, -1)
	i := d.search(&it)
	if i == int(d.n) || it.less(&d.items[i]) {
		o.descend(&it, new(path), 1) // restore the counts
		return false
	}
	d.remove(i)
	o.n--
	for p.n > 0 && int(d.n) < d.room()/4 {
		p.n--
		up := p.node[p.n]
		if !o.join(n, d, o.node(up), p.at[p.n]) {
			break
		}
		n, d = up, o.node(up)
	}
	for d = o.node(o.root); d.n == 0 || d.n == 1 && !d.leaf; d = o.node(o.root) {
		root := o.root
		o.root = 0
		if d.n == 1 {
			o.root = d.items[0].ref
		}
		o.freeNode(root)
		if o.root == 0 {
			break
		}
	}
	return true
}

// join joins a node that has few items, the i-th below up, with one beside it if they fit. It
// reports whether up has one item less now.
func (o *order) join(n uint32, d, up *node, i int) bool {
	most := uint32(d.room()) - 2
	if d.n == 0 {
		most += 2
	}
	switch {
	case i+1 < int(up.n) && d.n+o.node(up.items[i+1].ref).n <= most:
		o.merge(d, up, i+1)
	case i > 0 && d.n+o.node(up.items[i-1].ref).n <= most:
		o.merge(o.node(up.items[i-1].ref), up, i)
	case d.n == 0: // the only one below up
		o.leave(d)
		up.remove(i)
		o.freeNode(n)
	default:
		return false
	}
	return true
}

// merge moves the items of the i-th node below up to the node on its left.
func (o *order) merge(left, up *node, i int) {
	n := up.items[i].ref
	d := o.node(n)
	if d.n > 0 {
		first := up.items[i]
		first.ref = d.items[0].ref
		if !d.leaf {
			d.items[0] = first
		}
	}
	d.give(0, left)
	c := up.counts()
	c[i-1] += c[i]
	o.leave(d)
	up.remove(i)
	o.freeNode(n)
}

// leave takes a leaf out of the list of leaves.
func (o *order) leave(d *node) {
	if d.prev != 0 {
		o.node(d.prev).next = d.next
	}
	if d.next != 0 {
		o.node(d.next).prev = d.prev
	}
}

func (o *order) close() {
	o.pool.put(o.memory...)
	*o = order{}
}

// cursor is a place in an order, which must not be changed meanwhile.
type cursor struct {
	o *order
	d *node
	i int
}

// seek returns a cursor at the first item that is not less than it.
func (o *order) seek(it item) cursor {
	c := cursor{o: o}
	if o.root != 0 {
		c.d = o.find(&it)
		c.i = c.d.search(&it) - 1
		c.next()
	}
	return c
}

// before returns a cursor at the last item that is less than it.
func (o *order) before(it item) cursor {
	c := cursor{o: o}
	if o.root != 0 {
		c.d = o.find(&it)
		c.i = c.d.search(&it)
		c.prev()
	}
	return c
}

// item returns the item at the cursor; nil: there is none.
func (c *cursor) item() *item {
	if c.d == nil {
		return nil
	}
	return &c.d.items[c.i]
}

func (c *cursor) next() {
	if c.i++; c.i < int(c.d.n) {
		return
	}
	n := c.d.next
	c.d, c.i = nil, 0
	if n != 0 {
		c.d = c.o.node(n)
	}
}

func (c *cursor) prev() {
	if c.i--; c.i >= 0 {
		return
	}
	n := c.d.prev
	c.d = nil
	if n != 0 {
		c.d = c.o.node(n)
		c.i = int(c.d.n) - 1
	}
}
