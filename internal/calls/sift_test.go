package calls

import (
	"errors"
	"slices"
	"testing"
)

func TestSift(t *testing.T) {
	bad := errors.New("bad")
	for _, all := range [][]int{nil, {2}, {1}, {2, 4, 6}, {1, 2, 3, 4}, {2, 1, 4}, {1, 3}} {
		good, errs := Sift(all, func(i int) error {
			if all[i]%2 == 1 {
				return bad
			}
			return nil
		})
		back := slices.Clone(all)
		for j, n := range good.Items {
			if back[good.At(j)] = -n; all[good.At(j)] != n {
				t.Errorf("%v: %d stood at %d", all, n, good.At(j))
			}
		}
		for i, n := range back {
			if odd := n > 0; odd != (errs != nil && errs[i] == bad) {
				t.Errorf("%v: %d is neither good nor bad", all, n)
			}
		}
	}
}
