package server

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/trend"
)

// The bounds of what is a problem. The rules in docs/operations/alerts.yml have the same.
const (
	LateAfter  = wire.DefaultLate // how long a message may be ready before it is late
	DiedWithin = 15 * time.Minute // how recent a death must be to be a problem
)

const (
	latelySpan = 15 * time.Minute // messages that were late within this span are a problem
	workedSpan = 2                // steps in which a lease shows that a queue has a worker
	latelyStep = time.Minute
	maxDied    = 100    // deaths of a queue that are counted
	maxFound   = 10_000 // problems that are kept, the worst
)

// Problem is something wrong, and what to do about it.
type Problem = wire.Problem

// kinds are the problems of queues, the worst first.
var kinds = []string{"no_worker", "late", "deaths", "schedule", "paused", "was_late"}

// Scan finds problems. It defines them for GET /v1/problems, GET /readyz, the dashboard
// and the command line.
type Scan struct {
	Late   time.Duration   // a message that has been ready for so long is late
	Now    time.Time       // by the clock of the store
	Trends *trend.Recorder // what happened lately; nil: not known

	began    time.Time       // when the server began to note workers; zero: it is no server's scan
	asked    map[string]bool // the queues for which workers asked lately
	allAsked bool            // no other queue was asked for
	runs     *lastRuns       // what earlier scans know of schedules; nil: nothing
}

// Problems returns the problems of a client's store and then those of queues, the worst
// first. With an error it returns those found all the same.
func (l *Scan) Problems(ctx context.Context, c *tarry.Client, queues iter.Seq2[tarry.QueueInfo, error]) ([]Problem, error) {
	found, err := l.ofQueues(ctx, c, queues)
	return append(ofStore(c), found...), err
}

// ofStore returns the problems that an engine has met so far.
func ofStore(c *tarry.Client) (all []Problem) {
	if e, ok := c.Engine().(engine.Troubler); ok {
		for _, t := range e.Troubles() {
			all = append(all, Problem{Problem: "store", Message: t.Message, Hint: t.Hint})
		}
	}
	return all
}

// ofQueues returns the problems of queues.
func (l *Scan) ofQueues(ctx context.Context, c *tarry.Client, queues iter.Seq2[tarry.QueueInfo, error]) ([]Problem, error) {
	f := finder{Scan: *l, stuck: make(map[string]bool)}
	caps := c.Capabilities()
	if !caps.Count {
		return nil, nil
	}
	var dead []string
	scheduled := false
	for q, err := range queues {
		if err != nil {
			return f.problems(), err
		}
		f.backlog(&q)
		if q.Dead > 0 {
			dead = append(dead, q.Queue)
		}
		scheduled = scheduled || q.Queue == tarry.ScheduleQueue
	}
	f.wereLate()
	var failed error
	if scheduled {
		failed = f.schedules(ctx, c)
	}
	if !caps.Range || !caps.List && !caps.ListDead {
		return f.problems(), failed
	}
	for _, queue := range dead { // last, since each takes a call
		err := f.deaths(ctx, c, queue)
		failed = cmp.Or(failed, err)
		if err != nil && ctx.Err() != nil {
			break
		}
	}
	return f.problems(), failed
}

// finder gathers the problems of queues.
type finder struct {
	Scan
	found []finding
	stuck map[string]bool // queues with a backlog
	slots []trend.Slot    // memory for series
}

// finding is a problem and how bad it is among those of its kind.
type finding struct {
	Problem
	size float64
}

func (f *finder) add(kind, queue, message, hint string, size float64) {
	f.found = append(f.found, finding{Problem{Problem: kind, Queue: queue, Message: message, Hint: hint}, size})
	if len(f.found) >= 2*maxFound {
		f.sort()
	}
}

// sort puts the worst first and drops what is beyond maxFound.
func (f *finder) sort() {
	slices.SortFunc(f.found, func(x, y finding) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, x.Problem.Problem), slices.Index(kinds, y.Problem.Problem)),
			cmp.Compare(y.size, x.size), cmp.Compare(x.Queue, y.Queue), cmp.Compare(x.Message, y.Message))
	})
	f.found = f.found[:min(len(f.found), maxFound)]
}

func (f *finder) problems() (all []Problem) {
	f.sort()
	for _, x := range f.found {
		all = append(all, x.Problem)
	}
	return all
}

// backlog finds messages that have been ready too long, and a likely cause. A pause is a
// problem only when messages wait for its end.
func (f *finder) backlog(q *tarry.QueueInfo) {
	waits := f.Now.Sub(q.OldestReady)
	if q.Ready == 0 || q.OldestReady.IsZero() || waits < f.Late {
		return
	}
	f.stuck[q.Queue] = true
	ready := many(q.Ready, "message is", "messages are") + " due, the oldest for " + rounded(waits)
	switch {
	case q.Paused:
		f.add("paused", q.Queue, ready+", and the queue is paused", "tarry resume "+q.Queue+" ends the pause", waits.Seconds())
	case q.Leased == 0 && !f.asked[q.Queue] && !f.worked(q.Queue):
		f.add("no_worker", q.Queue, ready+", and "+f.idle(),
			"start a worker, or see why those there lease nothing; tarry queue get "+q.Queue+" shows whether a rate or in_flight holds them back", waits.Seconds())
	default:
		f.add("late", q.Queue, ready+", with "+many(q.Leased, "lease", "leases")+" held",
			"add workers or raise their concurrency, unless tarry queue get "+q.Queue+" shows that a rate or in_flight holds them back; if handlers became slow, see to what they call", waits.Seconds())
	}
}

// idle says what is known of the workers of a queue without leases.
func (f *finder) idle() string {
	switch {
	case !f.allAsked:
		return "none is leased"
	case f.Now.Sub(f.began) < seenWithin:
		return "no worker has asked this server since it started"
	}
	return "no worker has asked this server for " + rounded(seenWithin)
}

// series returns the recent past of a queue; nil if it is not known.
func (f *finder) series(queue string) *trend.Series {
	if f.Trends == nil {
		return nil
	}
	s, err := f.Trends.Series(queue, latelySpan, latelyStep, f.slots...)
	if err != nil {
		return nil // never happens: span and step are valid
	}
	f.slots = s.Slots
	return &s
}

// worked reports whether messages of a queue were leased a short while ago.
func (f *finder) worked(queue string) bool {
	s := f.series(queue)
	return s != nil && slices.ContainsFunc(s.Slots[len(s.Slots)-workedSpan:], func(slot trend.Slot) bool { return slot.Counts[trend.Leased] > 0 })
}

// wereLate finds queues whose messages were leased late, though none is late now.
func (f *finder) wereLate() {
	if f.Trends == nil {
		return
	}
	for after := ""; ; {
		names := f.Trends.Queues(after, engine.MaxPage)
		for _, queue := range names {
			if !f.stuck[queue] {
				f.wasLate(queue)
			}
		}
		if len(names) < engine.MaxPage {
			return
		}
		after = names[len(names)-1]
	}
}

func (f *finder) wasLate(queue string) {
	all := f.series(queue).Total()
	p99, ok := all.Lateness.Quantile(0.99)
	if !ok || p99 < f.Late {
		return
	}
	worst, _ := all.Lateness.Quantile(1)
	f.add("was_late", queue, "of "+many(int64(min(all.Lateness.Count(), math.MaxInt64)), "message", "messages")+" handed out within "+rounded(latelySpan)+
		" one in a hundred came later than "+rounded(p99)+", the worst "+rounded(worst)+" late",
		"see when on the dashboard, or with tarry top; if it comes back add workers, or raise a rate or in_flight that tarry queue get "+queue+" shows", p99.Seconds())
}

// deaths finds recent deaths of messages.
func (f *finder) deaths(ctx context.Context, c *tarry.Client, queue string) error {
	page, err := c.ListPage(ctx, tarry.ListQuery{Queue: queue, State: tarry.Dead, From: f.Now.Add(-DiedWithin), Newest: true, Limit: maxDied})
	if errors.Is(err, tarry.ErrUnsupported) {
		return nil
	}
	if err != nil || len(page.Messages) == 0 {
		return err
	}
	n := len(page.Messages)
	message := many(int64(n), "message", "messages") + " died within " + rounded(DiedWithin)
	if page.Next != "" {
		message = "more than " + message
	}
	if last := oneLine(page.Messages[0].LastError); last != "" {
		message += ", the last of: " + last
	}
	f.add("deaths", queue, message, "tarry dead ls "+queue+" --newest shows why; when that is mended tarry dead redrive "+queue+" brings them back", float64(n))
	return nil
}

func many(n int64, one, more string) string {
	if n != 1 {
		one = more
	}
	return strconv.FormatInt(n, 10) + " " + one
}

// rounded formats a duration for people, in whole seconds.
func rounded(d time.Duration) string { return tarry.FormatDuration(d.Round(time.Second)) }
