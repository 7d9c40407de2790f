// Package sift takes the good items of a call apart from the bad, and brings what
// became of them back to their places.
package sift

// Good are those items of a call that nothing is wrong with, in order.
type Good[T any] struct {
	Items []T
	at    []int // where each stood; nil: all are good
}

// Items asks of each item what is wrong with it, and returns those with nothing. It
// copies nothing as long as all are good.
func Items[T any](all []T, wrong func(i int) error) (g Good[T], errs []error) {
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

// At is where the j-th good item stood among all.
func (g *Good[T]) At(j int) int {
	if g.at == nil {
		return j
	}
	return g.at[j]
}
