package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
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

// outlook is what falls due in the next hour. It is never changed.
type outlook struct {
	from   time.Time         // zero: no queue has scheduled messages
	queues []wire.QueueAhead // by name
	more   bool              // there are more queues
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
	f := wire.Forecasts{From: wire.Time{Time: o.from}, Step: wire.Duration(aheadStep), Counts: make([]int64, aheadSteps), Queues: []wire.QueueAhead{}, More: o.more}
	for _, q := range o.queues {
		if !x.maySeeTrend(q.Queue) {
			continue
		}
		f.Queues = append(f.Queues, q)
		for i, n := range q.Counts {
			f.Counts[i] += n
		}
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, &f) })
}

// lookAhead makes a forecast of the queues that are due first. It goes by the times of the
// forecasts, which are the store's.
func (s *Server) lookAhead(ctx context.Context) (o outlook, err error) {
	soon, err := s.soonest(ctx)
	if err != nil {
		return outlook{}, err
	}
	for i := range soon {
		if !o.from.IsZero() && soon[i].NextDue.Sub(o.from) >= aheadSteps*aheadStep {
			break
		}
		if o.more = i == wire.MaxAhead; o.more {
			break
		}
		f, err := s.c.Forecast(ctx, soon[i].Queue, aheadStep, aheadSteps*aheadStep)
		if err != nil {
			return outlook{}, err
		}
		if o.from.IsZero() {
			o.from = f.Buckets[0].From
		}
		o.add(soon[i].Queue, f.Buckets)
	}
	slices.SortFunc(o.queues, func(a, b wire.QueueAhead) int { return cmp.Compare(a.Queue, b.Queue) })
	return o, nil
}

// add adds the forecast of a queue, unless nothing falls due.
func (o *outlook) add(queue string, buckets []engine.Bucket) {
	counts, any := make([]int64, aheadSteps), false
	for _, b := range buckets { // which begin a minute later when that has begun meanwhile
		if i := int(b.From.Sub(o.from) / aheadStep); b.Count > 0 && i >= 0 && i < aheadSteps {
			counts[i] += b.Count
			any = true
		}
	}
	if any {
		o.queues = append(o.queues, wire.QueueAhead{Queue: queue, Counts: counts})
	}
}

// soonest returns the queues with scheduled messages that are due first, in that order: one
// more than the forecast tells of, if there are as many.
func (s *Server) soonest(ctx context.Context) (soon []tarry.QueueInfo, err error) {
	sort := func() {
		slices.SortFunc(soon, func(a, b tarry.QueueInfo) int { return a.NextDue.Compare(b.NextDue) })
		soon = soon[:min(len(soon), wire.MaxAhead+1)]
	}
	for q, err := range s.c.AllQueues(ctx) {
		if err != nil {
			return nil, err
		}
		if q.Scheduled > 0 {
			soon = append(soon, q)
		}
		if len(soon) > 4*wire.MaxAhead {
			sort()
		}
	}
	sort()
	return soon, nil
}
