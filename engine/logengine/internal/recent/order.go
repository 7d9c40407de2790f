package recent

import "unsafe"

// item is an entry in an order.
type item struct {
	hi  uint32 // what comes first: a place, or a hash
	ref uint32 // the entry; in nodes above the leaves, the node below
	at  int64
	id  uint64
}

func (a *item) less(b *item) bool {
	if a.hi != b.hi {
		return a.hi < b.hi
	}
	if a.at != b.at {
		return a.at < b.at
	}
	return a.id < b.id
}

const (
	nodeSize   = 1 << 10
	nodeItems  = (nodeSize - 16) / int(unsafe.Sizeof(item{}))
	chunkNodes = chunkSize / nodeSize
	fewItems   = nodeItems / 4
	maxDepth   = 16
)

// node is a node of an order: a leaf, whose items are entries, or one above, whose items are the
// nodes below, each with what is not greater than anything in it; of the first that is not
// looked at.
type node struct {
	n          uint32
	leaf       bool
	prev, next uint32 // leaves only; 0: none
	items      [nodeItems]item
}

// order is a B+ tree of items, in nodes that hold no pointers.
type order struct {
	pool   *pool
	memory [][]byte
	parts  []*[chunkNodes]node
	free   uint32 // its next is the next one
	begun  uint32 // nodes that were ever used; the first is none
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

// search returns where the first item stands that is not less.
func (d *node) search(it *item) int {
	low, high := 0, int(d.n)
	for low < high {
		if m := (low + high) / 2; d.items[m].less(it) {
			low = m + 1
		} else {
			high = m
		}
	}
	return low
}

// below returns where the node stands in which an item belongs.
func (d *node) below(it *item) int {
	low, high := 1, int(d.n) // the first that is greater
	for low < high {
		if m := (low + high) / 2; it.less(&d.items[m]) {
			high = m
		} else {
			low = m + 1
		}
	}
	return low - 1
}

func (d *node) insert(i int, it item) {
	copy(d.items[i+1:d.n+1], d.items[i:d.n])
	d.items[i] = it
	d.n++
}

func (d *node) remove(i int) {
	copy(d.items[i:], d.items[i+1:d.n])
	d.n--
}

// path leads from the root to a leaf: nodes, and the items taken in them.
type path struct {
	node [maxDepth]uint32
	at   [maxDepth]int
	n    int // nodes above the leaf
}

// descend returns the leaf in which an item belongs.
func (o *order) descend(it *item, p *path) (uint32, *node) {
	n := o.root
	d := o.node(n)
	for !d.leaf {
		i := d.below(it)
		p.node[p.n], p.at[p.n] = n, i
		p.n++
		n = d.items[i].ref
		d = o.node(n)
	}
	return n, d
}

// insert adds an item that is not there.
func (o *order) insert(it item) {
	if o.root == 0 {
		o.root, _ = o.newNode(true)
	}
	var p path
	n, d := o.descend(&it, &p)
	i := d.search(&it)
	o.n++
	for int(d.n) == nodeItems {
		rn, right := o.split(n, d, i, it)
		it = right.items[0]
		it.ref = rn
		if p.n == 0 {
			root, r := o.newNode(false)
			r.n, r.items[0], r.items[1] = 2, item{ref: n}, it
			o.root = root
			return
		}
		p.n--
		n = p.node[p.n]
		d, i = o.node(n), p.at[p.n]+1
	}
	d.insert(i, it)
}

// split makes two of a full node, the other one to the right of it, and puts an item into one
// of them, which belongs at i. What comes in order leaves full nodes behind: where the item is
// the last, of the node or of its place, what is before it stays together.
func (o *order) split(n uint32, d *node, i int, it item) (uint32, *node) {
	rn, right := o.newNode(d.leaf)
	cut := nodeItems / 2
	if i == nodeItems || d.leaf && i > 0 && d.items[i].hi != it.hi {
		cut = i
	}
	right.n = uint32(copy(right.items[:], d.items[cut:]))
	d.n = uint32(cut)
	if i > cut || i == nodeItems {
		right.insert(i-cut, it)
	} else {
		d.insert(i, it)
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

// remove takes an item away, and reports whether it was there.
func (o *order) remove(it item) bool {
	if o.root == 0 {
		return false
	}
	var p path
	n, d := o.descend(&it, &p)
	i := d.search(&it)
	if i == int(d.n) || it.less(&d.items[i]) {
		return false
	}
	d.remove(i)
	o.n--
	for p.n > 0 && int(d.n) < fewItems {
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

// join makes one of a node that has few items, the i-th below up, and one beside it, where they
// fit, and reports whether up has one less then.
func (o *order) join(n uint32, d, up *node, i int) bool {
	const all = uint32(nodeItems)
	most := all - 2
	if d.n == 0 {
		most = all
	}
	switch {
	case i+1 < int(up.n) && d.n+o.node(up.items[i+1].ref).n <= most:
		o.merge(d, up, i+1)
	case i > 0 && d.n+o.node(up.items[i-1].ref).n <= most:
		o.merge(o.node(up.items[i-1].ref), up, i)
	case d.n == 0: // the only one
		o.leave(d)
		up.remove(i)
		o.freeNode(n)
	default:
		return false
	}
	return true
}

// merge moves what is in the i-th node below up to the one on its left.
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
	left.n += uint32(copy(left.items[left.n:], d.items[:d.n]))
	o.leave(d)
	up.remove(i)
	o.freeNode(n)
}

// leave takes a leaf out of the list of them.
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

// cursor is a place in an order, which is not to be changed meanwhile.
type cursor struct {
	o *order
	d *node
	i int
}

// seek returns a cursor at the first item that is not less.
func (o *order) seek(it item) cursor {
	c := cursor{o: o}
	if o.root != 0 {
		_, c.d = o.descend(&it, new(path))
		c.i = c.d.search(&it) - 1
		c.next()
	}
	return c
}

// before returns a cursor at the last item that is less.
func (o *order) before(it item) cursor {
	c := cursor{o: o}
	if o.root != 0 {
		_, c.d = o.descend(&it, new(path))
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
