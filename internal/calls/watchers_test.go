package calls_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/internal/calls"
)

func TestEachWatcherIsToldUntilItStops(t *testing.T) {
	var w calls.Watchers
	w.Hint("nobody")
	if w.Any() {
		t.Error("somebody watches")
	}
	var told []string
	note := func(who string) func(string) {
		return func(queue string) { told = append(told, who+" "+queue) }
	}
	a := w.Watch(note("a"))
	b := w.Watch(note("b"))
	if !w.Any() {
		t.Error("nobody watches")
	}
	w.Hint("1", "2")
	a()
	a()
	w.Hint("3")
	b()
	w.Hint("4")
	if want := []string{"a 1", "a 2", "b 1", "b 2", "b 3"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if w.Any() {
		t.Error("somebody watches")
	}
}

// A watcher may stop itself, and another begin, while a hint is given.
func TestAWatcherMayChangeTheListItIsOn(t *testing.T) {
	var w calls.Watchers
	var told []string
	var stop func()
	stop = w.Watch(func(queue string) {
		told = append(told, queue)
		stop()
		w.Watch(func(queue string) { told = append(told, "later "+queue) })
	})
	w.Hint("q")
	w.Hint("r")
	if fmt.Sprint(told) != "[q later r]" {
		t.Error(told)
	}
}

func TestHintsAndChangesFromManyGoroutines(t *testing.T) {
	var w calls.Watchers
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				stop := w.Watch(func(string) {})
				w.Hint("q")
				stop()
			}
		})
	}
	all.Wait()
	if w.Any() {
		t.Error("somebody was left on the list")
	}
}

func TestAHintCostsNoMemory(t *testing.T) {
	var w calls.Watchers
	n := 0
	defer w.Watch(func(string) { n++ })()
	if got := testing.AllocsPerRun(100, func() { w.Hint("q") }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
