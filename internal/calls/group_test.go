package calls_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/tarryhq/tarry/internal/calls"
)

// groups is what GroupBy yields, plainly.
func groups(values []string) (got []string) {
	for value, items := range calls.GroupBy(len(values), func(i int) string { return values[i] }) {
		got = append(got, fmt.Sprint(value, items))
	}
	return got
}

func TestGroupBy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ values, want []string }{
		{nil, nil},
		{[]string{"a"}, []string{"a[0]"}},
		{[]string{"a", "a", "a"}, []string{"a[0 1 2]"}},
		{[]string{"b", "a", "b", "b", "a", "c"}, []string{"b[0 2 3]", "a[1 4]", "c[5]"}},
		{[]string{"", "x", ""}, []string{"[0 2]", "x[1]"}},
	} {
		if got := groups(c.values); !slices.Equal(got, c.want) {
			t.Errorf("%q are grouped as %q, not as %q", c.values, got, c.want)
		}
	}
}

// Many values, and many items, are grouped by the same rules as few.
func TestGroupByMany(t *testing.T) {
	t.Parallel()
	for _, distinct := range []int{1, 2, 8, 9, 10, 100, 1000} {
		values := make([]string, 1000)
		for i := range values {
			values[i] = strconv.Itoa(i * 7 % distinct)
		}
		var order []string
		items := make(map[string][]int)
		for i, v := range values {
			if items[v] == nil {
				order = append(order, v)
			}
			items[v] = append(items[v], i)
		}
		var want []string
		for _, v := range order {
			want = append(want, fmt.Sprint(v, items[v]))
		}
		if got := groups(values); !slices.Equal(got, want) {
			t.Errorf("%d values: %.200q", distinct, got)
		}
	}
}

func TestGroupByEndsWithTheLoop(t *testing.T) {
	t.Parallel()
	values := []string{"a", "b", "a", "c"}
	for value := range calls.GroupBy(len(values), func(i int) string { return values[i] }) {
		if value == "b" {
			break
		}
		if value == "c" {
			t.Error("it went on")
		}
	}
}

// What is appended to a group touches no other.
func TestGroupsDoNotOverlap(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{{"a", "a"}, {"a", "b", "a", "b"}} {
		var got [][]int
		for _, items := range calls.GroupBy(len(values), func(i int) string { return values[i] }) {
			_ = append(items, -1)
			got = append(got, slices.Clone(items))
		}
		if slices.Contains(slices.Concat(got...), -1) {
			t.Errorf("%v", got)
		}
	}
	if got := groups([]string{"a", "a", "a"}); !slices.Equal(got, []string{"a[0 1 2]"}) {
		t.Errorf("then %q", got)
	}
}

func TestGroupByOfOneValueAllocatesNothing(t *testing.T) {
	values := slices.Repeat([]string{"queue"}, 64)
	n := 0
	if got := testing.AllocsPerRun(100, func() {
		for _, items := range calls.GroupBy(len(values), func(i int) string { return values[i] }) {
			n += len(items)
		}
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkGroupBy(b *testing.B) {
	for _, c := range []struct{ n, distinct int }{{1, 1}, {64, 1}, {1000, 1}, {64, 2}, {64, 64}, {1000, 10}, {1000, 100}, {1000, 1000}} {
		values := make([]string, c.n)
		for i := range values {
			values[i] = "orders." + strconv.Itoa(i%c.distinct)
		}
		b.Run(fmt.Sprintf("%d items, %d groups", c.n, c.distinct), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, items := range calls.GroupBy(len(values), func(i int) string { return values[i] }) {
					_ = items
				}
			}
		})
	}
}
