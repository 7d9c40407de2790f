package enginetest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

var figureTests = []test{
	{"they are well-formed, and the same after all that happens and after close", func(b *bed) {
		m := b.measurer()
		before := m.Figures()
		checkFigures(b.T, before)
		r := b.push(b.msg("k", dueNow))
		for what, err := range b.everyCall(b.Context(), b.id(r.ID)) {
			if err != nil {
				b.Logf("%s: %v", what, err)
			}
		}
		checkFigures(b.T, m.Figures())
		b.sameFigures(before, m.Figures())
		b.is(b.e.Close(), nil)
		b.sameFigures(before, m.Figures())
	}},
	{"totals only grow, and many may ask while others work", func(b *bed) {
		m := b.measurer()
		var working, asking sync.WaitGroup
		over := make(chan struct{})
		for range 4 {
			working.Go(func() {
				for range 5 {
					b.push(b.msg("", dueNow))
					if _, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: 1}}); err != nil {
						b.Errorf("lease: %v", err)
					}
				}
			})
			asking.Go(func() {
				last := m.Figures()
				for {
					select {
					case <-over:
						return
					default:
					}
					now := m.Figures()
					b.grown(last, now)
					last = now
				}
			})
		}
		working.Wait()
		close(over)
		asking.Wait()
	}},
}

func (b *bed) measurer() engine.Measurer {
	m, ok := b.e.(engine.Measurer)
	b.need("Figures", ok)
	return m
}

var wellNamed = regexp.MustCompile(`^[a-z]+(_[a-z0-9]+)+$`)

// checkFigures fails the test unless figures follow package engine's rules.
func checkFigures(t *testing.T, all []engine.Figure) {
	t.Helper()
	if len(all) == 0 {
		t.Fatal("there are no figures")
	}
	name, _, _ := strings.Cut(all[0].Name, "_")
	for _, f := range all {
		if !wellNamed.MatchString(f.Name) || !strings.HasPrefix(f.Name, name+"_") || strings.HasSuffix(f.Name, "_total") {
			t.Errorf("%s is no name of a figure", f.Name)
		}
		if f.Help == "" || strings.ContainsAny(f.Help, "|\n") || !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s: %q is no help", f.Name, f.Help)
		}
		if len(f.Readings) == 0 || f.Label == "" && len(f.Readings) != 1 || len(f.Readings) > 20 {
			t.Errorf("%s has %d readings", f.Name, len(f.Readings))
		}
		for _, r := range f.Readings {
			if (r.Label == "") != (f.Label == "") || r.Value < 0 {
				t.Errorf("%s reads %+v", f.Name, r)
			}
			if times := r.Times; (f.Kind == engine.HistogramFigure) != (times != nil) || times != nil && (len(times.Counts) != len(times.Bounds)+1 || !slices.IsSorted(times.Bounds)) {
				t.Errorf("%s reads %+v", f.Name, r)
			}
		}
		if f.Kind == engine.HistogramFigure && !strings.HasSuffix(f.Name, "_seconds") {
			t.Errorf("%s has no unit", f.Name)
		}
	}
	if names := identities(all); len(slices.Compact(names)) != len(identities(all)) {
		t.Errorf("a figure is there twice: %q", identities(all))
	}
}

// identities are the names of figures and their readings, in order.
func identities(all []engine.Figure) (names []string) {
	for _, f := range all {
		for _, r := range f.Readings {
			names = append(names, fmt.Sprintf("%s{%s=%q} of kind %d", f.Name, f.Label, r.Label, f.Kind))
		}
	}
	slices.Sort(names)
	return names
}

func (b *bed) sameFigures(x, y []engine.Figure) {
	b.Helper()
	if was, is := identities(x), identities(y); !slices.Equal(was, is) {
		b.Errorf("the figures were\n%q\nand are\n%q", was, is)
	}
}

// grown fails the test if a counter has decreased.
func (b *bed) grown(was, is []engine.Figure) {
	b.Helper()
	for i := range was {
		for j := range was[i].Readings {
			x, y := was[i].Readings[j], is[i].Readings[j]
			if was[i].Kind == engine.TotalFigure && y.Value < x.Value {
				b.Errorf("%s has gone from %v to %v", was[i].Name, x.Value, y.Value)
			}
			if was[i].Kind == engine.HistogramFigure && counted(y.Times) < counted(x.Times) {
				b.Errorf("%s has lost some", was[i].Name)
			}
		}
	}
}

func counted(d *engine.Distribution) (n uint64) {
	for _, c := range d.Counts {
		n += c
	}
	return n
}

// FigureOf returns the reading of an engine's figure for a label value, "" without a label;
// for a histogram, the number of values. The test fails if there is none.
func FigureOf(t testing.TB, e engine.Engine, name, label string) float64 {
	t.Helper()
	m, ok := e.(engine.Measurer)
	if !ok {
		t.Fatal("the engine has no figures")
	}
	for _, f := range m.Figures() {
		for _, r := range f.Readings {
			switch {
			case f.Name != name || r.Label != label:
			case r.Times != nil:
				return float64(counted(r.Times))
			default:
				return r.Value
			}
		}
	}
	t.Fatalf("there is no figure %s of %q", name, label)
	return 0
}
