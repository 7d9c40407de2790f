package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// An outcome is how a job of an order ended.
type outcome uint8

const (
	open      outcome = iota // not yet, or there never was a reason
	handled                  // the message was handled when due: cancelled, rated by itself
	calledOff                // the message was cancelled in time: approved, answered
)

// outcomes holds the outcome of each job of each order, by row.
type outcomes [jobs][]outcome

func newOutcomes(orders int) (o outcomes) {
	for j := range o {
		o[j] = make([]outcome, orders)
	}
	return o
}

func (o *outcomes) count(j job, want outcome) (n int) {
	for _, got := range o[j] {
		if got == want {
			n++
		}
	}
	return n
}

// A report is what a replay comes to. Its JSON is what --json prints.
type report struct {
	Orders           int     `json:"orders"`
	OrdersCancelled  int     `json:"orders_cancelled"`
	CancelsCalledOff int     `json:"cancels_called_off"`
	ReviewsAutomatic int     `json:"reviews_automatic"`
	ReviewsGiven     int     `json:"reviews_given"`
	Seconds          float64 `json:"seconds"`
}

func (o *outcomes) report(orders int, took time.Duration) report {
	return report{
		Orders:           orders,
		OrdersCancelled:  o.count(cancelUnpaid, handled),
		CancelsCalledOff: o.count(cancelUnpaid, calledOff),
		ReviewsAutomatic: o.count(rateReview, handled),
		ReviewsGiven:     o.count(rateReview, calledOff),
		Seconds:          took.Round(time.Millisecond).Seconds(),
	}
}

// table prints the report for people.
func (r report) table(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, l := range []struct {
		name string
		n    int
	}{
		{"orders", r.Orders},
		{"cancelled, unpaid for 30 minutes", r.OrdersCancelled},
		{"paid in time", r.CancelsCalledOff},
		{"rated five stars after 48 hours", r.ReviewsAutomatic},
		{"rated by the customer in time", r.ReviewsGiven},
	} {
		fmt.Fprintf(tw, "%d\t %s\n", l.n, l.name)
	}
	fmt.Fprintf(tw, "%.3f\t seconds\n", r.Seconds)
	return tw.Flush()
}
