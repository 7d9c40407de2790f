package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
)

// queueRow is a queue at one moment, and its recent past.
type queueRow struct {
	tarry.QueueInfo
	trend           *wire.Happened // nil: nothing keeps trends
	late            wire.Times     // how late messages were; empty: none was handed out, or it is not known
	pushed, handled float64        // a second, in the last minute

	bad  int     // number of its problems
	rank float64 // in the column that the table is sorted by
}

// overview is the queues and the problems at one moment, for tarry status and tarry top.
type overview struct {
	finder
	hurry  time.Duration // how long to look for problems, and so perhaps find fewer; 0: until all are found
	trends bool          // a server keeps trends
	more   bool          // there are more queues than these
	rows   []*queueRow

	sum             tarry.QueueInfo // counts of all rows
	next, oldest    *queueRow       // with the next due and the oldest ready message; nil: none
	pushed, handled float64         // a second, over all rows
}

// rateSpan is the span over which rates are taken.
const rateSpan = time.Minute

// look asks for at most this many queues, the first by name, and for the problems. It
// asks for the trends of a span, step by step.
func (o *overview) look(ctx context.Context, c *tarry.Client, span, step time.Duration, most int) error {
	trends, kept, err := trendsOf(ctx, c, span, step)
	if err != nil {
		return err
	}
	o.trends = kept
	for q, err := range c.AllQueues(ctx) {
		if err != nil {
			return err
		}
		if o.more = len(o.rows) == most; o.more {
			break
		}
		o.add(q, trends[q.Queue], step)
		delete(trends, q.Queue)
	}
	for _, name := range slices.Sorted(maps.Keys(trends)) { // queues that no longer hold anything
		if t := trends[name]; !o.more && latenessKnown(&t.Lateness) {
			o.add(tarry.QueueInfo{Queue: name}, t, step)
		}
	}
	return o.problemsOf(ctx, c)
}

// problemsOf finds the problems, or as many as it can in a hurry.
func (o *overview) problemsOf(ctx context.Context, c *tarry.Client) error {
	limit := ctx
	if o.hurry > 0 {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, o.hurry)
		defer cancel()
	}
	err := o.find(limit, c, o.rows)
	o.count(o.rows)
	if limit.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// add adds a queue.
func (o *overview) add(q tarry.QueueInfo, t *wire.QueueTrend, step time.Duration) {
	r := &queueRow{QueueInfo: q}
	if o.trends {
		r.trend = new(wire.Happened)
	}
	if t != nil {
		r.trend = &t.Happened
		r.pushed, r.handled = perSecond(t.Spark.Pushed, step), perSecond(t.Spark.Acked, step)
		if latenessKnown(&t.Lateness) {
			r.late = t.Lateness
		}
	}
	o.rows = append(o.rows, r)

	o.sum.Scheduled, o.sum.Ready, o.sum.Leased, o.sum.Dead = o.sum.Scheduled+q.Scheduled, o.sum.Ready+q.Ready, o.sum.Leased+q.Leased, o.sum.Dead+q.Dead
	o.pushed, o.handled = o.pushed+r.pushed, o.handled+r.handled
	if !q.NextDue.IsZero() && (o.next == nil || q.NextDue.Before(o.next.NextDue)) {
		o.next = r
	}
	if !q.OldestReady.IsZero() && (o.oldest == nil || q.OldestReady.Before(o.oldest.OldestReady)) {
		o.oldest = r
	}
}

// sums says what all queues hold together.
func (o *overview) sums() string { return counted(len(o.rows), "queue") + ": " + holds(&o.sum) }

// perSecond returns the rate over the last minute. It ignores the last step, which has not
// ended.
func perSecond(steps []uint64, step time.Duration) float64 {
	n := uint64(0)
	over := steps[:max(0, len(steps)-1)]
	for _, s := range over[max(0, len(over)-int(rateSpan/step)):] {
		n += s
	}
	return float64(n) / rateSpan.Seconds()
}

// trendsOf returns the trend of each queue over a span, step by step; kept is false if no
// server keeps trends.
func trendsOf(ctx context.Context, c *tarry.Client, span, step time.Duration) (all map[string]*wire.QueueTrend, kept bool, err error) {
	e, ok := c.Engine().(*httpengine.Engine)
	if !ok {
		return nil, false, nil
	}
	all = make(map[string]*wire.QueueTrend)
	for after := ""; ; {
		page, err := fetchJSON[wire.Trends](ctx, e, "/v1/trends", wire.TrendsQuery(span, step, after, engine.MaxPage))
		if errors.Is(err, tarry.ErrUnsupported) || errors.Is(err, tarry.ErrNotFound) {
			return nil, false, nil // trends are off, or the server is older
		}
		if err != nil {
			return nil, false, err
		}
		for i := range page.Queues {
			all[page.Queues[i].Queue] = &page.Queues[i]
		}
		if after = page.Next; after == "" {
			return all, true, nil
		}
	}
}

// latenessKnown reports whether any messages were handed out, so that lateness is known.
func latenessKnown(t *wire.Times) bool {
	return t.Count > 0 && t.P50 != nil && t.P99 != nil && t.Max != nil
}

type problem = server.Problem

// about returns the message of a problem, after the queue if there is one.
func about(p *problem) string {
	if p.Queue == "" {
		return p.Message
	}
	return p.Queue + ": " + p.Message
}

// finder finds problems, for tarry status and tarry top.
type finder struct {
	late time.Duration // messages ready for at least this long are late
	now  time.Time

	Problems []problem `json:"problems"`
	unshown  bool      // there are more problems
}

// readiness asks whether the store is ready. A store that is not ready is a problem but no
// error, unless ctx has ended.
func (f *finder) readiness(ctx context.Context, c *tarry.Client) (ready bool, err error) {
	err = c.Ready(ctx)
	if err == nil || ctx.Err() != nil {
		return err == nil, err
	}
	told := wire.Shown(err)
	f.Problems = append(f.Problems, problem{Problem: "not_ready", Message: told.Message, Hint: cmp.Or(told.Hint, "see to what is behind the engine, and to the server's log")})
	return false, nil
}

// find asks the server for problems, or finds those of a directly opened store.
func (f *finder) find(ctx context.Context, c *tarry.Client, rows []*queueRow) error {
	e, ok := c.Engine().(*httpengine.Engine)
	if !ok {
		scan := server.Scan{Late: f.late, Now: f.now}
		found, err := scan.Problems(ctx, c, func(yield func(tarry.QueueInfo, error) bool) {
			for _, r := range rows {
				if !yield(r.QueueInfo, nil) {
					return
				}
			}
		})
		f.Problems = append(f.Problems, found...)
		return err
	}
	told, err := fetchJSON[wire.Problems](ctx, e, "/v1/problems", wire.ProblemsQuery(f.late))
	if err != nil {
		return err
	}
	f.Problems, f.unshown = append(f.Problems, told.Problems...), told.More
	return nil
}

// count sets how many problems each queue has.
func (f *finder) count(rows []*queueRow) {
	of := make(map[string]int)
	for _, p := range f.Problems {
		of[p.Queue]++
	}
	for _, r := range rows {
		r.bad = of[r.Queue]
	}
}

// printProblems writes problems for people.
func printProblems(o *printer, f *finder) {
	if len(f.Problems) == 0 {
		o.say("no problems")
	}
	for _, x := range f.Problems {
		o.say("! %s\n  %s", oneCell(about(&x)), x.Hint)
	}
	if f.unshown {
		o.say("! there may be more problems than these")
	}
}
