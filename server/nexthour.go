package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// What the forecast of all queues covers, and how often it is made.
const (
	aheadStep  = time.Minute
	aheadSteps = 60
	aheadRest  = 10 * time.Second
)

var callForecasts = &call{
	id: "forecastQueues", group: groupQueue, does: "Tell how many messages of all queues fall due in the next hour",
	more:    "It tells of the 500 queues with the messages that are due first, as of at most some seconds ago. A token is told of the queues that it may read.",
	answers: ok("The forecast.", wire.ForecastsAnswer.Ref()), fails: []error{engine.ErrUnsupported},
}

// nextHour is what falls due in the next hour. It is never changed.
type nextHour struct {
	from   time.Time         // zero: no queue has scheduled messages
	queues []wire.QueueAhead // by name
	beyond []string          // queues due within the hour for which there was no room
	later  []string          // queues with scheduled messages, of which none falls due
}

// forecasts tells what falls due in the next hour over all queues.
func (s *Server) forecasts(x *exchange, r *http.Request) error {
	if caps := s.c.Capabilities(); !caps.Forecast || !caps.Count {
		return refusal(http.StatusNotImplemented, "unsupported", "the engine cannot tell what falls due", "")
	}
	o, err := s.ahead.get(r.Context(), patience)
	if err != nil {
		return err
	}
	f := wire.Forecasts{Step: wire.Duration(aheadStep), Counts: make([]int64, aheadSteps), Queues: []wire.QueueAhead{}, More: slices.ContainsFunc(o.beyond, x.maySeeTrend)}
	for _, q := range o.queues {
		if !x.maySeeTrend(q.Queue) {
			continue
		}
		f.Queues = append(f.Queues, q)
		for i, n := range q.Counts {
			f.Counts[i] += n
		}
	}
	if f.More || len(f.Queues) > 0 || slices.ContainsFunc(o.later, x.maySeeTrend) {
		f.From = wire.Time{Time: o.from}
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, &f) })
}

// scanAhead makes a forecast of the queues that are due first. It goes by the times of the
// forecasts, which are the store's.
func (s *Server) scanAhead(ctx context.Context) (o nextHour, err error) {
	soon, err := s.soonest(ctx)
	if err != nil {
		return nextHour{}, err
	}
	for i, q := range soon {
		if !o.from.IsZero() && q.due.Sub(o.from) >= aheadSteps*aheadStep {
			o.later = append(o.later, q.queue)
			continue
		}
		if i >= wire.MaxAhead {
			o.beyond = append(o.beyond, q.queue)
			continue
		}
		f, err := s.c.Forecast(ctx, q.queue, aheadStep, aheadSteps*aheadStep)
		if err != nil {
			return nextHour{}, err
		}
		if o.from.IsZero() && len(f.Buckets) > 0 {
			o.from = f.Buckets[0].From
		}
		o.add(q.queue, f.Buckets)
	}
	slices.SortFunc(o.queues, func(a, b wire.QueueAhead) int { return cmp.Compare(a.Queue, b.Queue) })
	return o, nil
}

// add adds the forecast of a queue.
func (o *nextHour) add(queue string, buckets []engine.Bucket) {
	counts, any := make([]int64, aheadSteps), false
	for _, b := range buckets { // which begin a minute later when that has begun meanwhile
		if i := int(b.From.Sub(o.from) / aheadStep); b.Count > 0 && i >= 0 && i < aheadSteps {
			counts[i] += b.Count
			any = true
		}
	}
	if any {
		o.queues = append(o.queues, wire.QueueAhead{Queue: queue, Counts: counts})
	} else {
		o.later = append(o.later, queue)
	}
}

// nextDue is when the first scheduled message of a queue is due.
type nextDue struct {
	queue string
	due   time.Time
}

// soonest returns the queues with scheduled messages, those that are due first in front.
func (s *Server) soonest(ctx context.Context) (soon []nextDue, err error) {
	for q, err := range s.c.AllQueues(ctx) {
		if err != nil {
			return nil, err
		}
		if q.Scheduled > 0 {
			soon = append(soon, nextDue{q.Queue, q.NextDue})
		}
	}
	slices.SortFunc(soon, func(a, b nextDue) int { return a.due.Compare(b.due) })
	return soon, nil
}
