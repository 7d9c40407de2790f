package main

import (
	"slices"

	"github.com/tarryhq/tarry/bench/page/measured"
	"github.com/tarryhq/tarry/bench/table"
)

// figures are the results of all turns.
type figures []measured.Result

// of returns the results of a part of a system.
func (f figures) of(system, part string) (all figures) {
	for _, r := range f {
		if r.System == system && r.Part == part && r.Error == "" {
			all = append(all, r)
		}
	}
	return all
}

func (f figures) all(name string) (all []float64) {
	for _, r := range f {
		if v, ok := r.Figures[name]; ok {
			all = append(all, v)
		}
	}
	return all
}

// sum returns the sum of a figure over the turns.
func (f figures) sum(name string) (sum float64) {
	for _, v := range f.all(name) {
		sum += v
	}
	return sum
}

// late returns the lateness of all turns together.
func (f figures) late() measured.Distribution {
	all := measured.Distribution{}
	for _, r := range f {
		all.Merge(r.Late)
	}
	return all
}

// lateness are figures made of it, in milliseconds.
var lateness = map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99, "p99.9-ms": 0.999}

// worst are figures of which the worst turn counts, and not the median.
var worst = map[string]bool{"max-ms": true, "missing": true}

// get returns a figure, also one of the distribution.
func (f figures) get(name string) (v float64, ok bool) {
	q, distributed := lateness[name]
	all := f.all(name)
	switch {
	case distributed:
		late := f.late()
		return min(late.Quantile(q).Seconds()*1e3, slices.Max(append(f.all("max-ms"), 0))), len(late) > 0
	case len(all) == 0:
		return 0, false
	case worst[name]:
		return slices.Max(all), true
	}
	return table.Median(all), true
}
