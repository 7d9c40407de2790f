package calls

import "iter"

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
		var values []K
		groups := make(map[K][]int)
		for i := range n {
			value := of(i)
			group, known := groups[value]
			if !known {
				values = append(values, value)
			}
			groups[value] = append(group, i)
		}
		for _, value := range values {
			if !yield(value, groups[value]) {
				return
			}
		}
	}
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
