package calls

// Good has the valid items of a call, in order.
type Good[T any] struct {
	Items []T
	at    []int // original index of each; nil: all are valid
}

// Sift returns the items for which wrong returns nil. errs has the error of each item, and
// is nil if all are valid; then nothing is copied.
func Sift[T any](all []T, wrong func(i int) error) (g Good[T], errs []error) {
	g.Items = all
	for i := range all {
		err := wrong(i)
		if err != nil && errs == nil {
			errs = make([]error, len(all))
			g.Items = append(make([]T, 0, len(all)), all[:i]...)
			g.at = make([]int, i, len(all))
			for j := range g.at {
				g.at[j] = j
			}
		}
		switch {
		case err != nil:
			errs[i] = err
		case errs != nil:
			g.Items, g.at = append(g.Items, all[i]), append(g.at, i)
		}
	}
	return g, errs
}

// At returns the original index of the j-th valid item.
func (g *Good[T]) At(j int) int {
	if g.at == nil {
		return j
	}
	return g.at[j]
}
