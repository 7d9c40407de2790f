package cli

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

const (
	maxBoard = 100_000     // the most queues kept: those heard of first
	stays    = time.Minute // how long an emptied queue is still shown
)

// boardRow is the last known state of a queue.
type boardRow struct {
	wire.LiveQueue
	left time.Time // when the queue was first found empty
	rank float64   // in the sorted column
	bad  bool      // it has problems
}

// queueBoard holds the queues of tarry top, and which are shown in which order.
type queueBoard struct {
	rows    map[string]*boardRow
	more    bool // there are more queues than are kept
	sort    *column
	reverse bool
	filter  string // part of the names shown, in any case

	shown []*boardRow // in order
	wire.LiveTotals
	pushed, handled float64 // a second, over all queues
}

// take updates the queues with news.
func (b *queueBoard) take(n *news, now time.Time) {
	if n.whole {
		clear(b.rows)
		b.more = n.more
	}
	for i := range n.queues {
		r := &boardRow{LiveQueue: n.queues[i], left: now}
		was := b.rows[r.Queue]
		switch {
		case was == nil && r.Gone:
			continue
		case was == nil && len(b.rows) >= maxBoard:
			b.more = true
			continue
		case r.Gone && was.Gone:
			r.left = was.left
		}
		b.rows[r.Queue] = r
	}
}

// arrange selects and sorts the queues to show, and sums up all queues.
func (b *queueBoard) arrange(now time.Time) {
	b.shown, b.LiveTotals, b.pushed, b.handled = b.shown[:0], wire.LiveTotals{}, 0, 0
	part := strings.ToLower(b.filter)
	for name, r := range b.rows {
		if r.Gone && now.Sub(r.left) >= stays {
			delete(b.rows, name)
			continue
		}
		b.Queues++
		b.Scheduled, b.Ready, b.Leased, b.Dead = b.Scheduled+r.Scheduled, b.Ready+r.Ready, b.Leased+r.Leased, b.Dead+r.Dead
		b.pushed, b.handled = b.pushed+r.PushedPerS, b.handled+r.AckedPerS
		if strings.Contains(strings.ToLower(name), part) {
			r.rank = b.sort.of(r, now).rank
			b.shown = append(b.shown, r)
		}
	}
	slices.SortFunc(b.shown, func(x, y *boardRow) int {
		by := cmp.Compare(x.rank, y.rank)
		if b.sort == boardColumns[0] {
			by = cmp.Compare(x.Queue, y.Queue)
		}
		if b.reverse {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(x.Queue, y.Queue))
	})
}

// sums says what all queues hold together.
func (b *queueBoard) sums() string {
	return counted(b.Queues, "queue") + ": " + holds(b.Scheduled, b.Ready, b.Leased, b.Dead)
}

// problems adds the present problems of the queues and sorts all problems: those of the store
// first, then by queue.
func (b *queueBoard) problems(f *finder) []problem {
	for _, r := range b.rows {
		n := len(f.Problems)
		r.bad = false
		f.backlog(r.info())
		if t := r.lateness(); len(f.Problems) == n && t.Count > 0 {
			f.wasLate(r.Queue, t, boardSpan)
		}
	}
	for _, p := range f.Problems {
		if r := b.rows[p.Queue]; r != nil {
			r.bad = true
		}
	}
	slices.SortStableFunc(f.Problems, func(x, y problem) int { return cmp.Compare(x.Queue, y.Queue) })
	return f.Problems
}

// lateness returns the lateness; it is empty if that is unknown.
func (r *boardRow) lateness() *wire.Times {
	if r.Trend == nil || !latenessKnown(&r.Trend.Lateness) {
		return new(wire.Times)
	}
	return &r.Trend.Lateness
}

// info returns what the queue holds.
func (r *boardRow) info() tarry.QueueInfo {
	q := tarry.QueueInfo{
		Queue: r.Queue, Scheduled: r.Scheduled, Ready: r.Ready, Leased: r.Leased, Dead: r.Dead, Finished: r.Finished,
		NextDue: r.NextDue.Time, OldestReady: r.OldestReady.Time, Paused: r.Paused,
	}
	if r.PausedUntil != nil {
		q.PausedUntil = r.PausedUntil.Time
	}
	return q
}
