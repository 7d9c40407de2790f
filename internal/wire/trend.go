package wire

import (
	"cmp"
	"reflect"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// times says how long something took, in milliseconds. They are numbers, for charts.
type times[N, Ms any] struct {
	Count N  `json:"count"`
	P50   Ms `json:"p50_ms" doc:"half of all took no longer; exact to a factor of √2; null: there are none"`
	P99   Ms `json:"p99_ms" doc:"99 of 100 took no longer"`
	Max   Ms `json:"max_ms" doc:"the longest"`
}

type happened[N, Times any] struct {
	Pushed    N     `json:"pushed" doc:"also what was there already, and was kept"`
	Leased    N     `json:"leased" doc:"claimed ones too"`
	Acked     N     `json:"acked"`
	Retried   N     `json:"retried"`
	Released  N     `json:"released" doc:"snoozed ones too"`
	Lost      N     `json:"lost" doc:"leases that had been lost when they were to be settled"`
	Died      N     `json:"died"`
	Expired   N     `json:"expired"`
	Cancelled N     `json:"cancelled"`
	Lateness  Times `json:"lateness" doc:"from due to the start of handling, or to the lease over HTTP"`
	Handling  Times `json:"handling" doc:"how long handlers ran, of the server's own workers alone"`
}

type (
	// Times says how long something took.
	Times = times[uint64, *float64]
	// Happened is what happened in a queue during some time.
	Happened = happened[uint64, Times]
	// TimesSteps is Times step by step.
	TimesSteps = times[[]uint64, []*float64]
	// HappenedSteps is Happened step by step.
	HappenedSteps = happened[[]uint64, TimesSteps]
)

// Heat is a histogram of how late messages were in each step.
type Heat struct {
	Bounds []float64   `json:"bounds_ms" doc:"where the buckets end, in milliseconds: the first holds what is shorter than the first bound, the last, which is one more than the bounds, what is longer than the last"`
	Cells  [][3]uint64 `json:"cells" doc:"step, bucket and count of each that is not empty, in the order of the steps"`
}

// Trend is what happened in a queue during a span, step by step.
type Trend struct {
	Queue string        `json:"queue"`
	From  Time          `json:"from" doc:"when the first step begins; the last has not ended"`
	Span  Duration      `json:"span"`
	Step  Duration      `json:"step"`
	Total Happened      `json:"total"`
	Steps HappenedSteps `json:"steps" doc:"one of each for each step"`
	Heat  Heat          `json:"heat" doc:"how late messages were"`
}

// Spark is the few numbers of each step for a sparkline.
type Spark struct {
	Pushed []uint64   `json:"pushed"`
	Acked  []uint64   `json:"acked"`
	P99    []*float64 `json:"p99_ms" doc:"of the lateness"`
}

// QueueTrend is what happened in one of many queues.
type QueueTrend struct {
	Queue string `json:"queue"`
	Happened
	Spark Spark `json:"spark" doc:"one of each for each step"`
}

// Trends is a page of what happened in all queues.
type Trends struct {
	From   Time         `json:"from" doc:"when the first step begins; the last has not ended"`
	Span   Duration     `json:"span"`
	Step   Duration     `json:"step"`
	Queues []QueueTrend `json:"queues" doc:"those to which something happened"`
	Next   string       `json:"next" doc:"give it as after for the next page; empty: this is the last"`
}

// The shapes of Trend and Trends, made from their tags.
var (
	TrendAnswer  = newShape("Trend", "What happened to a queue, step by step, as far as it went through this server and since it started.", false, tagged(reflect.TypeFor[Trend]()))
	TrendsAnswer = newShape("Trends", "A page of what happened to the queues.", false, tagged(reflect.TypeFor[Trends]()))
)

// The default span of trends, and the numbers of steps and queues in Trends.
const (
	DefaultTrendSpan = 15 * time.Minute
	DefaultSparks    = 30 // steps, or fewer
	MaxSparks        = 100
	MaxTrends        = 100 // queues that are named
)

// TrendAsked asks for a trend.
type TrendAsked struct {
	Span, Step time.Duration // a Step of 0: none is given
}

// TrendsAsked asks for the trends of many queues.
type TrendsAsked struct {
	TrendAsked
	Queues []string // nil: all
	PageAsked
}

// TrendQuery asks for a trend, TrendsQuery for the trends of many queues.
var (
	TrendQuery = requestObject("", "",
		optional("span", asTrendSpan, func(t *TrendAsked) *time.Duration { return &t.Span }, "how far back to look, 72h at most"),
		optional("step", asPositive, func(t *TrendAsked) *time.Duration { return &t.Step }, "a multiple of 10s for a span of up to 15m, of 1m up to 6h, else of 10m, of which the span is a multiple; 1000 steps at most; without it the finest"),
	).checked(func(_ *Reader, _ Fields, t *TrendAsked) { t.Span = cmp.Or(t.Span, DefaultTrendSpan) })
	TrendsQuery = requestObject("", "",
		optional("span", asTrendSpan, func(t *TrendsAsked) *time.Duration { return &t.Span }, "how far back to look, 72h at most"),
		optional("step", asPositive, func(t *TrendsAsked) *time.Duration { return &t.Step }, "as of one queue, but at most "+strconv.Itoa(MaxSparks)+" steps; without it such that there are "+strconv.Itoa(DefaultSparks)+", or fewer"),
		optional("queues", queueNames(MaxTrends), func(t *TrendsAsked) *[]string { return &t.Queues }, "names of queues, with commas between, "+strconv.Itoa(MaxTrends)+" at most: only of these"),
		optional("after", asText, func(t *TrendsAsked) *string { return &t.After }, "the next of the page before"),
		optional("limit", asLimit, func(t *TrendsAsked) *int { return &t.Limit }, "queues at most"),
	).checked(func(r *Reader, _ Fields, t *TrendsAsked) {
		t.Span = cmp.Or(t.Span, DefaultTrendSpan)
		if t.Queues != nil && (t.After != "" || t.Limit != 0) {
			r.Wrong("queues: go without after and limit")
		}
	})
	asTrendSpan = asPositive.described(isDuration.With("default", duration.Format(DefaultTrendSpan)))
)

// The bounds of a viewer's query.
const (
	MaxWatched  = 32  // queues that the query names
	MaxLiveRows = 500 // queues of an event
)

// Overview says what a viewer wants to see of the queues that its query does not name.
type Overview uint8

// The kinds of overviews.
const (
	OverviewNone    Overview = iota + 1
	OverviewChanges          // the queues that change from now on
	OverviewAll              // first all queues, then those that change
)

// String returns the overview's name in queries.
func (o Overview) String() string { return [...]string{"", "none", "changes", "all"}[o] }

// LiveAsked is what a viewer wants to see.
type LiveAsked struct {
	Queues   []string
	Overview Overview
}

// LiveQuery says what a viewer wants to see.
var LiveQuery = requestObject("", "",
	optional("queues", queueNames(MaxWatched), func(l *LiveAsked) *[]string { return &l.Queues }, "names of queues to be told of within 250 ms, with commas between, 32 at most"),
	optional("overview", named(OverviewNone, OverviewAll), func(l *LiveAsked) *Overview { return &l.Overview }, "of all other queues: nothing, those that change, or first all as they are; without it nothing where queues are named, else changes"),
).checked(func(r *Reader, _ Fields, l *LiveAsked) {
	switch {
	case l.Overview == OverviewNone && l.Queues == nil:
		r.Wrong("overview: is none, and no queues are named: there is nothing to tell")
	case l.Overview == 0 && l.Queues == nil:
		l.Overview = OverviewChanges
	case l.Overview == 0:
		l.Overview = OverviewNone
	}
})

// LiveQueue is what a queue holds, and what happened in it lately.
type LiveQueue struct {
	Queue       string    `json:"queue"`
	Scheduled   int64     `json:"scheduled"`
	Ready       int64     `json:"ready"`
	Leased      int64     `json:"leased"`
	Dead        int64     `json:"dead"`
	Finished    int64     `json:"finished"`
	History     int64     `json:"history"`
	NextDue     Time      `json:"next_due"`
	OldestReady Time      `json:"oldest_ready"`
	Paused      bool      `json:"paused"`
	PausedUntil *Time     `json:"paused_until,omitempty"`
	Gone        bool      `json:"gone,omitempty"` // it holds nothing any more, is not paused and has no settings
	Changes     uint64    `json:"changes"`        // a number that changes when its messages may have changed
	PushedPerS  float64   `json:"pushed_per_s"`   // of the last minute
	AckedPerS   float64   `json:"acked_per_s"`
	Trend       *Happened `json:"trend"` // of the last 5 minutes; nil: not recorded
}

// SetInfo sets what the queue holds.
func (q *LiveQueue) SetInfo(i *engine.QueueInfo) {
	q.Queue, q.Scheduled, q.Ready, q.Leased, q.Dead, q.Finished, q.History = i.Queue, i.Scheduled, i.Ready, i.Leased, i.Dead, i.Finished, i.History
	q.NextDue, q.OldestReady, q.Paused, q.PausedUntil = Time{Time: i.NextDue}, Time{Time: i.OldestReady}, i.Paused, nil
	if !i.PausedUntil.IsZero() {
		q.PausedUntil = &Time{Time: i.PausedUntil}
	}
}

// LiveTotals are what all queues hold together.
type LiveTotals struct {
	Queues    int   `json:"queues"`
	Scheduled int64 `json:"scheduled"`
	Ready     int64 `json:"ready"`
	Leased    int64 `json:"leased"`
	Dead      int64 `json:"dead"`
}
