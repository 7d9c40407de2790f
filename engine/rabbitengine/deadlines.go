package rabbitengine

import (
	"container/heap"
	"time"

	"github.com/tarryhq/tarry/engine/internal/codec"
)

// lease is the right to settle an item. It lasts until its deadline, and after that until
// another decision about the item.
type lease struct {
	*item
	q        *queue
	nonce    codec.Nonce
	deadline time.Time
	at       int // index in deadlines; -1: lapsed
}

// deadlines is a heap of active leases by deadline.
type deadlines []*lease

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].at, d[j].at = i, j
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	l := x.(*lease)
	l.at = len(*d)
	*d = append(*d, l)
}

// Pop implements heap.Interface.
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
