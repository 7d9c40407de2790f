package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	shapes "github.com/tarryhq/tarry/internal/wire"
)

// foreseen counts the forecasts that an engine is asked for, and may fail.
type foreseen struct {
	*memengine.Engine
	asked atomic.Int64
	down  atomic.Bool
}

func (e *foreseen) Forecast(ctx context.Context, queue string, step, span time.Duration) (engine.Forecast, error) {
	e.asked.Add(1)
	if e.down.Load() {
		return engine.Forecast{}, engine.ErrUnavailable
	}
	return e.Engine.Forecast(ctx, queue, step, span)
}

// bare is an engine whose forecasts have no steps.
type bare struct{ *memengine.Engine }

func (bare) Forecast(context.Context, string, time.Duration, time.Duration) (engine.Forecast, error) {
	return engine.Forecast{}, nil
}

// blind is an engine that makes no forecasts.
type blind struct{ *memengine.Engine }

func (e blind) Capabilities() engine.Capabilities {
	c := e.Engine.Capabilities()
	c.Forecast = false
	return c
}

// ahead runs f in a bubble with a server, whose clock shows a whole minute.
func ahead(t *testing.T, f func(a *api, e *foreseen, push func(queue string, in time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		e := &foreseen{Engine: memengine.New(nil)}
		c := tarry.New(e, nil)
		defer c.Close()
		f(&api{TB: t, c: c, s: newServer(t, c, nil)}, e, func(queue string, in time.Duration) {
			t.Helper()
			if _, err := c.Push(t.Context(), queue, nil, tarry.In(in)); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func (a *api) forecast() (f shapes.Forecasts) {
	a.Helper()
	w := a.send("GET", "/v1/forecast", "")
	if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Code != http.StatusOK {
		a.Fatal(w.Code, w.Body, err)
	}
	return f
}

// minutes are the counts that are not 0, by minute.
func minutes(counts []int64) (all map[int]int64) {
	all = make(map[int]int64)
	for i, n := range counts {
		if n > 0 {
			all[i] = n
		}
	}
	return all
}

// What falls due in the next hour is counted by the minute, queue by queue and in all.
func TestForecastOfAllQueues(t *testing.T) {
	ahead(t, func(a *api, e *foreseen, push func(string, time.Duration)) {
		if f := a.forecast(); !f.From.IsZero() || len(f.Counts) != 60 || f.Queues == nil || len(f.Queues) != 0 {
			t.Errorf("of an empty store: %+v", f)
		}
		time.Sleep(10 * time.Second)
		began := time.Now().Truncate(time.Minute)
		push("b", 90*time.Second)
		push("b", 100*time.Second)
		push("a", 90*time.Second)
		push("a", 59*time.Minute)
		push("late", 0)
		push("later", 61*time.Minute)
		push("tomorrow", 24*time.Hour)
		f := a.forecast()
		if !f.From.Equal(began) || f.Step.D() != time.Minute || f.More || len(f.Queues) != 2 {
			t.Fatalf("%+v", f)
		}
		for _, c := range []struct {
			name, got, want string
		}{
			{"all", fmt.Sprint(minutes(f.Counts)), "map[1:3 59:1]"},
			{f.Queues[0].Queue, fmt.Sprint(minutes(f.Queues[0].Counts)), "map[1:1 59:1]"},
			{f.Queues[1].Queue, fmt.Sprint(minutes(f.Queues[1].Counts)), "map[1:2]"},
		} {
			if c.got != c.want {
				t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
			}
		}
		if n := e.asked.Load(); n != 2 {
			t.Errorf("the engine made %d forecasts, want those of the 2 queues due within the hour", n)
		}
	})
}

// Many viewers share a scan, which is good for 10 s.
func TestForecastIsShared(t *testing.T) {
	ahead(t, func(a *api, e *foreseen, push func(string, time.Duration)) {
		push("q", 30*time.Minute)
		for range 50 {
			answers := make(chan int, 200)
			for range cap(answers) {
				go func() { answers <- len(a.forecast().Queues) }()
			}
			for range cap(answers) {
				if n := <-answers; n != 1 {
					t.Fatalf("%d queues", n)
				}
			}
			time.Sleep(time.Second)
		}
		if n := e.asked.Load(); n != 5 {
			t.Errorf("%d scans for 200 viewers within 50 s, want 5", n)
		}
		e.down.Store(true)
		time.Sleep(10 * time.Second)
		if w := a.send("GET", "/v1/forecast", ""); w.Code != http.StatusServiceUnavailable {
			t.Errorf("while the store is down: %d %s", w.Code, w.Body)
		}
		e.down.Store(false)
		a.forecast() // at once
	})
}

func TestForecastOfAnEngineWithoutAny(t *testing.T) {
	c := tarry.New(blind{memengine.New(nil)}, nil)
	defer c.Close()
	a := &api{TB: t, c: c, s: newServer(t, c, nil)}
	if w := a.send("GET", "/v1/forecast", ""); w.Code != http.StatusNotImplemented {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestForecastWithoutSteps(t *testing.T) {
	c := tarry.New(bare{memengine.New(nil)}, nil)
	defer c.Close()
	if _, err := c.Push(t.Context(), "q", nil, tarry.In(time.Hour)); err != nil {
		t.Fatal(err)
	}
	a := &api{TB: t, c: c, s: newServer(t, c, nil)}
	if f := a.forecast(); len(f.Counts) != 60 || len(f.Queues) != 0 || f.More {
		t.Errorf("%+v", f)
	}
}

// Of more queues than the bound those are told of that are due first.
func TestForecastIsBounded(t *testing.T) {
	ahead(t, func(a *api, e *foreseen, push func(string, time.Duration)) {
		const many = 5 * shapes.MaxAhead
		name := func(n int) string { return fmt.Sprintf("q%04d", n*7%many) }
		for n := range many {
			push(name(n), time.Minute+time.Duration(n)*time.Second)
		}
		f := a.forecast()
		if len(f.Queues) != shapes.MaxAhead || !f.More || e.asked.Load() != shapes.MaxAhead {
			t.Fatalf("%d queues, more: %v, %d forecasts", len(f.Queues), f.More, e.asked.Load())
		}
		var want []string
		for n := range shapes.MaxAhead {
			want = append(want, name(n))
		}
		slices.Sort(want)
		for i, q := range f.Queues {
			if q.Queue != want[i] {
				t.Fatalf("%s, want %s", q.Queue, want[i])
			}
		}
		time.Sleep(10*time.Second + time.Millisecond)
		for n := shapes.MaxAhead; n < many; n++ { // those beyond go
			if err := a.c.Cancel(t.Context(), tarry.ByID(tarry.ID(n+1)).Of(name(n))); err != nil {
				t.Fatal(err)
			}
		}
		if f := a.forecast(); len(f.Queues) != shapes.MaxAhead || f.More {
			t.Errorf("as many as the bound: %d queues, more: %v", len(f.Queues), f.More)
		}
	})
}
