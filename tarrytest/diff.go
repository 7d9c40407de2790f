package tarrytest

import "strings"

const (
	// around is how many equal lines are shown on each side of those that differ.
	around = 3
	// mostCells bounds the table that a diff needs: beyond it, all lines count as different.
	mostCells = 4 << 20
)

// diff returns the lines in which two texts differ, with "- " and "+ ", among some that are
// equal; nil: the texts are equal.
func diff(want, got []string) (out []string) {
	all := edits(want, got)
	shown := make([]bool, len(all))
	for i, l := range all {
		if l[0] != ' ' {
			for j := max(0, i-around); j <= min(i+around, len(all)-1); j++ {
				shown[j] = true
			}
		}
	}
	for i, l := range all {
		switch {
		case shown[i]:
			out = append(out, l)
		case i > 0 && shown[i-1]:
			out = append(out, "  …")
		}
	}
	return out
}

// edits returns all lines of two texts, each with "- ", "+ " or two spaces.
func edits(want, got []string) (out []string) {
	for len(want) > 0 && len(got) > 0 && want[0] == got[0] {
		out = append(out, "  "+want[0])
		want, got = want[1:], got[1:]
	}
	if len(want)*len(got) > mostCells {
		return added(added(out, "- ", want), "+ ", got)
	}
	common := commonLengths(want, got)
	i, j := 0, 0
	for i < len(want) && j < len(got) {
		switch {
		case want[i] == got[j]:
			out = append(out, "  "+want[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			out = append(out, "- "+want[i])
			i++
		default:
			out = append(out, "+ "+got[j])
			j++
		}
	}
	return added(added(out, "- ", want[i:]), "+ ", got[j:])
}

// commonLengths returns a table with the length of the longest common subsequence of a[i:]
// and b[j:] at [i][j].
func commonLengths(a, b []string) [][]int {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

func added(out []string, mark string, ls []string) []string {
	for _, l := range ls {
		out = append(out, mark+l)
	}
	return out
}

// changes counts the lines of a diff that differ.
func changes(diff []string) (n int) {
	for _, l := range diff {
		if !strings.HasPrefix(l, " ") {
			n++
		}
	}
	return n
}
