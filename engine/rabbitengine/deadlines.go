package rabbitengine

import (
	"container/heap"
	"time"

	"github.com/tarryhq/tarry/engine/internal/token"
)

// lease is the right to an item, until its deadline, and after that as long as nobody else
// has decided on the item.
type lease struct {
	*item
	q        *queue
	nonce    token.Nonce
	deadline time.Time
	at       int // in deadlines; -1: it has lapsed
}

// deadlines are leases that last, the first to end first.
type deadlines []*lease

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].at, d[j].at = i, j
}

// Push is heap.Interface's.
func (d *deadlines) Push(x any) {
	l := x.(*lease)
	l.at = len(*d)
	*d = append(*d, l)
}

// Pop is heap.Interface's.
func (d *deadlines) Pop() any {
	old := *d
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	l.at = -1
	return l
}

func (d *deadlines) remove(l *lease) {
	if l.at >= 0 {
		heap.Remove(d, l.at)
	}
}
