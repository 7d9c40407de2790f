package dispatch

// chain is a list whose links lie in what it holds, so that neither adding nor removing
// costs memory.
type chain[T any] struct{ first, last *link[T] }

// link is a place in a chain, of one thing.
type link[T any] struct {
	of         *T
	prev, next *link[T]
}

func (c *chain[T]) add(l *link[T]) {
	l.prev, l.next = c.last, nil
	if c.last != nil {
		c.last.next = l
	} else {
		c.first = l
	}
	c.last = l
}

// remove takes out a link that is there.
func (c *chain[T]) remove(l *link[T]) {
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		c.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		c.last = l.prev
	}
	l.prev, l.next = nil, nil
}
