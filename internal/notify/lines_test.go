package notify

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLines(2, time.Second)
		var written []int
		line := func(n int) {
			for range n {
				if left, ok := l.Next(); ok {
					written = append(written, left)
				}
			}
		}
		line(10)
		time.Sleep(time.Second)
		line(5)
		time.Sleep(time.Hour)
		line(3)
		if want := []int{0, 0, 8, 4, 0}; !slices.Equal(written, want) {
			t.Errorf("left out before each line was %v, not %v", written, want)
		}
	})
}
