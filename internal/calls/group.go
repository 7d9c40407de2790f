package calls

import (
	"iter"
	"slices"
)

// GroupBy groups the numbers from 0 to n-1, for example of the items of a call, by the value
// that of returns for each. It yields the values in order of first appearance, each with its
// numbers in ascending order. It calls of before the first yield, perhaps twice for a number.
// The caller may keep the slices but must not change them.
//
// Most calls have a single group. GroupBy finds that in one pass, and then allocates nothing
// for up to 64 items.
func GroupBy[K comparable](n int, of func(i int) K) iter.Seq2[K, []int] {
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

// part is one group. end is where its items end in the slice of all items.
type part[K comparable] struct {
	value K
	end   int
}

// few is the number of groups up to which a group is found by a linear search.
const few = 8

func mixed[K comparable](n int, of func(i int) K, yield func(K, []int) bool) {
	var parts []part[K]
	var found map[K]int // groups by value, once there are more than few
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
		parts[p].end++ // the group's size, at first
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

// low holds the numbers below 64.
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
