package figure

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestTimesFallIntoBuckets(t *testing.T) {
	var ts Times
	for _, d := range []time.Duration{-time.Second, 0, 100 * time.Microsecond, 100*time.Microsecond + 1, time.Second, 30 * time.Second, 30*time.Second + 1, 48 * time.Hour} {
		ts.Observe(d)
	}
	d := ts.distribution()
	want := make([]uint64, len(bounds)+1)
	want[0], want[1], want[slices.Index(d.Bounds, 1)], want[slices.Index(d.Bounds, 30)], want[len(bounds)] = 3, 1, 1, 1, 2
	if !slices.Equal(d.Counts, want) || ts.Count() != 8 {
		t.Errorf("%v, want %v", d.Counts, want)
	}
	if sum := (48*time.Hour + 61*time.Second + 200*time.Microsecond + 2).Seconds(); d.Sum != sum {
		t.Errorf("the sum is %v, want %v", d.Sum, sum)
	}
}

func TestTimesByMany(t *testing.T) {
	var ts Times
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				ts.Observe(time.Millisecond)
			}
		})
	}
	wg.Wait()
	if d := ts.distribution(); ts.Count() != 8000 || d.Sum != 8 {
		t.Errorf("%d, %v", ts.Count(), d.Sum)
	}
}

func TestList(t *testing.T) {
	l := Of("odd")
	l.Total("calls", "Calls.", 3)
	l.GaugeBy("held_bytes", "Held.", "part", By{"a", 1}, By{"b", 2})
	l.Flag("up", "Whether it is up.", true)
	l.Times("call_seconds", "How long.", new(Times))
	all := l.All()
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	if want := []string{"odd_calls", "odd_held_bytes", "odd_up", "odd_call_seconds"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	if all[0].Kind != engine.TotalFigure || all[1].Label != "part" || all[1].Readings[1] != (engine.Reading{Label: "b", Value: 2}) || all[2].Readings[0].Value != 1 || all[3].Readings[0].Times == nil {
		t.Errorf("%+v", all)
	}
}
