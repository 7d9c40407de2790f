package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

const (
	// maxBoard is how many queues are kept of a server; of more those are shown that were
	// told first.
	maxBoard = 100_000
	// stays is how long a queue that holds nothing any more is still shown.
	stays = time.Minute
)

// boardRow is a queue as it was told last.
type boardRow struct {
	wire.LiveQueue
	left time.Time // when it was told that it holds nothing any more
}

// queueBoard is the queues of tarry top, and which of them are shown in which order.
type queueBoard struct {
	rows    map[string]*boardRow
	more    bool // there are more than are kept
	sort    *column
	reverse bool
	filter  string // a part of the names of those that are shown, in any case

	shown []*boardRow // in order
	wire.LiveTotals
	pushed, handled float64 // a second, of all
}

func newQueueBoard(by *column) *queueBoard {
	return &queueBoard{rows: make(map[string]*boardRow), sort: by}
}

// take takes up what was told; whole: that is all there is.
func (b *queueBoard) take(rows []wire.LiveQueue, whole, more bool, now time.Time) {
	if whole {
		clear(b.rows)
		b.more = false
	}
	b.more = b.more || more
	for i := range rows {
		r := &boardRow{LiveQueue: rows[i]}
		was := b.rows[r.Queue]
		switch {
		case was == nil && r.Gone:
			continue
		case was == nil && len(b.rows) >= maxBoard:
			b.more = true
			continue
		case r.Gone:
			if r.left = was.left; !was.Gone {
				r.left = now
			}
		}
		b.rows[r.Queue] = r
	}
}

// arrange finds which queues are shown, in which order, and what they sum up to.
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
			b.shown = append(b.shown, r)
		}
	}
	slices.SortFunc(b.shown, func(x, y *boardRow) int {
		by := b.sort.compare(x, y)
		if b.reverse {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(x.Queue, y.Queue))
	})
}

// problems are what is wrong with the queues as they are now.
func (b *queueBoard) problems(late time.Duration, now time.Time) []problem {
	f := finder{late: late, now: now}
	for _, r := range b.rows {
		f.of(r)
	}
	f.order()
	return f.Problems
}

// of finds what is wrong with a queue by its row alone.
func (f *finder) of(r *boardRow) {
	n := len(f.Problems)
	f.backlog(r.info())
	if len(f.Problems) == n && r.Trend != nil && latenessKnown(&r.Trend.Lateness) {
		f.wasLate(r.Queue, &r.Trend.Lateness, boardSpan)
	}
}

// order sorts the problems: what is wrong with all comes first, then the queues by name.
func (f *finder) order() {
	slices.SortStableFunc(f.Problems, func(x, y problem) int { return cmp.Compare(x.Queue, y.Queue) })
}

// info is what the queue holds.
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
