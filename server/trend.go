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
	"github.com/tarryhq/tarry/server/access"
	"github.com/tarryhq/tarry/trend"
)

// errNoTrends answers where trends are not kept.
var errNoTrends error = refusal(http.StatusNotImplemented, "unsupported", "this server does not keep what happened",
	"start it without --trends=false; a program that mounts the server sets server.Config.Trends")

var callTrend = &call{
	id: "getTrend", group: groupQueue, does: "Tell what happened to a queue, and how late",
	more:  "It knows what went through this server since it started. What all queues beyond the first 10,000 sum up to is the queue " + trend.Other + ".",
	query: wire.TrendQuery.Shape, answers: ok("What happened, step by step.", wire.TrendAnswer.Ref()), fails: []error{engine.ErrUnsupported},
}

// trend answers with the trend of a queue.
func (s *Server) trend(x *exchange, r *http.Request) error {
	asked, err := wire.TrendQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	queue := x.path.Queue()
	switch {
	case s.cfg.Trends == nil:
		return errNoTrends
	case !x.maySeeTrend(queue):
		return x.forbidden(access.Read, "all queues")
	}
	if err := engine.CheckQueue("trend", queue); err != nil {
		return err
	}
	series, err := s.cfg.Trends.Series(queue, asked.Span, cmp.Or(asked.Step, trend.Step(asked.Span)))
	if err != nil {
		return wire.Wrong("%v", err)
	}
	t := trended(&series)
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, t) })
}

// maySeeTrend reports whether the token may see the trend of a queue. trend.Other, the sum
// over many queues, needs the right on all queues.
func (x *exchange) maySeeTrend(queue string) bool {
	switch {
	case x.token == nil:
		return true
	case queue == trend.Other:
		return x.token.MayAll(access.Read)
	}
	return x.token.May(access.Read, queue)
}

var callTrends = &call{
	id: "listTrends", group: groupQueue, does: "Tell what happened to the queues, and how late",
	more:  "It knows what went through this server since it started.",
	query: wire.TrendsQuery.Shape, answers: ok("A page of what happened.", wire.TrendsAnswer.Ref()), fails: []error{engine.ErrUnsupported},
}

// trends answers with the trends of the named queues, or with a page of all. Queues to which
// nothing happened are left out.
func (s *Server) trends(x *exchange, r *http.Request) error {
	asked, err := wire.TrendsQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if s.cfg.Trends == nil {
		return errNoTrends
	}
	for _, q := range asked.Queues {
		if !x.maySeeTrend(q) {
			return x.forbidden(access.Read, q)
		}
	}
	span, step := asked.Span, cmp.Or(asked.Step, sparkStep(asked.Span))
	switch err := trend.Check(span, step); {
	case err != nil:
		return wire.Wrong("%v", err)
	case span/step > wire.MaxSparks:
		return wire.Wrong("step: %s makes more than %d steps", tarry.FormatDuration(step), wire.MaxSparks)
	}
	return s.pages.answer(x, r, func(b []byte) ([]byte, error) { return s.appendTrends(x, r.Context(), b, &asked, step) })
}

// appendTrends appends a page of trends of the queues that the token may see.
func (s *Server) appendTrends(x *exchange, ctx context.Context, b []byte, asked *wire.TrendsAsked, step time.Duration) ([]byte, error) {
	span := asked.Span
	page := wire.Trends{Span: wire.Duration(span), Step: wire.Duration(step), Queues: []wire.QueueTrend{}}
	n, after := cmp.Or(asked.Limit, defaultTrends), asked.After
	names := asked.Queues
	if slices.Sort(names); names == nil {
		names = s.cfg.Trends.Queues(after, engine.MaxPage)
	}
	var slots []trend.Slot
	for len(names) > 0 && page.Next == "" {
		for _, after = range slices.Compact(names) {
			if !x.maySeeTrend(after) {
				continue
			}
			series, err := s.cfg.Trends.Series(after, span, step, slots...)
			if err != nil {
				return nil, err
			}
			slots = series.Slots
			all := series.Total()
			if all == (trend.Slot{}) {
				continue
			}
			if len(page.Queues) == n { // there is another
				page.Next = page.Queues[n-1].Queue
				break
			}
			page.Queues = append(page.Queues, sparks(&series, &all))
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if names = nil; asked.Queues == nil {
			names = s.cfg.Trends.Queues(after, engine.MaxPage)
		}
	}
	page.From = wire.Time{Time: s.cfg.Trends.From(span, step)}
	return wire.AppendJSON(b, &page), nil
}

// defaultTrends is the length of a page of trends unless asked otherwise.
const defaultTrends = 100

// sparkStep returns the finest step that divides a span into at most wire.DefaultSparks steps.
func sparkStep(span time.Duration) time.Duration {
	finest := trend.Step(span)
	step := finest
	for span/step > wire.DefaultSparks || span%step != 0 {
		if step += finest; step > span {
			return finest // trend.Check then says what is wrong
		}
	}
	return step
}

// sparks returns the trend of one of many queues, with short series.
func sparks(s *trend.Series, all *trend.Slot) wire.QueueTrend {
	t := wire.QueueTrend{Queue: s.Queue, Happened: happened(all)}
	for i := range s.Slots {
		slot := &s.Slots[i]
		t.Spark.Pushed = append(t.Spark.Pushed, slot.Counts[trend.Pushed])
		t.Spark.Acked = append(t.Spark.Acked, slot.Counts[trend.Acked])
		t.Spark.P99 = append(t.Spark.P99, quantile(&slot.Lateness, 0.99))
	}
	return t
}

// trended returns a series as it is answered.
func trended(s *trend.Series) *wire.Trend {
	all := s.Total()
	t := &wire.Trend{
		Queue: s.Queue, From: wire.Time{Time: s.From}, Span: wire.Duration(s.Step * time.Duration(len(s.Slots))), Step: wire.Duration(s.Step), Total: happened(&all),
		Heat: wire.Heat{Cells: [][3]uint64{}},
	}
	for _, b := range trend.Bounds() {
		t.Heat.Bounds = append(t.Heat.Bounds, milliseconds(b))
	}
	for i := range s.Slots {
		h := happened(&s.Slots[i])
		p := &t.Steps
		for _, c := range []struct {
			to *[]uint64
			n  uint64
		}{
			{&p.Pushed, h.Pushed}, {&p.Leased, h.Leased}, {&p.Acked, h.Acked}, {&p.Retried, h.Retried}, {&p.Released, h.Released},
			{&p.Lost, h.Lost}, {&p.Died, h.Died}, {&p.Expired, h.Expired}, {&p.Cancelled, h.Cancelled},
		} {
			*c.to = append(*c.to, c.n)
		}
		addTimes(&p.Lateness, h.Lateness)
		addTimes(&p.Handling, h.Handling)
		for bucket, n := range s.Slots[i].Lateness.Counts {
			if n > 0 {
				t.Heat.Cells = append(t.Heat.Cells, [3]uint64{uint64(i), uint64(bucket), n})
			}
		}
	}
	return t
}

func addTimes(s *wire.TimesSteps, t wire.Times) {
	s.Count, s.P50, s.P99, s.Max = append(s.Count, t.Count), append(s.P50, t.P50), append(s.P99, t.P99), append(s.Max, t.Max)
}

func happened(s *trend.Slot) wire.Happened {
	return wire.Happened{
		Pushed: s.Counts[trend.Pushed], Leased: s.Counts[trend.Leased], Acked: s.Counts[trend.Acked], Retried: s.Counts[trend.Retried],
		Released: s.Counts[trend.Released], Lost: s.Counts[trend.Lost], Died: s.Counts[trend.Died], Expired: s.Counts[trend.Expired],
		Cancelled: s.Counts[trend.Cancelled], Lateness: times(&s.Lateness), Handling: times(&s.Handling),
	}
}

func times(h *trend.Histogram) wire.Times {
	return wire.Times{Count: h.Count(), P50: quantile(h, 0.5), P99: quantile(h, 0.99), Max: quantile(h, 1)}
}

func quantile(h *trend.Histogram, share float64) *float64 {
	d, ok := h.Quantile(share)
	if !ok {
		return nil
	}
	ms := milliseconds(d)
	return &ms
}

// milliseconds returns a duration in milliseconds, with three decimals.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
