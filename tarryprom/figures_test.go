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
	want(t, valuesIn(t, m, prometheus.NewRegistry()), map[string]float64{
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
	m := watching(t,
		engine.Figure{Name: "store_up", Help: "Not ours.", Kind: engine.GaugeFigure, Readings: []engine.Reading{{Value: 7}}},
		engine.Figure{Name: "lateness_seconds_count", Help: "Not ours.", Kind: engine.GaugeFigure, Readings: one},
		engine.Figure{Name: "odd_name\xff", Help: "Not a name.", Kind: engine.GaugeFigure, Readings: one},
		engine.Figure{Name: "odd_label", Label: "le\xffgal", Readings: []engine.Reading{{Label: "a"}}},
		engine.Figure{Name: "odd_values", Label: "value", Readings: []engine.Reading{{Label: "a\xff"}, {Label: "b"}, {Label: "b"}}},
		engine.Figure{Name: "odd_seconds", Kind: engine.HistogramFigure, Readings: one},
		engine.Figure{Name: "odd_more_seconds", Kind: engine.HistogramFigure, Readings: []engine.Reading{{Times: &engine.Distribution{Bounds: []float64{1}}}}},
		engine.Figure{Name: "odd_good", Kind: engine.GaugeFigure, Readings: one},
		engine.Figure{Name: "odd_good", Kind: engine.GaugeFigure, Help: "Twice.", Readings: one},
	)
	m.Meter().Started("q", 0)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var told []string
	for line := range strings.Lines(w.Body.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "tarry_odd") || strings.HasPrefix(line, "tarry_store_up") || strings.HasPrefix(line, "tarry_lateness_seconds_count") {
			told = append(told, line)
		}
	}
	want := []string{`tarry_lateness_seconds_count{queue="q"} 1`, "tarry_odd_good 1", `tarry_odd_values_total{value="b"} 0`, "tarry_store_up 1"}
	if w.Code != 200 || !slices.Equal(told, want) {
		t.Errorf("status %d, and it tells %q, want %q", w.Code, told, want)
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
