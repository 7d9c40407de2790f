// Package group gathers the items of a call by where they belong: to a queue, to a
// shard of one, to a batch.
package group

import (
	"iter"
	"slices"
)

// By yields each value that of gives for the numbers below n, in order of first
// appearance, with the numbers it gives it for, in order. of is called before anything
// is yielded, and may be called twice for the same number. The slices may be kept, not
// changed.
//
// Where all belong together, as in most calls, that is seen in one pass, and up to 64
// items take no memory.
func By[K comparable](n int, of func(i int) K) iter.Seq2[K, []int] {
	return func(yield func(K, []int) bool) {
		if n == 0 {
			return
		}
		first, same := of(0), 1
		for same < n && of(same) == first {
			same++
		}
		if same == n {
			yield(first, upTo(n))
			return
		}
		mixed(n, of, yield)
	}
}

// part is one group, whose items end at end among all that are laid out.
type part[K comparable] struct {
	value K
	end   int
}

// few is how many groups are found by looking through them.
const few = 8

func mixed[K comparable](n int, of func(i int) K, yield func(K, []int) bool) {
	var parts []part[K]
	var found map[K]int // of more than few
	both := make([]int, 2*n)
	which, items := both[:n], both[n:]
	p := 0
	for i := range n {
		value := of(i)
		if len(parts) == 0 || parts[p].value != value {
			p = find(parts, found, value)
		}
		if p == len(parts) {
			parts = append(parts, part[K]{value: value})
			if len(parts) == few+1 {
				parts, found = slices.Grow(parts, n-i), make(map[K]int, n-i)
				for j := range parts {
					found[parts[j].value] = j
				}
			} else if found != nil {
				found[value] = p
			}
		}
		which[i] = p
		parts[p].end++ // how many, to begin with
	}
	from := 0
	for j := range parts {
		parts[j].end, from = from, from+parts[j].end
	}
	for i, p := range which {
		items[parts[p].end] = i
		parts[p].end++
	}
	from = 0
	for j := range parts {
		to := parts[j].end
		if !yield(parts[j].value, items[from:to:to]) {
			return
		}
		from = to
	}
}

func find[K comparable](parts []part[K], found map[K]int, value K) int {
	if found != nil {
		if p, ok := found[value]; ok {
			return p
		}
		return len(parts)
	}
	for p := range parts {
		if parts[p].value == value {
			return p
		}
	}
	return len(parts)
}

// low are the first numbers.
var low = func() (all [64]int) {
	for i := range all {
		all[i] = i
	}
	return all
}()

// upTo returns the numbers below n.
func upTo(n int) []int {
	if n <= len(low) {
		return low[:n:n]
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
