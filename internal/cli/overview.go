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
	late            wire.Times     // how late messages were; of none: it is not known
	pushed, handled float64        // a second, in the last minute

	bad  int     // number of its problems
	rank float64 // in the column that the table is sorted by
}

// overview is the queues and the problems at one moment, for tarry status and tarry top.
type overview struct {
	now      time.Time
	late     time.Duration // messages ready for at least this long are late
	problems []problem
	unshown  bool // there are more problems

	trends bool // a server keeps trends
	more   bool // there are more queues than these
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
		if t := trends[name]; !o.more && t.Lateness.Count > 0 {
			o.add(tarry.QueueInfo{Queue: name}, t, step)
		}
	}
	return o.find(ctx, c)
}

// add adds a queue.
func (o *overview) add(q tarry.QueueInfo, t *wire.QueueTrend, step time.Duration) {
	r := &queueRow{QueueInfo: q}
	if o.trends {
		r.trend = new(wire.Happened)
	}
	if t != nil {
		r.trend = &t.Happened
		r.late, r.pushed, r.handled = t.Lateness, perSecond(t.Spark.Pushed, step), perSecond(t.Spark.Acked, step)
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
	asked := wire.TrendsAsked{TrendAsked: wire.TrendAsked{Span: span, Step: step}, PageAsked: wire.PageAsked{Limit: engine.MaxPage}}
	for {
		page, err := fetchJSON[wire.Trends](ctx, e, "/v1/trends", wire.TrendsQuery.FormatQuery(&asked))
		if errors.Is(err, tarry.ErrUnsupported) || errors.Is(err, tarry.ErrNotFound) {
			return nil, false, nil // trends are off, or the server is older
		}
		if err != nil {
			return nil, false, err
		}
		for i := range page.Queues {
			all[page.Queues[i].Queue] = &page.Queues[i]
		}
		if asked.After = page.Next; asked.After == "" {
			return all, true, nil
		}
	}
}

type problem = server.Problem

// about returns the message of a problem, after the queue if there is one.
func about(p *problem) string {
	if p.Queue == "" {
		return p.Message
	}
	return p.Queue + ": " + p.Message
}

// readiness asks whether the store is ready. A store that is not ready is a problem but no
// error, unless ctx has ended.
func (o *overview) readiness(ctx context.Context, c *tarry.Client) (ready bool, err error) {
	err = c.Ready(ctx)
	if err == nil || ctx.Err() != nil {
		return err == nil, err
	}
	told := wire.Shown(err)
	o.problems = append(o.problems, problem{Problem: "not_ready", Message: told.Message, Hint: cmp.Or(told.Hint, "see to what is behind the engine, and to the server's log")})
	return false, nil
}

// find asks the server for problems, or finds those of a directly opened store. With an error
// it keeps those found all the same.
func (o *overview) find(ctx context.Context, c *tarry.Client) (err error) {
	var told wire.Problems
	if e, ok := c.Engine().(*httpengine.Engine); ok {
		told, err = fetchJSON[wire.Problems](ctx, e, "/v1/problems", wire.ProblemsQuery.FormatQuery(&o.late))
	} else {
		scan := server.Scan{Late: o.late, Now: o.now}
		told.Problems, err = scan.Problems(ctx, c, func(yield func(tarry.QueueInfo, error) bool) {
			for _, r := range o.rows {
				if !yield(r.QueueInfo, nil) {
					return
				}
			}
		})
	}
	o.problems, o.unshown = append(o.problems, told.Problems...), told.More
	of := make(map[string]int)
	for _, p := range o.problems {
		of[p.Queue]++
	}
	for _, r := range o.rows {
		r.bad = of[r.Queue]
	}
	return err
}

// printProblems writes problems for people.
func printProblems(o *printer, v *overview) {
	if len(v.problems) == 0 {
		o.say("no problems")
	}
	for _, x := range v.problems {
		o.say("! %s\n  %s", oneCell(about(&x)), x.Hint)
	}
	if v.unshown {
		o.say("! there may be more problems than these")
	}
}
