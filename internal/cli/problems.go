package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
)

const (
	// tardy is how long a message may be ready before it counts as late.
	tardy = 30 * time.Second
	// lately is how recent a death must be to be a problem.
	lately = 15 * time.Minute
)

// problem is something wrong, and what to do about it.
type problem struct {
	Problem string `json:"problem"` // not_ready, server, store, no_worker, late, was_late, paused, deaths
	Queue   string `json:"queue,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// about returns the message, after the queue if there is one.
func (p *problem) about() string {
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
}

func (f *finder) add(what, queue, message, hint string) {
	f.Problems = append(f.Problems, problem{what, queue, message, hint})
}

// readiness asks whether the store is ready. A store that is not ready is a problem but no
// error, unless ctx has ended. For a ready server it also adds the server's own problems.
func (f *finder) readiness(ctx context.Context, c *tarry.Client) (ready bool, err error) {
	err = c.Ready(ctx)
	if ctx.Err() != nil {
		return false, err
	}
	if err != nil {
		told := wire.Shown(err)
		f.add("not_ready", "", told.Message, cmp.Or(told.Hint, "see to what is behind the engine, and to the server's log"))
		return false, nil
	}
	if e, ok := c.Engine().(*httpengine.Engine); ok {
		troubles, err := e.Troubles(ctx)
		if err != nil {
			return true, err
		}
		for _, t := range troubles {
			f.add("server", "", t.Message, t.Hint)
		}
	}
	return true, nil
}

// store adds the problems that the engine of a directly opened store has met so far.
func (f *finder) store(c *tarry.Client) {
	if e, ok := c.Engine().(engine.Troubler); ok {
		for _, t := range e.Troubles() {
			f.add("store", "", t.Message, t.Hint)
		}
	}
}

// backlog finds messages that have been due too long, and a likely cause.
func (f *finder) backlog(q tarry.QueueInfo) {
	waits := f.now.Sub(q.OldestReady)
	if q.Ready == 0 || q.OldestReady.IsZero() || waits < f.late {
		return
	}
	ready := counted(int(q.Ready), "message") + " " + isAre(int(q.Ready)) + " due, the oldest for " + lasting(waits)
	switch {
	case q.Paused:
		f.add("paused", q.Queue, ready+", and the queue is paused", "tarry resume "+q.Queue+" ends the pause")
	case q.Leased == 0:
		f.add("no_worker", q.Queue, ready+", and nobody works on the queue",
			"start a worker, or see why those there lease nothing; tarry queue get "+q.Queue+" shows whether a rate or in_flight holds them back")
	default:
		f.add("late", q.Queue, ready+", with "+counted(int(q.Leased), "lease")+" held",
			"add workers or raise their concurrency, unless tarry queue get "+q.Queue+" shows that a rate or in_flight holds them back; if handlers became slow, see to what they call")
	}
}

// wasLate finds messages that were handed out late within a span, though none waits now. t is
// empty if that is unknown or none was handed out.
func (f *finder) wasLate(queue string, t *wire.Times, span time.Duration) {
	if t.Count == 0 || milliseconds(*t.P99) < f.late {
		return
	}
	f.add("was_late", queue, fmt.Sprintf("of %d messages handed out within %s one in a hundred came later than %s, the worst %s late",
		t.Count, lasting(span), brief(t.P99), brief(t.Max)),
		"see when on the dashboard, or with tarry top; if it comes back add workers, or raise a rate or in_flight that tarry queue get "+queue+" shows")
}

// deaths finds recent deaths of messages.
func (f *finder) deaths(ctx context.Context, c *tarry.Client, caps *tarry.Capabilities, q tarry.QueueInfo) error {
	if q.Dead == 0 || !caps.Range || !caps.List && !caps.ListDead {
		return nil
	}
	page, err := c.ListPage(ctx, tarry.ListQuery{Queue: q.Queue, State: tarry.Dead, From: f.now.Add(-lately), Newest: true, Limit: engine.MaxPage})
	if errors.Is(err, tarry.ErrUnsupported) {
		return nil
	}
	if err != nil || len(page.Messages) == 0 {
		return err
	}
	n := counted(len(page.Messages), "message")
	if page.Next != "" {
		n = "more than " + n
	}
	message := n + " died within " + lasting(lately)
	if last := page.Messages[0].LastError; last != "" {
		message += ", the last of: " + cell(last)
	}
	f.add("deaths", q.Queue, message, "tarry dead ls "+q.Queue+" --newest shows why; when that is mended tarry dead redrive "+q.Queue+" brings them back")
	return nil
}

// printProblems writes problems for people.
func printProblems(o *printer, all []problem) {
	if len(all) == 0 {
		o.say("no problems")
	}
	for _, x := range all {
		o.say("! %s\n  %s", x.about(), x.Hint)
	}
}
