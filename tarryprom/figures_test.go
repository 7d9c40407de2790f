package tarryprom

import (
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// measuring is an engine that tells figures.
type measuring struct {
	engine.Whole
	figures []engine.Figure
}

func (e *measuring) Figures() []engine.Figure { return slices.Clone(e.figures) }

func watching(t *testing.T, figures ...engine.Figure) *Metrics {
	t.Helper()
	e := memengine.New(nil)
	c := tarry.New(&measuring{e, figures}, nil)
	t.Cleanup(func() { c.Close(); e.Close() })
	m := New(nil)
	m.Watch(c)
	return m
}

// What an engine measures is told by the conventions of Prometheus.
func TestFiguresOfAnEngine(t *testing.T) {
	times := &engine.Distribution{Bounds: []float64{0.1, 1}, Counts: []uint64{2, 3, 1}, Sum: 7.5}
	m := watching(t,
		engine.Figure{Name: "odd_calls", Help: "Calls.", Readings: []engine.Reading{{Value: 3}}},
		engine.Figure{Name: "odd_held_bytes", Help: "Bytes.", Kind: engine.GaugeFigure, Label: "part", Readings: []engine.Reading{{Label: "a", Value: 1}, {Label: "b", Value: 2}}},
		engine.Figure{Name: "odd_call_seconds", Help: "How long.", Kind: engine.HistogramFigure, Readings: []engine.Reading{{Times: times}}},
	)
	want(t, values(t, m), map[string]float64{
		`tarry_odd_calls_total{}`:         3,
		`tarry_odd_held_bytes{part="a"}`:  1,
		`tarry_odd_held_bytes{part="b"}`:  2,
		`tarry_odd_call_seconds{} count`:  6,
		`tarry_odd_call_seconds{} sum`:    7.5,
		`tarry_store_up{}`:                1,
		`tarry_odd_call_seconds{} le 0.1`: 2,
		`tarry_odd_call_seconds{} le 1`:   5,
	})
}

// What an engine tells wrongly is left out, and nothing else with it.
func TestFiguresThatAreWrong(t *testing.T) {
	one := []engine.Reading{{Value: 1}}
	many := make([]engine.Reading, 1000)
	for i := range many {
		many[i].Label = strings.Repeat("x", i+1)
	}
	all := []engine.Figure{
		{Name: "store_up", Help: "Ours.", Kind: engine.GaugeFigure, Readings: one},
		{Name: "lateness_seconds_count", Help: "Ours.", Kind: engine.GaugeFigure, Readings: one},
		{Name: "odd name", Help: "Not a name.", Readings: one},
		{Name: "odd", Help: "Not of an engine.", Readings: one},
		{Name: "odd_label", Label: "le gal", Readings: []engine.Reading{{Label: "a"}}},
		{Name: "odd_values", Label: "value", Readings: []engine.Reading{{Label: "a\xff"}, {Label: "b"}, {Label: "b"}}},
		{Name: "odd_many", Label: "value", Readings: many},
		{Name: "odd_seconds", Kind: engine.HistogramFigure, Readings: one},
		{Name: "odd_more_seconds", Kind: engine.HistogramFigure, Readings: []engine.Reading{{Times: &engine.Distribution{Bounds: []float64{1}}}}},
		{Name: "odd_good", Kind: engine.GaugeFigure, Readings: one},
		{Name: "odd_good", Kind: engine.GaugeFigure, Help: "Twice.", Readings: one},
	}
	for range 1000 {
		all = append(all, engine.Figure{Name: "odd_more" + strings.Repeat("_x", len(all)), Readings: one})
	}
	m := watching(t, all...)
	got := values(t, m)
	want(t, got, map[string]float64{"tarry_odd_good{}": 1, `tarry_odd_values_total{value="b"}`: 0, "tarry_store_up{}": 1})
	odd := 0
	for name := range got {
		if strings.HasPrefix(name, "tarry_odd") {
			odd++
		}
	}
	if most := maxFigures + maxReadings; odd > most {
		t.Errorf("%d figures, of %d at most", odd, most)
	}
	if !m.own["tarry_store_up"] || !m.own["tarry_lateness_seconds_sum"] || len(m.own) < 4*20 {
		t.Errorf("the names of its own are %v", m.own)
	}
}

// A registry that was made before there is an engine, and one of a client that has closed,
// tell what there is.
func TestFiguresBeforeAndAfter(t *testing.T) {
	m := New(nil)
	h := m.Handler()
	e := memengine.New(nil)
	defer e.Close()
	c := tarry.New(&measuring{e, []engine.Figure{{Name: "odd_calls", Help: "Calls.", Readings: []engine.Reading{{Value: 3}}}}}, nil)
	m.Watch(c)
	for _, when := range []string{"open", "closed"} {
		var scrapes sync.WaitGroup
		for range 8 {
			scrapes.Go(func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
				if !strings.Contains(w.Body.String(), "\ntarry_odd_calls_total 3\n") {
					t.Errorf("%s: %d %s", when, w.Code, w.Body)
				}
			})
		}
		scrapes.Wait()
		c.Close()
	}
	if err := prometheus.NewPedanticRegistry().Register(m); err != nil {
		t.Error(err)
	}
}
