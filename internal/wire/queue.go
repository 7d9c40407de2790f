package wire

import (
	"reflect"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// QueueHolds is what a queue holds.
var QueueHolds = answerObject("Queue", "What a queue holds. An unknown queue is an empty one.",
	required("queue", asText, func(q *engine.QueueInfo) *string { return &q.Queue }, ""),
	required("scheduled", count[int64](), func(q *engine.QueueInfo) *int64 { return &q.Scheduled }, ""),
	required("ready", count[int64](), func(q *engine.QueueInfo) *int64 { return &q.Ready }, ""),
	required("leased", count[int64](), func(q *engine.QueueInfo) *int64 { return &q.Leased }, ""),
	required("dead", count[int64](), func(q *engine.QueueInfo) *int64 { return &q.Dead }, ""),
	required("finished", count[int64](), func(q *engine.QueueInfo) *int64 { return &q.Finished }, "remembered keys; one whose time is over may count until something has met it"),
	required("history", count[int64](), func(q *engine.QueueInfo) *int64 { return &q.History }, "finished messages listed, counted likewise"),
	required("next_due", asInstant, func(q *engine.QueueInfo) *time.Time { return &q.NextDue }, "of the scheduled ones; null: none, or not known"),
	required("oldest_ready", asInstant, func(q *engine.QueueInfo) *time.Time { return &q.OldestReady }, "due of the one that is ready for longest; null: none, or not known"),
	required("paused", asFlag, func(q *engine.QueueInfo) *bool { return &q.Paused }, ""),
	optional("paused_until", asInstant, func(q *engine.QueueInfo) *time.Time { return &q.PausedUntil }, "when the pause ends, if it does"))

// Queues is a page of queues.
type Queues struct {
	Queues []engine.QueueInfo
	Next   string
}

// QueuePage is a page of queues.
var QueuePage = answerObject("QueuePage", "A page of queues: those that hold something, are paused or have settings.",
	required("queues", list(QueueHolds.kind("queue"), 0), func(p *Queues) *[]engine.QueueInfo { return &p.Queues }, ""),
	required("next", asText, func(p *Queues) *string { return &p.Next }, "give it as after for the next page; empty: this is the last"))

// Forecast is a forecast and its step.
type Forecast struct {
	Step time.Duration
	engine.Forecast
}

// ForecastAnswer is a forecast, and Bucket is one of its buckets.
var (
	ForecastAnswer = answerObject("Forecast", "How many messages fall due, step by step.",
		required("step", asDuration, func(f *Forecast) *time.Duration { return &f.Step }, ""),
		required("overdue", count[int64](), func(f *Forecast) *int64 { return &f.Overdue }, "due before the first step, the minute of now"),
		required("buckets", list(Bucket.kind("bucket"), engine.MaxSteps), func(f *Forecast) *[]engine.Bucket { return &f.Buckets }, ""))
	Bucket = answerObject("Bucket", "How many messages fall due within a step.",
		required("from", asInstant, func(k *engine.Bucket) *time.Time { return &k.From }, "when the step begins"),
		required("count", count[int64](), func(k *engine.Bucket) *int64 { return &k.Count }, ""))
)

// MaxAhead is how many queues Forecasts tells of.
const MaxAhead = 500

// QueueAhead is how many messages of a queue fall due in each step.
type QueueAhead struct {
	Queue  string  `json:"queue"`
	Counts []int64 `json:"counts" doc:"one for each step"`
}

// Forecasts is how many messages of all queues fall due in the next hour.
type Forecasts struct {
	From   Time         `json:"from" doc:"when the first step begins, the minute of now; null: no queue has scheduled messages"`
	Step   Duration     `json:"step"`
	Counts []int64      `json:"counts" doc:"of the queues below together, one for each step"`
	Queues []QueueAhead `json:"queues" doc:"those in which messages fall due, by name"`
	More   bool         `json:"more" doc:"messages of further queues fall due, later than the first of each of these"`
}

// ForecastsAnswer is the shape of Forecasts.
var ForecastsAnswer = newShape("Forecasts", "How many messages of all queues fall due in the next hour.", false, tagged(reflect.TypeFor[Forecasts]()))
