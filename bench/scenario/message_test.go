package scenario

import (
	"math"
	"testing"
	"time"
)

// Each way to make keys can be read back, and no two messages have the same.
func TestKeys(t *testing.T) {
	defer func(before string) { *Keys = before }(*Keys)
	for _, *Keys = range []string{"order", "random"} {
		seen := make(map[string]bool)
		for _, i := range []int{0, 1, 2, 3, 255, 256, 1 << 20, 99_999_999, 1<<41 - 1, math.MaxInt64} {
			key := Key(i)
			if seen[key] || Index(key) != i {
				t.Errorf("%s: the key of %d is %s, which is that of %d", *Keys, i, key, Index(key))
			}
			seen[key] = true
		}
	}
}

func TestRandomKeysAreFarApart(t *testing.T) {
	const n = 1 << 12
	var first [16]int // how many have each first digit
	for i := range uint64(n) {
		first[scatter(i)>>60]++
	}
	for digit, count := range first {
		if count < n/16/2 || count > n/16*2 {
			t.Errorf("%d of %d keys begin with %x", count, n, digit)
		}
	}
}

func TestPace(t *testing.T) {
	p := pace{rate: 4000, began: time.Unix(0, 0)}
	for n, want := range map[int64]time.Duration{0: 0, 1: 250 * time.Microsecond, 4000: time.Second, 4000 * 3600 * 24: 24 * time.Hour} {
		if got := p.at(n).Sub(p.began); got != want {
			t.Errorf("%d begins after %v, not %v", n, got, want)
		}
	}
	for want := range 3 { // long since due
		if got := p.next(t.Context()); got != want {
			t.Errorf("it is %d, not %d", got, want)
		}
	}
}
