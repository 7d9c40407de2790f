package main

import (
	"encoding/csv"
	"os"
	"testing"
	"time"
)

// plainOutcome is what a file says of one order, in the words of the report.
type plainOutcome struct{ cancelled, calledOff, automatic, given bool }

// plainPass works out line by line what a replay of a file must come to. It
// shares nothing with the replay: no parsing, no order of events, no queue.
func plainPass(t *testing.T, name string) (map[string]plainOutcome, report) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	byOrder := make(map[string]plainOutcome)
	var sum report
	for _, line := range lines[1:] {
		cell := make(map[string]string)
		for i, name := range lines[0] {
			cell[name] = line[i]
		}
		var o plainOutcome
		o.cancelled, o.calledOff = plainJob(t, cell["purchased_at"], cell["approved_at"], 30*60*1000)
		o.automatic, o.given = plainJob(t, cell["review_asked_at"], cell["review_answered_at"], 48*60*60*1000)
		byOrder[cell["order_id"]] = o
		sum.Orders++
		sum.OrdersCancelled += plainCount(o.cancelled)
		sum.CancelsCalledOff += plainCount(o.calledOff)
		sum.ReviewsAutomatic += plainCount(o.automatic)
		sum.ReviewsGiven += plainCount(o.given)
	}
	return byOrder, sum
}

// plainJob applies the rule: without a reason nothing; called off by whatever
// comes no later than delay milliseconds after the reason; handled otherwise.
func plainJob(t *testing.T, reason, callOff string, delay int64) (handled, calledOff bool) {
	if reason == "" {
		return false, false
	}
	if callOff == "" {
		return true, false
	}
	late := plainMillis(t, callOff)-plainMillis(t, reason) > delay
	return late, !late
}

func plainMillis(t *testing.T, s string) int64 {
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

func plainCount(b bool) int {
	if b {
		return 1
	}
	return 0
}
