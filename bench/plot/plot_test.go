package plot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func number(v float64) string { return fmt.Sprint(v) }

func TestWrite(t *testing.T) {
	c := Chart{
		Title: "a < b",
		X:     Axis{Title: "x", Log: true, Ticks: []Tick{{1, "1"}, {10, "10"}, {100, "100"}}},
		Y:     Axis{Title: "y", Ticks: []Tick{{0, "0"}, {4, "4"}}},
		Lines: []Line{{Name: "one", Points: []Point{{1, 0}, {10, 2}, {100, 4}, {1000, 9}}, Marked: true}},
	}
	var b strings.Builder
	if err := Write(&b, []Chart{c, c, c}, 2, "charts & more"); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	// The middle of the logarithmic axis, and the end for what lies beyond it.
	for text, n := range map[string]int{
		`d="M58.0 286.0L248.0 177.0L438.0 68.0L438.0 68.0"`: 3,
		"<circle": 12, `x1="248.0" y1="68" x2="248.0" y2="286"`: 3, `x1="58" y1="68.0" x2="438" y2="68.0"`: 3, "prefers-color-scheme: dark": 1, `viewBox="0 0 920 660"`: 1, "a &lt; b": 3,
	} {
		if got := strings.Count(b.String(), text); got != n {
			t.Errorf("%s is there %d times, not %d", text, got, n)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, x := range []struct {
		got  []Tick
		want string
	}{
		{Decades([]float64{0.2, 0, 30}, number), "[0.1 1 10 100]"},
		{Decades([]float64{1, 10}, number), "[1 10]"},
		{Decades([]float64{1}, number), "[1 10]"},
		{Decades(nil, number), "[1 10]"},
		{Steps([]float64{7, 42}, number), "[0 10 20 30 40 50]"},
		{Steps([]float64{100}, number), "[0 20 40 60 80 100]"},
		{Steps([]float64{0.3}, number), "[0 0.1 0.2 0.30000000000000004]"},
		{Steps(nil, number), "[0 0.2 0.4 0.6000000000000001 0.8 1]"},
	} {
		var values []float64
		for _, tick := range x.got {
			values = append(values, tick.Value)
		}
		if got := fmt.Sprint(values); got != x.want {
			t.Errorf("the ticks are %s, not %s", got, x.want)
		}
	}
}
