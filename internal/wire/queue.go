package wire

import (
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// AppendQueue appends what a queue holds.
func AppendQueue(b []byte, q *engine.QueueInfo) []byte {
	b = appendText(b, `{"queue":`, q.Queue)
	b = appendInt(b, `,"scheduled":`, q.Scheduled)
	b = appendInt(b, `,"ready":`, q.Ready)
	b = appendInt(b, `,"leased":`, q.Leased)
	b = appendInt(b, `,"dead":`, q.Dead)
	b = appendInt(b, `,"finished":`, q.Finished)
	b = appendTime(b, `,"next_due":`, q.NextDue)
	b = appendTime(b, `,"oldest_ready":`, q.OldestReady)
	b = appendBool(b, `,"paused":`, q.Paused)
	if !q.PausedUntil.IsZero() {
		b = appendTime(b, `,"paused_until":`, q.PausedUntil)
	}
	return append(b, '}')
}

// QueueHolds is the shape of what a queue holds.
var QueueHolds = answered("Queue", "What a queue holds. An unknown queue is an empty one.",
	must("queue", isText, ""),
	must("scheduled", isCount, ""),
	must("ready", isCount, ""),
	must("leased", isCount, ""),
	must("dead", isCount, ""),
	must("finished", isCount, "remembered keys; one whose time is over may count until something has met it"),
	must("next_due", isInstant, "of the scheduled ones; null: none, or not known"),
	must("oldest_ready", isInstant, "due of the one that is ready for longest; null: none, or not known"),
	must("paused", isFlag, ""),
	may("paused_until", isInstant, "when the pause ends, if it does"))

// Queue reads what a queue holds.
func (r *Reader) Queue() (q engine.QueueInfo) {
	r.fields("queue", QueueHolds, func(f int) {
		switch name := QueueHolds.names[f]; name {
		case "queue":
			q.Queue = r.text(name)
		case "scheduled":
			q.Scheduled = r.count(name)
		case "ready":
			q.Ready = r.count(name)
		case "leased":
			q.Leased = r.count(name)
		case "dead":
			q.Dead = r.count(name)
		case "finished":
			q.Finished = r.count(name)
		case "next_due":
			q.NextDue = r.time(name)
		case "oldest_ready":
			q.OldestReady = r.time(name)
		case "paused":
			q.Paused = r.flag(name)
		case "paused_until":
			q.PausedUntil = r.time(name)
		}
	})
	return q
}

// AppendQueues appends a page of queues.
func AppendQueues(b []byte, all []engine.QueueInfo, next string) []byte {
	b = appendAll(append(b, `{"queues":`...), all, AppendQueue)
	return append(appendText(b, `,"next":`, next), '}')
}

// QueuePage is the shape of a page of queues.
var QueuePage = answered("QueuePage", "A page of queues: those that hold something, are paused or have settings.",
	must("queues", schema.Array(QueueHolds.Ref(), 0), ""),
	must("next", isText, "give it as after for the next page; empty: this is the last"))

// Queues reads a page of queues.
func (r *Reader) Queues() (all []engine.QueueInfo, next string) {
	r.fields("answer", QueuePage, func(f int) {
		if f == 0 {
			r.all("queues", 0, func(int) { all = append(all, r.Queue()) })
		} else {
			next = r.text("next")
		}
	})
	return all, next
}

// AppendForecast appends a forecast.
func AppendForecast(b []byte, step time.Duration, f *engine.Forecast) []byte {
	b = appendInt(appendDuration(b, `{"step":`, step), `,"overdue":`, f.Overdue)
	return append(appendAll(append(b, `,"buckets":`...), f.Buckets, AppendBucket), '}')
}

// AppendBucket appends a bucket of a forecast.
func AppendBucket(b []byte, k *engine.Bucket) []byte {
	b = appendTime(b, `{"from":`, k.From)
	return append(appendInt(b, `,"count":`, k.Count), '}')
}

var (
	// ForecastAnswer is the shape of a forecast.
	ForecastAnswer = answered("Forecast", "How many messages fall due, step by step.",
		must("step", isDuration, ""),
		must("overdue", isCount, "due before the first step, the minute of now"),
		must("buckets", schema.Array(bucketFields.Ref(), engine.MaxSteps), ""))
	bucketFields = answered("Bucket", "How many messages fall due within a step.",
		must("from", isInstant, "when the step begins"),
		must("count", isCount, ""))
)

// Forecast reads a forecast.
func (r *Reader) Forecast() (step time.Duration, f engine.Forecast) {
	r.fields("answer", ForecastAnswer, func(field int) {
		switch field {
		case 0:
			step = r.duration("step")
		case 1:
			f.Overdue = r.count("overdue")
		default:
			r.all("buckets", 0, func(int) { f.Buckets = append(f.Buckets, r.bucket()) })
		}
	})
	return step, f
}

func (r *Reader) bucket() (k engine.Bucket) {
	r.fields("bucket", bucketFields, func(f int) {
		if f == 0 {
			k.From = r.time("from")
		} else {
			k.Count = r.count("count")
		}
	})
	return k
}
