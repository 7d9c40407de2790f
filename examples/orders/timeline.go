package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
)

// Order is the body of both messages.
type Order struct {
	ID string `json:"id"`
}

// A job is one of the two things that are to be done later. The zero job is that
// of the unpaid order.
type job int

const (
	cancelUnpaid job = iota // cancel the order 30 minutes after the purchase, unless it is approved
	rateReview              // rate it five stars 48 hours after the request, unless it is answered
	jobs                    // how many there are
)

// lease is how long handled messages may wait for their acks, in virtual time.
const lease = 24 * time.Hour

var (
	delays = [jobs]time.Duration{30 * time.Minute, 48 * time.Hour}
	topics = [jobs]*tarry.Topic[Order]{
		tarry.NewTopic[Order]("order.unpaid", messageOptions...),
		tarry.NewTopic[Order]("order.review", messageOptions...),
	}
	// A repeated push keeps the message that is there. A lease that a crash took
	// away may count as an attempt: however often that happens, the message must
	// not die of it.
	messageOptions = []tarry.PushOption{
		tarry.OnConflict(tarry.Keep), tarry.TTR(lease), tarry.MaxAttempts(tarry.MaxMaxAttempts),
	}
)

// An event is one thing that happens to an order: the reason of a job, or what
// calls the job off.
type event struct {
	at      time.Time
	row     int // of the order
	job     job
	callOff bool
}

// timeline returns all events in the order in which they are applied: by time; at
// one instant reasons before call-offs; then by line. A call-off is never before
// its reason, and there is none without a reason.
func timeline(orders []order) []event {
	events := make([]event, 0, 4*len(orders))
	add := func(row int, j job, reason, callOff time.Time) {
		if reason.IsZero() {
			return
		}
		events = append(events, event{at: reason, row: row, job: j})
		if callOff.IsZero() {
			return
		}
		if callOff.Before(reason) {
			callOff = reason
		}
		events = append(events, event{at: callOff, row: row, job: j, callOff: true})
	}
	for row, o := range orders {
		add(row, cancelUnpaid, o.purchased, o.approved)
		add(row, rateReview, o.asked, o.answered)
	}
	slices.SortFunc(events, func(a, b event) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		if a.callOff != b.callOff {
			if b.callOff {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.job, b.job))
	})
	return events
}
