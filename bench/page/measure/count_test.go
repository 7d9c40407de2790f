//go:build linux

package measure

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/page/measured"
	"github.com/tarryhq/tarry/bench/peer"
)

func TestDelivery(t *testing.T) {
	first := time.Now().Truncate(time.Millisecond)
	d := newDelivery(peer.Load{From: 100, To: 105, First: first, Step: time.Second})
	for _, x := range []struct {
		i  int
		at time.Duration
	}{
		{100, 3 * time.Millisecond},               // 3 ms late
		{101, 999 * time.Millisecond},             // early
		{100, 5 * time.Millisecond},               // again
		{103, 3*time.Second + 7*time.Millisecond}, // 7 ms late
		{5, time.Second},                          // another's
	} {
		d.started(x.i, first.Add(x.at))
	}
	if d.missing() != 2 || d.early != 1 || d.twice != 1 || d.others != 1 || d.most != 7*time.Millisecond {
		t.Errorf("%d missing, %d early, %d twice, %d others, at most %v late", d.missing(), d.early, d.twice, d.others, d.most)
	}
	if want := first.Add(3 * time.Millisecond); !d.first.Equal(want) {
		t.Errorf("the first came at %v, not %v", d.first, want)
	}
	want := measured.Distribution{}
	for _, late := range []time.Duration{3 * time.Millisecond, -time.Millisecond, 7 * time.Millisecond} {
		want.Add(late)
	}
	for class, n := range want {
		if d.late[class] != n {
			t.Errorf("%d are in class %d, not %d", d.late[class], class, n)
		}
	}
}
