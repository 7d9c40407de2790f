package wire

import (
	"reflect"
	"strconv"
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

// Settings are the settings of a queue, and their revision.
type Settings struct {
	engine.Settings
	Revision string // "": none, in a request
}

var (
	// Configuring is a request to store settings.
	Configuring = requestObject("Settings", "The settings of a queue, all of them: what is absent is unset.",
		required("settings", settingFields.kind("settings"), func(s *Settings) *engine.Settings { return &s.Settings }, ""),
		optional("revision", asRevision, func(s *Settings) *string { return &s.Revision }, "store them only if they have not changed since this was read; without it: overwrite"))
	// Configured is an answer with the settings.
	Configured = answerObject("StoredSettings", "The settings of a queue: what is absent is unset.",
		required("settings", answeredSettings.kind("settings"), func(s *Settings) *engine.Settings { return &s.Settings }, ""),
		required("revision", asText, func(s *Settings) *string { return &s.Revision }, "changes whenever they do"),
	).checked(func(r *Reader, got Fields, _ *Settings) {
		const settings = 0
		if !got.Has(settings) { // else a client that reads, changes and writes them would unset them all
			r.Wrong("settings: is missing")
		}
	})
	answeredSettings = answerObject("StoredValues", "What a queue is set to.", settingFields.members...)
	settingFields    = requestObject("SettingValues", "What a queue can be set to. Limits act at once, on all who use it.",
		optional("priority", asPriority, func(s *engine.Settings) **uint32 { return &s.Defaults.Priority }, "the default for pushes without one, like the next six; unset: 1024"),
		optional("max_attempts", asMaxAttempts, func(s *engine.Settings) *uint32 { return &s.Defaults.MaxAttempts }, "unset: 20"),
		optional("ttr", asTTR, func(s *engine.Settings) *time.Duration { return &s.Defaults.TTR }, "1ms to 24h; unset: 60s"),
		optional("backoff", asBackoff, func(s *engine.Settings) *[]time.Duration { return &s.Defaults.Backoff }, ""),
		optional("expire_after", asSpanOrNever, func(s *engine.Settings) *time.Duration { return &s.Defaults.ExpireAfter }, "0s, unset: never"),
		optional("remember", asRemember, func(s *engine.Settings) *time.Duration { return &s.Defaults.Remember }, "0s, unset: not at all"),
		optional("isolate", asIsolate, func(s *engine.Settings) **bool { return &s.Defaults.Isolate }, "unset: true"),
		optional("dead_keep", asDuration.checked(func(r *Reader, name string, d time.Duration) {
			r.mustNotBeZero(name, d != 0, "to keep dead messages for ever")
		}), func(s *engine.Settings) *time.Duration { return &s.DeadKeep }, "how long a dead message is kept, more than 0s; unset: for ever"),
		optional("dead_max", limits(engine.MaxCount), func(s *engine.Settings) *int64 { return &s.DeadMax }, "how many dead messages are kept: beyond that, those that died first are dropped; unset: any number"),
		optional("history", asSpanOrNever, func(s *engine.Settings) *time.Duration { return &s.History }, "how long finished messages are listed; 0s: not at all; unset: as the store says"),
		optional("history_max", limitsOr(engine.MaxCount, "for the store's"), func(s *engine.Settings) *int64 { return &s.HistoryMax }, "how many finished messages are listed: beyond that, those that ended first are dropped; unset: as the store says"),
		optional("max_pending", limits(engine.MaxCount), func(s *engine.Settings) *int64 { return &s.MaxPending }, "how many live messages there may be; unset: any number"),
		optional("in_flight", limits(engine.MaxCount), func(s *engine.Settings) *int64 { return &s.InFlight }, "how many messages may be leased at a time, over all workers; unset: any number"),
		optional("burst", limits(engine.MaxBurst), func(s *engine.Settings) *int64 { return &s.Burst }, "how many leases may come at once after a quiet time; only with a rate; unset: what rate gives in 0.1 s, at least 1"),
		optional("rate", asRate, func(s *engine.Settings) *float64 { return &s.Rate }, "leases a second, at least one a day; unset: any number"))
)

// asRevision is the revision that a request expects.
var asRevision = asText.described(textSchema(1, 0)).checked(func(r *Reader, _, revision string) {
	if revision == "" {
		r.Wrong("revision: is empty; leave it out to overwrite whatever is stored")
	}
})

// limits returns the kind of settings that are limits of at most most.
func limits(most uint64) kind[int64] { return limitsOr(most, "for no limit") }

// limitsOr is limits where unset says what leaving one out means.
func limitsOr(most uint64, unset string) kind[int64] {
	return whole[int64](0, most).described(wholeSchema(1, int64(most))).checked(func(r *Reader, name string, n int64) {
		r.mustNotBeZero(name, n != 0, unset)
	})
}

var asRate = scalar(TypeSchema("number").With("minimum", engine.MinRate).With("maximum", engine.MaxRate), (*Reader).rate, appendRate)

func appendRate(b []byte, rate float64) []byte { return strconv.AppendFloat(b, rate, 'f', -1, 64) }

// mustNotBeZero fails unless a setting is ok: a setting of 0 would set nothing. unset says
// what leaving it out means.
func (r *Reader) mustNotBeZero(name string, ok bool, unset string) {
	if ok || r.err != nil {
		return
	}
	hint := ""
	if name == "in_flight" || name == "rate" {
		hint = "to hand out nothing pause the queue instead"
	}
	r.wrongHint(hint, "%s: must be more than 0; leave it out %s", name, unset)
}

// rate reads leases a second.
func (r *Reader) rate(name string) float64 {
	text, ok := r.number(name)
	if !ok {
		return 0
	}
	f, _ := strconv.ParseFloat(string(text), 64) // a number that is too large becomes infinite
	if r.mustNotBeZero(name, f != 0, "for no limit"); f < 0 || f > engine.MaxRate || f != 0 && f < engine.MinRate {
		r.Wrong("%s: must be from one a day, which is %.4g, to %d a second, not %s", name, 1/(24*time.Hour).Seconds(), engine.MaxRate, engine.Clip(string(text)))
	}
	return f
}

// None is a request that has no fields.
var None = requestObject[struct{}]("None", "Nothing: there is no field.").orNothing()

// Pausing is a request to pause; 0: for good.
var Pausing = requestObject("Pause", "How long to pause.",
	optional("for", asDuration.checked(func(r *Reader, _ string, d time.Duration) {
		if d == 0 {
			r.Wrong("for: must be longer than nothing; leave it out to pause for good")
		}
	}), itself, "more than nothing; without it: for good")).orNothing()

// Purging is a request to purge.
var Purging = requestObject("Purge", "What to remove beside what is scheduled and ready.",
	optional("dead", part(engine.PurgeDead), itself, "the dead messages too"),
	optional("finished", part(engine.PurgeFinished), itself, "the memory of finished messages too")).orNothing()

// part returns the kind of flags that add something to what is purged.
func part(p engine.PurgeAlso) kind[engine.PurgeAlso] {
	return kind[engine.PurgeAlso]{
		is: isFlag,
		read: func(r *Reader, name string, also *engine.PurgeAlso) {
			if r.flag(name) {
				*also |= p
			}
		},
		append: func(b []byte, also *engine.PurgeAlso) []byte { return strconv.AppendBool(b, *also&p != 0) },
		zero:   func(also *engine.PurgeAlso) bool { return *also&p == 0 },
	}
}

// CountHeader says how many messages a request that failed midway has changed.
const CountHeader = "Tarry-Count"

// Counted is an answer that is a count.
var Counted = Redriven.only("Counted", "How many of what was concerned.", []string{"count"}, nil)
