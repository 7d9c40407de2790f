package timer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/timer"
)

// An order that is not paid within 30 minutes is cancelled. The time is told
// to the wheel, so the half hour passes at once.
func ExampleWheel() {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	unpaid := timer.NewWheel[string](time.Millisecond, now)

	a := unpaid.Schedule(now.Add(30*time.Minute), "order A")
	unpaid.Schedule(now.Add(30*time.Minute), "order B")

	unpaid.Cancel(a) // A has been paid

	next, _ := unpaid.Next()
	for due, order := range unpaid.Advance(next) {
		fmt.Println("cancel", order, "at", due.Format(time.TimeOnly))
	}
	// Output: cancel order B at 12:30:00
}

// A message by SMS 60 seconds after the sign-up, on a ring of 60 slots: one
// whole turn, so the task stands in the slot that the hand has just left.
func ExampleRing() {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ring := timer.NewRing[string](60, time.Second, now)

	h := ring.Schedule(now.Add(60*time.Second), "welcome")
	slot, cycle, _ := ring.Where(h)
	fmt.Println("hand", ring.Index(), "slot", slot, "cycle", cycle)

	for second := range 61 {
		for _, text := range ring.Advance(now.Add(time.Duration(second) * time.Second)) {
			fmt.Println("send", text, "after", second, "s")
		}
	}
	// Output:
	// hand 0 slot 0 cycle 0
	// send welcome after 60 s
}

// A connection that sends no heartbeat for 30 ms is closed. Each heartbeat
// winds its timer back, which is the cheapest operation of all.
func ExampleRunner() {
	closed := make(chan string)
	idle := timer.NewRunner(timer.NewWheel[string](time.Millisecond, time.Now()),
		func(t timer.Timer[string]) { closed <- t.Value }, nil)
	defer idle.Close(context.Background())

	const timeout = 30 * time.Millisecond
	conn := idle.After(timeout, "conn 7")
	for range 1000 { // heartbeats
		idle.Reset(conn, time.Now().Add(timeout))
	}
	fmt.Println("closed", <-closed)
	// Output: closed conn 7
}

// Takers block until something is due.
func ExampleDelayQueue() {
	start := time.Now()
	queue := timer.NewDelayQueue[string]()
	queue.Put(start.Add(20*time.Millisecond), "second")
	queue.Put(start.Add(10*time.Millisecond), "first")
	for range 2 {
		v, err := queue.Take(context.Background())
		if err != nil {
			return
		}
		fmt.Println(v)
	}
	// Output:
	// first
	// second
}

// A heap orders to the nanosecond.
func ExampleHeap() {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	heap := timer.NewHeap[string](now)
	heap.Schedule(now.Add(2), "b")
	heap.Schedule(now.Add(1), "a")
	for _, v := range heap.Advance(now.Add(time.Microsecond)) {
		fmt.Println(v)
	}
	// Output:
	// a
	// b
}
