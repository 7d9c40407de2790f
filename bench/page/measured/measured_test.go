package measured

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDistribution(t *testing.T) {
	a, b := Distribution{}, Distribution{}
	for i := range 1000 {
		late := time.Duration(i+1) * time.Millisecond
		if i%2 == 0 {
			a.Add(late)
		} else {
			b.Add(late)
		}
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var read Distribution
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	a.Merge(read)
	if n := a.Count(); n != 1000 {
		t.Errorf("it has counted %d", n)
	}
	for q, want := range map[float64]time.Duration{0.001: time.Millisecond, 0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := a.Quantile(q); got < want || got > want*102/100 {
			t.Errorf("of %v do not exceed %v, not %v", q, got, want)
		}
	}
	early := Distribution{}
	early.Add(-time.Second)
	if got := early.Quantile(1); got != least {
		t.Errorf("one that is not late is %v late", got)
	}
	if got := (Distribution{}).Quantile(0.5); got != 0 {
		t.Errorf("none are %v late", got)
	}
}
