package dispatch

// chain is an intrusive list: its links are fields of its elements, so adding and removing
// allocate nothing.
type chain[T any] struct{ first, last *link[T] }

// link is an element's place in a chain.
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

// remove removes a link that is in the chain.
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
